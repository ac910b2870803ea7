"""Means, differences and ratios over rounds, and where they lie with 95 %; pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

# Student's t at 97.5 %, by degrees of freedom from 1; later ones are hardly smaller.
T975: Final = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179)


@dataclass(frozen=True, slots=True)
class Interval:
    """A value and where it lies with 95 %, by what differs between rounds; None with one round."""

    value: float
    low: float | None = None
    high: float | None = None

    def holds(self, value: float) -> bool:
        """Whether `value` may be the true one."""
        return self.low is None or self.high is None or self.low <= value <= self.high


def mean(values: Sequence[float]) -> Interval | None:
    """The mean over rounds; None without rounds."""
    if not values:
        return None
    value, spread = statistics.fmean(values), _half_width(values)
    return Interval(value) if spread is None else Interval(value, value - spread, value + spread)


def ratio(pairs: Sequence[tuple[float, float]]) -> Interval | None:
    """The second over the first, all rounds together, by the ratio estimator; None when the first are 0."""
    below = sum(first for first, _ in pairs)
    if below <= 0:
        return None
    value = sum(second for _, second in pairs) / below
    spread = _half_width([(second - value * first) * len(pairs) / below for first, second in pairs])
    return Interval(value) if spread is None else Interval(value, max(0.0, value - spread), value + spread)


def difference(pairs: Sequence[tuple[float, float]]) -> Interval | None:
    """The mean of first - second over rounds; None without rounds."""
    return mean([first - second for first, second in pairs])


def _half_width(values: Sequence[float]) -> float | None:
    if len(values) < 2:
        return None
    t = T975[min(len(values) - 1, len(T975)) - 1]
    return t * statistics.stdev(values) / math.sqrt(len(values))
