"""Sums over the engines of the fleet, replicas that are gone included, each step counted once; pure.

An engine's own totals begin anew with every boot.  What a boot had counted before this controller first
heard of it is not in the sums, so a new controller counts nothing twice.
"""

from __future__ import annotations

from collections.abc import Sequence

from autoscaling.request_window import WindowSums
from autoscaling.types import ReplicaReport, Role

BOOTS = 4096  # remembered; an older one that comes back begins anew
ACCEPTANCE_S = 60.0


class Fleet:
    """Reports in, sums out; `now` is the receiver's monotonic clock."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[int, ...]] = {}  # by boot, the one heard of last at the end
        self._late = WindowSums(2, ACCEPTANCE_S)
        self.drafts = 0
        self.drafted = 0
        self.accepted = 0
        self.prompt_tokens = dict.fromkeys(Role, 0)  # of finished sequences
        self.generated_tokens = dict.fromkeys(Role, 0)

    def take(self, report: ReplicaReport, now: float) -> None:
        """Add what an engine has counted since its last report."""
        totals = report.totals
        found = (
            totals.drafts,
            totals.drafted,
            totals.accepted,
            totals.finished_prompt_tokens,
            totals.finished_generated_tokens,
        )
        before = self._last.pop(report.boot_id, found)
        drafts, drafted, accepted, prompt, generated = _grown(found, before)
        self._last[report.boot_id] = tuple(map(max, found, before))
        if len(self._last) > BOOTS:
            del self._last[next(iter(self._last))]
        self.drafts += drafts
        self.drafted += drafted
        self.accepted += accepted
        self.prompt_tokens[report.role] += prompt
        self.generated_tokens[report.role] += generated
        self._late.add(now, drafted, accepted)

    def acceptance(self, now: float) -> float | None:
        """Accepted of drafted tokens over the last minute; None when none was drafted."""
        drafted, accepted = self._late.sums(now)
        return accepted / drafted if drafted else None


def _grown(found: Sequence[int], before: Sequence[int]) -> list[int]:
    return [max(0, new - old) for new, old in zip(found, before, strict=True)]
