"""When requests come: a renewal process, a client that is silent between bursts, and the swing of a day."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import i0

Times = NDArray[Any]  # seconds, sorted

DAY_S: Final = 86400.0
_GRID_S: Final = 60.0  # the day's rate is followed in steps of a minute
_SHAPES: Final = (0.1, 20.0)  # of a Weibull distribution, among which the fit looks


@dataclass(frozen=True, slots=True)
class Steady:
    """Gamma renewal: independent gaps with a mean and a coefficient of variation."""

    rate: float  # per second
    cv: float

    def times(self, until_s: float, rng: Generator) -> Times:
        """The arrivals from 0 to a time, which is excluded."""
        found, end = [np.empty(0)], 0.0
        while end < until_s:
            count = math.ceil((until_s - end) * self.rate * 1.1) + 100
            gaps = _gamma(self.cv, count, rng) / self.rate
            found.append(end + np.cumsum(gaps))
            end = float(found[-1][-1])
        return _until(np.concatenate(found), until_s)


@dataclass(frozen=True, slots=True)
class Bursty:
    """Silences, and bursts whose size and speed are drawn anew each time; large bursts are faster."""

    silence_s: float  # mean; Weibull
    silence_cv: float
    size_mean: float  # requests of a burst; log-normal
    size_median: float
    speed_median: float  # requests per second inside a burst; log-normal
    speed_spread: float  # standard deviation of its logarithm
    correlation: float  # of the logarithms of size and speed
    gap_cv: float  # inside a burst; Gamma

    def times(self, until_s: float, rng: Generator) -> Times:
        """The arrivals from 0 to a time, which is excluded; it begins with a silence."""
        found, end = [np.empty(0)], 0.0
        while end < until_s:
            count = math.ceil((until_s - end) / self.silence_s) + 10
            found.append(end + np.cumsum(self._gaps(count, rng)))
            end = float(found[-1][-1])
        return _until(np.concatenate(found), until_s)

    def _gaps(self, bursts: int, rng: Generator) -> Times:
        size_spread = math.sqrt(2 * math.log(self.size_mean / self.size_median))
        size, other = rng.standard_normal((2, bursts))
        sizes = np.ceil(self.size_median * np.exp(size_spread * size)).astype(int)
        speed = self.correlation * size + math.sqrt(1 - self.correlation**2) * other
        speeds = self.speed_median * np.exp(self.speed_spread * speed)
        gaps: Times = _gamma(self.gap_cv, int(sizes.sum()), rng) / np.repeat(speeds, sizes)
        shape = _weibull_shape(self.silence_cv)
        silences = self.silence_s / math.gamma(1 + 1 / shape) * rng.weibull(shape, bursts)
        gaps[np.cumsum(sizes) - sizes] = silences  # a silence stands before the first request of a burst
        return gaps


@dataclass(frozen=True, slots=True)
class Swing:
    """A day: the rate swings smoothly about its mean, once a day, and is never zero."""

    peak_to_mean: float
    peak_at_s: float  # after midnight, where a trace begins

    def warped(self, times: Times, until_s: float) -> Times:
        """Move arrivals of an even rate to where the day has them; their number over a day is the same.

        `times` end where `elapsed(until_s)` does.
        """
        grid = np.arange(0.0, until_s + 2 * _GRID_S, _GRID_S)
        moved: Times = np.interp(times, self._elapsed(grid), grid)
        return _until(moved, until_s)

    def elapsed(self, until_s: float) -> float:
        """The seconds at the mean rate that bring as many requests as the day does up to this time."""
        grid = np.arange(0.0, until_s + 2 * _GRID_S, _GRID_S)
        return float(np.interp(until_s, grid, self._elapsed(grid)))

    def _elapsed(self, grid: Times) -> Times:
        # exp(k cos) has mean I0(k) over a turn, so its peak over its mean is exp(k) / I0(k).
        k = float(brentq(lambda k: math.exp(k) / i0(k) - self.peak_to_mean, 0.0, 50.0))
        rates = np.exp(k * np.cos((grid - self.peak_at_s) * 2 * math.pi / DAY_S)) / i0(k)
        steps = (rates[1:] + rates[:-1]) / 2 * np.diff(grid)
        return np.concatenate(([0.0], np.cumsum(steps)))


def _gamma(cv: float, count: int, rng: Generator) -> Times:
    """Gamma variates of mean 1."""
    drawn: Times = rng.gamma(1 / cv**2, cv**2, count)
    return drawn


def _weibull_shape(cv: float) -> float:
    def excess(shape: float) -> float:
        return math.gamma(1 + 2 / shape) / math.gamma(1 + 1 / shape) ** 2 - 1 - cv**2

    return float(brentq(excess, *_SHAPES))


def _until(times: Times, until_s: float) -> Times:
    found: Times = times[times < until_s]
    return found
