"""What has been measured so far, and how two parts of it are joined."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import zip_longest

from app.bench.others import NO_USE, Use
from autoscaling.profiling.measured import CellRun, PrefillRun


@dataclass(slots=True)
class Found:
    """Grows while engines run."""

    runs: list[CellRun] = field(default_factory=list)
    prefills: list[PrefillRun] = field(default_factory=list)
    cut: list[str] = field(default_factory=list)
    errors: dict[str, int] = field(default_factory=dict)  # of answers that failed: words, times
    others: list[Use] = field(default_factory=list)  # of the CPU cores by other processes, by round
    others_known: bool = True  # false once a round could not be looked at


def join(found: Found, more: Found) -> None:
    """Add what more has been found; rounds of another start of the engines count as the same rounds."""
    found.runs += more.runs
    found.prefills += more.prefills
    found.cut += [words for words in more.cut if words not in found.cut]
    for words, times in more.errors.items():
        found.errors[words] = found.errors.get(words, 0) + times
    both = zip_longest(found.others, more.others, fillvalue=NO_USE)
    found.others = [one.plus(other) for one, other in both]
    found.others_known = found.others_known and more.others_known


def others_cores(found: Found) -> tuple[float, ...]:
    """CPU cores that other processes used on average, by round; empty where a round is not known."""
    return tuple(round(one.cores, 2) for one in found.others) if found.others_known else ()
