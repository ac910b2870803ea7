"""Is the engine dead or hung?  A pure verdict; the replica asks it several times a second.

`check_health` of vLLM sees only a dead engine; a stopped or deadlocked one passes it for ever.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

# A step may take long honestly (a long prefill on a busy machine): ten times the longest one seen.
STEP_FACTOR = 10.0
# A stall that the engine survived is a long step too; it must not stretch the limit without end.
CEILING_FACTOR = 4.0


class Verdict(StrEnum):
    """What the watchdog says about an engine."""

    ALIVE = "alive"
    DEAD = "dead"
    HUNG = "hung"


@dataclass(frozen=True, slots=True)
class Progress:
    """What the verdict is made of; times by one monotonic clock, in seconds."""

    failure: str | None
    unfinished: int
    pending_since: float | None  # when work became pending without a break; None when idle
    last_step_at: float | None
    longest_step_s: float


def verdict(progress: Progress, hung_after_s: float, now: float) -> Verdict:
    """DEAD when the engine says so; HUNG when work waits and no step came for the limit."""
    if progress.failure is not None:
        return Verdict.DEAD
    if progress.unfinished == 0 or progress.pending_since is None:
        return Verdict.ALIVE
    since = max(progress.pending_since, progress.last_step_at or progress.pending_since)
    return Verdict.HUNG if now - since > limit_s(progress.longest_step_s, hung_after_s) else Verdict.ALIVE


def limit_s(longest_step_s: float, hung_after_s: float) -> float:
    """Seconds without a step after which an engine with work counts as hung."""
    return min(max(hung_after_s, STEP_FACTOR * longest_step_s), CEILING_FACTOR * hung_after_s)
