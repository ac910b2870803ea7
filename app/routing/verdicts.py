"""The words for what became of each pool in one decision."""

from __future__ import annotations

from enum import StrEnum


class Verdict(StrEnum):
    """Why a pool was taken or not."""

    CHOSEN = "chosen"
    NOT_PREFERRED = "not_preferred"  # an earlier choice was good enough
    SLOWER = "slower"  # it would do, and the other one answers sooner
    PINNED_ELSEWHERE = "pinned_elsewhere"
    NO_REPLICA = "no_replica"  # none takes work
    REFUSES_PARAMETER = "refuses_parameter"
    TRIED = "tried"  # every replica that could was asked already
    FULL = "full"
    RESERVE_KEPT = "reserve_kept"  # what is left is for interactive requests
    WOULD_MISS_TTFT = "would_miss_ttft"
    WOULD_MISS_TPOT = "would_miss_tpot"
    BACKFILL_OFF = "backfill_off"
    STAY_TOO_LONG = "stay_too_long"  # backfill would hold its place for longer than allowed
    STAY_UNKNOWN = "stay_unknown"  # nothing finished of late that would tell


# What waiting can change: a slot frees, a burst passes.
PASSING = frozenset(
    {
        Verdict.TRIED,
        Verdict.FULL,
        Verdict.RESERVE_KEPT,
        Verdict.WOULD_MISS_TTFT,
        Verdict.WOULD_MISS_TPOT,
        Verdict.STAY_TOO_LONG,
        Verdict.STAY_UNKNOWN,
        Verdict.BACKFILL_OFF,
    }
)
