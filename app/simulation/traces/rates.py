"""How many requests a second a trace brings, on average and at its fullest, tier by tier; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from app.simulation.arrival import Arrival
from autoscaling.types import Tier

WINDOW_S: Final = 10.0  # whose fullest one is the peak


@dataclass(frozen=True, slots=True)
class Rate:
    """Requests of one tier, or of all."""

    tier: Tier | None  # None: of all together
    requests: int
    mean: float  # requests per second over the whole trace
    peak: float  # requests per second in the fullest window


def rates(trace: Sequence[Arrival], trace_s: float) -> tuple[Rate, ...]:
    """The rates over `trace_s` seconds: all together first, then each tier that has requests, in order."""
    windows: Counter[tuple[Tier | None, int]] = Counter()
    for one in trace:
        at = int(one.at_s // WINDOW_S)
        windows[None, at] += 1
        windows[one.tier, at] += 1
    requests: Counter[Tier | None] = Counter()
    most: Counter[Tier | None] = Counter()
    for (tier, _), found in windows.items():
        requests[tier] += found
        most[tier] = max(most[tier], found)
    tiers = (None, *(tier for tier in Tier if tier in requests))
    return tuple(
        Rate(tier, requests[tier], requests[tier] / trace_s, most[tier] / WINDOW_S) for tier in tiers
    )
