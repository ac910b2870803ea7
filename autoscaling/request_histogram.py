"""Counts of durations by bucket, in seconds; every histogram of the service has one of two sets of buckets.

Prometheus drops what two processes count under one name in different buckets, so the bounds are fixed here
and depend on no setting.
"""

from __future__ import annotations

from itertools import accumulate
from math import isfinite

# Waits, first tokens and whole answers; an answer may take 300 s unless `longest_generation_s` is raised.
SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1000.0)
SECONDS_PER_TOKEN = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Histogram:
    """Cumulative counts; they only grow."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self.total_s = 0.0

    def observe(self, seconds: float) -> None:
        """Count one duration; what no clock can have measured is left out."""
        if not isfinite(seconds) or seconds < 0:
            return
        place = next((n for n, bound in enumerate(self.bounds) if seconds <= bound), len(self.bounds))
        self._counts[place] += 1
        self.total_s += seconds

    def cumulative(self) -> tuple[int, ...]:
        """How many lie at or below each bound; one more at the end, for all."""
        return tuple(accumulate(self._counts))
