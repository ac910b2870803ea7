"""Which policies are beaten on a load, over seeds: means, intervals, and who dominates whom; pure."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from benchmarks.errors import BenchError
from benchmarks.evaluate_outcomes import Outcome
from benchmarks.evaluate_plan import BATCH_TIE, BOUNDS, MISSES_TIE, Traffic
from benchmarks.intervals import Interval, difference, mean


@dataclass(frozen=True, slots=True)
class Row:
    """One policy on one load at one delay, by seed: one outcome or more."""

    outcomes: tuple[Outcome, ...]

    @property
    def contender(self) -> str:
        """The policy's name."""
        return self.outcomes[0].cell.name

    @property
    def traffic(self) -> Traffic:
        """The load."""
        return self.outcomes[0].cell.traffic

    @property
    def misses(self) -> Interval:
        """Share of interactive requests that were not in time."""
        return self._mean(lambda one: one.misses)

    @property
    def batch(self) -> Interval:
        """Batch tokens per second."""
        return self._mean(lambda one: one.batch_tokens_per_s)

    @property
    def short_share(self) -> float | None:
        """Share of the time: interactive work wanted more than its pool holds; None without a pool."""
        known = [one.short_share for one in self.outcomes if one.short_share is not None]
        return statistics.fmean(known) if known else None

    def over(self, number: Callable[[Outcome], float]) -> float:
        """The mean of a number over seeds."""
        return statistics.fmean(map(number, self.outcomes))

    def _mean(self, number: Callable[[Outcome], float]) -> Interval:
        found = mean([number(one) for one in self.outcomes])
        if found is None:
            raise BenchError("a policy has no run: give at least one seed")
        return found


@dataclass(frozen=True, slots=True)
class Beaten:
    """By how much one policy is better than another, seed by seed; a tie may lie just below 0."""

    by: Row
    fewer_misses: Interval  # shares of interactive requests
    more_batch: Interval  # tokens per second


def dominance(one: Row, other: Row) -> Beaten | None:
    """How `one` dominates `other`: no worse in both and better for sure in one, but for ties; else None.

    For sure is that the interval of the difference over seeds leaves 0 out; without a second seed nothing is.
    """
    pairs = list(zip(other.outcomes, one.outcomes, strict=True))
    fewer = difference([(mine.misses, its.misses) for mine, its in pairs])
    more = difference([(its.batch_tokens_per_s, mine.batch_tokens_per_s) for mine, its in pairs])
    tie = BATCH_TIE * other.batch.value
    if fewer is None or more is None or fewer.value < -MISSES_TIE or more.value < -tie:
        return None
    return Beaten(one, fewer, more) if _sure(fewer, MISSES_TIE) or _sure(more, tie) else None


def beaten(row: Row, rows: Iterable[Row]) -> list[Beaten]:
    """Who dominates a row of a panel, those with fewest misses first; policies that know the trace do not."""
    found = [
        how
        for one in rows
        if one is not row and one.contender not in BOUNDS and (how := dominance(one, row)) is not None
    ]
    return sorted(found, key=lambda how: (how.by.misses.value, -how.by.batch.value))


def front(rows: Sequence[Row]) -> list[Row]:
    """The rows of a panel that nobody dominates, by growing misses; without those that know the trace."""
    free = [one for one in rows if one.contender not in BOUNDS and not beaten(one, rows)]
    return sorted(free, key=lambda one: one.misses.value)


def best_static(splits: Iterable[Row], most_misses: float) -> Row:
    """Of static splits, the most batch tokens with so few misses; where none has, the fewest misses.

    Raises BenchError without splits.
    """
    rows = list(splits)
    if not rows:
        raise BenchError("no static split was simulated: name some in the plan")
    good = [one for one in rows if one.misses.value <= most_misses]
    if good:
        return max(good, key=lambda one: one.batch.value)
    return min(rows, key=lambda one: one.misses.value)


def _sure(found: Interval, tie: float) -> bool:
    return found.value > tie and found.low is not None and found.low > 0
