"""Means, differences and ratios over rounds, and where they lie with 95 %; pure."""

from __future__ import annotations

import math
import statistics
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

Name = TypeVar("Name")

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


def above(control: Sequence[float], others: Mapping[Name, Sequence[float]]) -> dict[Name, float]:
    """How likely each of the others would look so much larger than the control by chance, all taken together.

    Dunnett's one-sided test on logarithms less the mean of their round, so that what differs between rounds
    alike for all is no noise; values are positive, one per round and in the same order.  Empty with one
    round or nothing to compare.
    """
    import numpy as np  # noqa: PLC0415  # heavy, and only this needs them
    from scipy import stats  # noqa: PLC0415

    if len(control) < 2 or not others:
        return {}
    logs = np.log([list(control), *map(list, others.values())])
    logs -= logs.mean(axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # rounds without any noise: 0, or not a number
        found = stats.dunnett(*logs[1:], control=logs[0], alternative="greater", rng=1).pvalue
    return {name: 1.0 if math.isnan(p) else float(p) for name, p in zip(others, found, strict=True)}


def _half_width(values: Sequence[float]) -> float | None:
    if len(values) < 2:
        return None
    t = T975[min(len(values) - 1, len(T975)) - 1]
    return t * statistics.stdev(values) / math.sqrt(len(values))
