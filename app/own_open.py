"""What one ingress has open at each replica, now and a moment ago; pure."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable


class OwnOpen:
    """Sequences by replica; changes of the last `kept_s` can be taken back to see an earlier moment."""

    def __init__(self, now: Callable[[], float], kept_s: float) -> None:
        self._now = now
        self._kept_s = kept_s
        self._open: dict[str, int] = {}  # never holds a zero; outlives the replica
        self._changes: deque[tuple[float, str, int]] = deque()  # oldest first

    @property
    def total(self) -> int:
        """Sequences on all replicas, those that left included."""
        return sum(self._open.values())

    def at(self, replica_id: str) -> int:
        """Sequences open there now."""
        return self._open.get(replica_id, 0)

    def change(self, replica_id: str, by: int) -> int:
        """Count so many more, or fewer, as open there, and never fewer than none; returns how many are."""
        before = self._open.get(replica_id, 0)
        after = max(0, before + by)
        if after:
            self._open[replica_id] = after
        else:
            self._open.pop(replica_id, None)
        now, changes = self._now(), self._changes
        changes.append((now, replica_id, after - before))
        while changes[0][0] < now - self._kept_s:
            changes.popleft()
        return after

    def changes_since(self, moments: dict[str, float]) -> Counter[str]:
        """By how much each count has changed after its moment, which is at most `kept_s` ago."""
        found: Counter[str] = Counter()
        if moments:
            first = min(moments.values())
            for at, replica_id, by in reversed(self._changes):
                if at <= first:
                    break
                if at > moments.get(replica_id, at):
                    found[replica_id] += by
        return found
