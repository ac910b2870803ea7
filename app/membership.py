"""The ingress's view of the replicas: who is there, how busy, and what we have open; pure.

Two memories with different lives: *membership* comes from the controller's snapshots and does not
expire, so the service goes on without a controller; *load numbers* expire after 3 s, and then every
other ingress is taken to have open what we have.  A failed connection overrules both until the replica
has spoken again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Final

from app.candidates import UNKNOWN_ANSWER, Candidate
from app.others_open import LOAD_EXPIRES_S, OthersOpen
from app.own_open import OwnOpen
from autoscaling.routing_rules import RoutingRules
from autoscaling.types import SCHEMA, ReplicaView, Role, Snapshot

REFUSED_SKIP_S: Final = 0.2  # a refusal is about this moment; the next snapshot knows more
BACKOFF_FIRST_S: Final = 1.0
BACKOFF_LONGEST_S: Final = 30.0
DEFAULT_RULES: Final = RoutingRules()


@dataclass(frozen=True, slots=True)
class _Ejection:
    boot_id: str
    seq: int
    until: float


@dataclass(frozen=True, slots=True)
class _Seen:
    """A candidate as it was at `since`; without news of its replica it stays so before `until`."""

    candidate: Candidate | None  # None: ejected
    since: float
    until: float


class Membership:
    """Snapshots in, candidates out; one per ingress, touched by one thread.

    `clock` is the one that every `now` is read from.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._known: dict[str, ReplicaView] = {}
        self._own = OwnOpen(clock, LOAD_EXPIRES_S)
        self._others = OthersOpen()
        self._work: dict[str, float] = {}  # predicted tokens that our open requests there will yet generate
        self._ejected: dict[str, _Ejection] = {}
        self._failures: dict[str, int] = {}  # ejections in a row
        self._skipped_until: dict[str, float] = {}
        self._seen: dict[str, _Seen] = {}  # made when first asked for, dropped at any news
        self._names: tuple[str, ...] = ()
        self._longest: int | None = None
        self._method: str | None = None
        self._snapshot: Snapshot | None = None
        self._accepted_at: float | None = None

    @property
    def epoch(self) -> int | None:
        """Epoch of the newest snapshot; None before the first."""
        return None if self._snapshot is None else self._snapshot.epoch

    @property
    def partial(self) -> bool:
        """Whether the newest snapshot came from a controller that has not heard from everyone yet."""
        return self._snapshot is not None and self._snapshot.partial

    @property
    def stopping(self) -> bool:
        """Whether the service is being taken down."""
        return self._snapshot is not None and self._snapshot.stopping

    @property
    def retry_after_s(self) -> int | None:
        """What a caller without room is told, in seconds; None where no policy says."""
        return None if self._snapshot is None else self._snapshot.retry_after_s

    @property
    def rules(self) -> RoutingRules:
        """What routing obeys; the defaults before the first snapshot, and of an older controller."""
        return DEFAULT_RULES if self._snapshot is None else self._snapshot.routing or DEFAULT_RULES

    @property
    def ingresses(self) -> int:
        """Live ingresses that share the limits, this one included."""
        return 1 if self._snapshot is None else max(1, self._snapshot.ingresses)

    @property
    def total_inflight(self) -> int:
        """Requests this ingress has open, on replicas that left included."""
        return self._own.total

    @property
    def served_names(self) -> tuple[str, ...]:
        """Model names that known replicas serve; the first is canonical."""
        return self._names

    @property
    def max_model_len(self) -> int | None:
        """The widest context that a known replica takes, in tokens; None before the first snapshot."""
        return self._longest

    @property
    def method(self) -> str | None:
        """How the speculative replicas draft; None while none is known."""
        return self._method

    def age_s(self, now: float) -> float | None:
        """Tell the seconds since a new snapshot was accepted; None before the first."""
        return None if self._accepted_at is None else max(0.0, now - self._accepted_at)

    def accept(self, snapshot: Snapshot, now: float, asked_at: float | None = None) -> bool:
        """Take a snapshot in; False when it is not newer, or of a schema we do not know.

        It was made when it was asked for, at `asked_at`, or later; its reports are taken to be as old as they
        may be.  None: it was asked for now.
        """
        held = self._snapshot
        if snapshot.schema != SCHEMA:
            return False
        if held is not None and (snapshot.epoch, snapshot.seq) <= (held.epoch, held.seq):
            return False
        self._snapshot, self._accepted_at = snapshot, now
        self._seen.clear()
        self._known.update((view.replica_id, view) for view in snapshot.replicas)
        self._others.observe(snapshot.replicas, now if asked_at is None else asked_at, self._own)
        if not snapshot.partial:
            listed = {view.replica_id for view in snapshot.replicas}
            for replica_id in self._known.keys() - listed:
                self._forget(replica_id)
        self._others.expect(self._known.values(), self.rules.speeds, now)
        self._learn()
        return True

    def answer_tokens(self, role: Role) -> float | None:
        """The mean length of a pool's answers of late; None when too few are known."""
        speed = self.rules.speeds.get(role)
        return None if speed is None else speed.answer_tokens

    def started(self, replica_id: str, sequences: int = 1, tokens: float = 0.0) -> None:
        """Count a request of ours as open there: its sequences, and the tokens it will generate."""
        self._seen.pop(replica_id, None)
        self._own.change(replica_id, sequences)
        self._work[replica_id] = self._work.get(replica_id, 0.0) + tokens

    def advanced(self, replica_id: str, tokens: float) -> None:
        """Count tokens of ours there as generated."""
        if replica_id in self._work:
            self._seen.pop(replica_id, None)
            self._work[replica_id] -= tokens

    def finished(self, replica_id: str, sequences: int = 1, tokens: float = 0.0) -> None:
        """Count a request of ours there as over, however it ended, and what it had not generated."""
        self._seen.pop(replica_id, None)
        if self._own.change(replica_id, -sequences):
            self.advanced(replica_id, tokens)
        else:
            self._work.pop(replica_id, None)

    def inflight(self, replica_id: str) -> int:
        """Count the requests this ingress has open there."""
        return self._own.at(replica_id)

    def eject(self, replica_id: str, now: float) -> None:
        """Take a replica out because a connection to it failed.

        It is back when a newer report has come *and* the back-off has passed.  Many requests
        fail together when a replica dies; what comes while it is out counts once.
        """
        known = self._known.get(replica_id)
        if known is None or self._is_out(known, now):
            return
        self._seen.pop(replica_id, None)
        failures = self._failures.get(replica_id, 0)
        self._failures[replica_id] = failures + 1
        # 5 doublings reach the longest; more would only overflow
        wait_s = min(BACKOFF_LONGEST_S, BACKOFF_FIRST_S * 2.0 ** min(failures, 5))
        self._ejected[replica_id] = _Ejection(known.boot_id, known.seq, now + wait_s)

    def refused(self, replica_id: str, now: float) -> None:
        """Pass over a replica that did not accept: full, draining, or not who we meant."""
        if replica_id in self._known:
            self._seen.pop(replica_id, None)
            self._skipped_until[replica_id] = now + REFUSED_SKIP_S

    def succeeded(self, replica_id: str) -> None:
        """Note that a request went well there: the next ejection has the shortest back-off."""
        self._failures.pop(replica_id, None)

    def load(self, replica_id: str, now: float) -> int:
        """Count the requests in flight there: ours now, and what is expected of others' by a fresh report."""
        return self.inflight(replica_id) + round(self._others_at(replica_id, now))

    def candidates_view(self, now: float) -> tuple[Candidate, ...]:
        """List every known replica but the ejected ones; those that take no work have no room."""
        found = []
        for replica_id in self._known:
            seen = self._seen.get(replica_id)
            if seen is None or not seen.since <= now < seen.until:
                seen = self._seen[replica_id] = self._look(replica_id, now)
            if seen.candidate is not None:
                found.append(seen.candidate)
        return tuple(found)

    def _look(self, replica_id: str, now: float) -> _Seen:
        view, ejection = self._known[replica_id], self._ejected.get(replica_id)
        skipped_until = self._skipped_until.get(replica_id, -inf)
        ends = (
            self._others.expire_at(replica_id),
            skipped_until,
            -inf if ejection is None else ejection.until,
        )
        until = min((end for end in ends if end >= now), default=inf)
        out = self._is_out(view, now)
        return _Seen(None if out else self._candidate(view, now, now >= skipped_until), now, until)

    def _others_at(self, replica_id: str, now: float) -> float:
        """Sequences of others there; unknown ones are not none: each of them has as many as we have."""
        told = self._others.at(replica_id, now)
        return self.inflight(replica_id) * (self.ingresses - 1.0) if told is None else told

    def _candidate(self, view: ReplicaView, now: float, open_now: bool) -> Candidate:
        own, others = self.inflight(view.replica_id), self._others_at(view.replica_id, now)
        mean, ingresses = self.answer_tokens(view.role), self.ingresses
        # The shares are our part of the limits; all ingresses together may use the whole soft limit.
        # An older controller tells the shares alone; their sum is the limit or somewhat more.
        # The hard limit is the replica's to enforce: others' numbers are too old to refuse on.
        return Candidate(
            view,
            own + round(others),
            limit=view.soft_share * ingresses if view.soft_limit is None else view.soft_limit,
            own_free=view.soft_share - own,
            hard_room=view.accepting and open_now and own < view.hard_share,
            work=self._work.get(view.replica_id, 0.0) + others * (UNKNOWN_ANSWER if mean is None else mean),
            ingresses=ingresses,
        )

    def _is_out(self, view: ReplicaView, now: float) -> bool:
        ejection = self._ejected.get(view.replica_id)
        if ejection is None:
            return False
        spoke = view.boot_id != ejection.boot_id or view.seq > ejection.seq
        return now < ejection.until or not spoke

    def _learn(self) -> None:
        """Keep what every request asks of all replicas together."""
        found = [view.capabilities for view in self._known.values()]
        self._names = tuple(dict.fromkeys(name for one in found for name in one.models))
        self._longest = max((one.max_model_len for one in found), default=None)
        self._method = next((one.method for one in found if one.method is not None), None)

    def _forget(self, replica_id: str) -> None:
        del self._known[replica_id]
        self._others.forget(replica_id)
        for memory in (self._ejected, self._failures, self._skipped_until):
            memory.pop(replica_id, None)
