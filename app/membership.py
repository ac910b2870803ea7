"""The ingress's view of the replicas: who is there, how busy, and what we have open; pure.

Two memories with different lives: *membership* comes from the controller's snapshots and does not
expire, so the service goes on without a controller; *load numbers* expire after 3 s, and then only
our own open requests count.  A failed connection overrules both until the replica has spoken again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from autoscaling.types import SCHEMA, ReplicaView, Snapshot

LOAD_EXPIRES_S: Final = 3.0
REFUSED_SKIP_S: Final = 0.2  # a refusal is about this moment; the next snapshot knows more
BACKOFF_FIRST_S: Final = 1.0
BACKOFF_LONGEST_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class Candidate:
    """One replica as routing weighs it."""

    replica: ReplicaView
    load: int  # requests in flight there, ours and others'
    soft_room: bool  # new work is welcome
    hard_room: bool  # new work is taken


@dataclass(frozen=True, slots=True)
class _Known:
    view: ReplicaView
    others: int  # in flight there that was not ours when its report was first seen
    reported_at: float  # of that report, by our clock


@dataclass(frozen=True, slots=True)
class _Ejection:
    boot_id: str
    seq: int
    until: float


class Membership:
    """Snapshots in, candidates out; one per ingress, touched by one thread."""

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}
        self._own: dict[str, int] = {}  # never holds a zero; outlives the replica
        self._ejected: dict[str, _Ejection] = {}
        self._failures: dict[str, int] = {}  # ejections in a row
        self._skipped_until: dict[str, float] = {}
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
    def total_inflight(self) -> int:
        """Requests this ingress has open, on replicas that left included."""
        return sum(self._own.values())

    @property
    def served_names(self) -> tuple[str, ...]:
        """Model names that known replicas serve; the first is canonical."""
        return tuple(dict.fromkeys(m for k in self._known.values() for m in k.view.capabilities.models))

    @property
    def max_model_len(self) -> int | None:
        """The widest context that a known replica takes, in tokens; None before the first snapshot."""
        return max((known.view.capabilities.max_model_len for known in self._known.values()), default=None)

    def age_s(self, now: float) -> float | None:
        """Tell the seconds since a new snapshot was accepted; None before the first."""
        return None if self._accepted_at is None else max(0.0, now - self._accepted_at)

    def accept(self, snapshot: Snapshot, now: float) -> bool:
        """Take a snapshot in; False when it is not newer, or of a schema we do not know."""
        held = self._snapshot
        if snapshot.schema != SCHEMA:
            return False
        if held is not None and (snapshot.epoch, snapshot.seq) <= (held.epoch, held.seq):
            return False
        self._snapshot, self._accepted_at = snapshot, now
        for view in snapshot.replicas:
            self._known[view.replica_id] = self._observe(view, now)
        if not snapshot.partial:
            listed = {view.replica_id for view in snapshot.replicas}
            for replica_id in self._known.keys() - listed:
                self._forget(replica_id)
        return True

    def started(self, replica_id: str, sequences: int = 1) -> None:
        """Count a request of ours as open there, by the sequences it makes the engine run."""
        self._own[replica_id] = self._own.get(replica_id, 0) + sequences

    def finished(self, replica_id: str, sequences: int = 1) -> None:
        """Count a request of ours there as over, however it ended."""
        left = self._own.get(replica_id, 0) - sequences
        if left > 0:
            self._own[replica_id] = left
        else:
            self._own.pop(replica_id, None)

    def inflight(self, replica_id: str) -> int:
        """Count the requests this ingress has open there."""
        return self._own.get(replica_id, 0)

    def eject(self, replica_id: str, now: float) -> None:
        """Take a replica out because a connection to it failed.

        It is back when a newer report has come *and* the back-off has passed.  Many requests
        fail together when a replica dies; what comes while it is out counts once.
        """
        known = self._known.get(replica_id)
        if known is None or self._is_out(known.view, now):
            return
        failures = self._failures.get(replica_id, 0)
        self._failures[replica_id] = failures + 1
        # 5 doublings reach the longest; more would only overflow
        wait_s = min(BACKOFF_LONGEST_S, BACKOFF_FIRST_S * 2.0 ** min(failures, 5))
        self._ejected[replica_id] = _Ejection(known.view.boot_id, known.view.seq, now + wait_s)

    def refused(self, replica_id: str, now: float) -> None:
        """Pass over a replica that did not accept: full, draining, or not who we meant."""
        if replica_id in self._known:
            self._skipped_until[replica_id] = now + REFUSED_SKIP_S

    def succeeded(self, replica_id: str) -> None:
        """Note that a request went well there: the next ejection has the shortest back-off."""
        self._failures.pop(replica_id, None)

    def load(self, replica_id: str, now: float) -> int:
        """Count the requests in flight there: ours now, and others' while their report is fresh."""
        own = self.inflight(replica_id)
        known = self._known.get(replica_id)
        if known is None or now - known.reported_at > LOAD_EXPIRES_S:
            return own
        return own + known.others

    def candidates_view(self, now: float) -> tuple[Candidate, ...]:
        """List every known replica but the ejected ones; those that take no work have no room."""
        return tuple(
            self._candidate(known.view, now)
            for known in self._known.values()
            if not self._is_out(known.view, now)
        )

    def _candidate(self, view: ReplicaView, now: float) -> Candidate:
        load, own = self.load(view.replica_id, now), self.inflight(view.replica_id)
        open_now = view.accepting and now >= self._skipped_until.get(view.replica_id, now)
        # The shares are our part of the limits; all ingresses together may use the whole soft limit.
        # The hard limit is the replica's to enforce: others' numbers are too old to refuse on.
        ingresses = 1 if self._snapshot is None else max(1, self._snapshot.ingresses)
        welcome = own < view.soft_share and load < view.soft_share * ingresses
        hard_room = open_now and own < view.hard_share
        return Candidate(view, load, soft_room=hard_room and welcome, hard_room=hard_room)

    def _observe(self, view: ReplicaView, now: float) -> _Known:
        before = self._known.get(view.replica_id)
        if before is not None and before.view.boot_id == view.boot_id and before.view.seq >= view.seq:
            # The same report again: its count is no younger, and what was ours then may be over now.
            return _Known(view, before.others, before.reported_at)
        others = max(0, view.inflight - self.inflight(view.replica_id))
        return _Known(view, others, now - max(0.0, view.age_s))

    def _is_out(self, view: ReplicaView, now: float) -> bool:
        ejection = self._ejected.get(view.replica_id)
        if ejection is None:
            return False
        spoke = view.boot_id != ejection.boot_id or view.seq > ejection.seq
        return now < ejection.until or not spoke

    def _forget(self, replica_id: str) -> None:
        del self._known[replica_id]
        for memory in (self._ejected, self._failures, self._skipped_until):
            memory.pop(replica_id, None)
