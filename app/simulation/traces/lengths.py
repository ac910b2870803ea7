"""Log-normal lengths with a given median, mean and largest value."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Final

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.optimize import brentq

_NORMAL: Final = NormalDist()
_SPREADS: Final = (0.01, 3.0)  # standard deviations of the logarithm among which the fit looks


@dataclass(frozen=True, slots=True)
class LengthModel:
    """Tokens; what would be longer than the largest is cut to it, as engines and services do."""

    median: float
    mean: float
    largest: int

    def spread(self) -> float:
        """The standard deviation of the logarithm that gives the mean, the cut included."""
        return float(brentq(lambda spread: _mean(self.median, spread, self.largest) - self.mean, *_SPREADS))

    def draw(self, count: int, rng: Generator) -> NDArray[Any]:
        """So many whole numbers of tokens, each at least 1."""
        drawn = rng.lognormal(math.log(self.median), self.spread(), count)
        return np.clip(np.rint(drawn), 1, self.largest).astype(int)


def _mean(median: float, spread: float, largest: float) -> float:
    """The mean of a log-normal that is cut at the largest value."""
    edge = math.log(largest / median) / spread
    below = median * math.exp(spread**2 / 2) * _NORMAL.cdf(edge - spread)
    return below + largest * (1 - _NORMAL.cdf(edge))
