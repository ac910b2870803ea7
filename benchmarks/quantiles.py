"""Quantiles of small samples, and how far chance may have moved them; pure."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Sequence

Samples = Sequence[float]


def percentile(values: Samples, q: float) -> float:
    """The q-th percentile, 0 to 100, interpolated between neighbours; raises ValueError on no values."""
    if not values or not 0 <= q <= 100:
        raise ValueError(f"no {q}th percentile of {len(values)} values")
    ordered = sorted(values)
    position = (len(ordered) - 1) * q / 100
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def median_difference(rounds: Sequence[tuple[Samples, Samples]]) -> float:
    """The median over rounds of (median of the first - median of the second)."""
    return statistics.median(statistics.median(a) - statistics.median(b) for a, b in rounds)


def bootstrap_interval(
    rounds: Sequence[tuple[Samples, Samples]],
    statistic: Callable[[Sequence[tuple[Samples, Samples]]], float] = median_difference,
    *,
    draws: int = 1000,
    seed: int = 0,
) -> tuple[float, float]:
    """The middle 95 % of `statistic` over samples redrawn within each round.

    It knows the chance within a round; what differs from round to round only shows with many rounds.
    """
    chance = random.Random(seed)
    found = [
        statistic([(chance.choices(a, k=len(a)), chance.choices(b, k=len(b))) for a, b in rounds])
        for _ in range(draws)
    ]
    return percentile(found, 2.5), percentile(found, 97.5)
