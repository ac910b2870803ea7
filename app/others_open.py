"""What all others have open at each replica, by reports that are some time old; pure.

A report counts everybody at its own moment.  So what was ours at that moment is taken off it, not what is
ours when the snapshot comes: short requests have come and gone in between.  What is left goes out of date
as those requests end: the longer a request has had to end, the more a replica is taken for an average one of
its pool (Dahlin, Interpreting Stale Load Information, 2000).  Otherwise all ingresses would send their
requests to the replica that was the emptiest a second ago.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import exp
from statistics import fmean
from typing import Final

from app.own_open import OwnOpen
from autoscaling.routing_rules import PoolSpeed
from autoscaling.types import ReplicaView, Role

LOAD_EXPIRES_S: Final = 3.0


@dataclass(frozen=True, slots=True)
class _Reported:
    boot_id: str
    seq: int
    others: int  # in flight there that was not ours at `at`
    at: float  # the report's moment, by our clock


class OthersOpen:
    """Views of replicas in, sequences of others out; a report says nothing any more when it is 3 s old."""

    def __init__(self) -> None:
        self._reported: dict[str, _Reported] = {}
        self._expected: dict[str, float] = {}

    def observe(self, views: Iterable[ReplicaView], made_at: float, own: OwnOpen) -> None:
        """Take in what a snapshot that was made then says; of each report what it says first."""
        new = {
            view.replica_id: (view, made_at - max(0.0, view.age_s)) for view in views if self._is_new(view)
        }
        changes = own.changes_since({replica_id: at for replica_id, (_, at) in new.items()})
        for replica_id, (view, at) in new.items():
            ours = own.at(replica_id) - changes[replica_id]
            others = max(0, view.inflight - ours)
            self._reported[replica_id] = _Reported(view.boot_id, view.seq, others, at)

    def expect(self, known: Iterable[ReplicaView], speeds: Mapping[Role, PoolSpeed], now: float) -> None:
        """Judge what is there by now; where nothing tells how long requests stay, what was reported.

        Of `known` views each was observed, or KeyError is raised.
        """
        pools: dict[Role, dict[str, _Reported]] = {}
        for view in known:
            told = self._reported[view.replica_id]
            if view.accepting and now <= told.at + LOAD_EXPIRES_S:
                pools.setdefault(view.role, {})[view.replica_id] = told
        self._expected.clear()
        for role, pool in pools.items():
            stay_s = None if role not in speeds else mean_stay_s(speeds[role])
            if stay_s is None:
                continue
            mean = fmean(told.others for told in pool.values())
            for replica_id, told in pool.items():
                left = exp(-max(0.0, now - told.at) / stay_s)
                self._expected[replica_id] = mean + (told.others - mean) * left

    def at(self, replica_id: str, now: float) -> float | None:
        """Sequences of others there as of the last `expect`; None without a report that says anything."""
        told = self._reported.get(replica_id)
        if told is None or now > told.at + LOAD_EXPIRES_S:
            return None
        return self._expected.get(replica_id, told.others)

    def expire_at(self, replica_id: str) -> float:
        """Until when the replica's report says anything; KeyError without one."""
        return self._reported[replica_id].at + LOAD_EXPIRES_S

    def forget(self, replica_id: str) -> None:
        """A replica has left."""
        self._reported.pop(replica_id, None)
        self._expected.pop(replica_id, None)

    def _is_new(self, view: ReplicaView) -> bool:
        told = self._reported.get(view.replica_id)
        return told is None or told.boot_id != view.boot_id or told.seq < view.seq


def mean_stay_s(speed: PoolSpeed) -> float | None:
    """About how long a request stays at a replica of the pool, in seconds; None while that is unknown."""
    if speed.ttft_p50_s is None or speed.tpot_p50_s is None or speed.answer_tokens is None:
        return None
    found = speed.ttft_p50_s + speed.answer_tokens * speed.tpot_p50_s
    return found if found > 0.0 else None
