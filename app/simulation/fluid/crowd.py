"""How much the loads of a pool's replicas differ: by chance, and because ingresses learn late of each other.

A replica's load moves around the mean: requests come at random, those that are there leave, and the next ones
prefer whichever looks emptier.  An ingress knows what it sent itself; of all others it knows what a report
said, and takes a replica for an average one the more, the longer ago that was.  So it evens out what it sends
itself, and what others do in part and too late.  The linear equations of this, with their delays, give the
variance (as in Küchler and Mensch, 1992, for one fixed delay): one for a replica's load, and one for what an
ingress has there beyond its part.  The correction is as strong as the spread that ingresses see is small.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from app.simulation.ingress import POLL_S
from autoscaling.observations import REPORT_PERIOD_S

# Arrivals at a replica rise by this share of their mean for each standard deviation that it looks emptier:
# the better of two is taken, and what is seen is about normal (twice the normal density of the difference).
PULL: Final = 1 / math.sqrt(math.pi)
FINE: Final = 0.1  # logarithm; numbers that differ by less are taken for the same

Complex = NDArray[np.complex128]


@dataclass(frozen=True, slots=True)
class Loads:
    """Variances of the sequences at the replicas of a pool, in sequences squared."""

    there: float
    seen: float  # by an ingress


class Crowd:
    """Of pools before which so many ingresses work, with snapshots that are so old when they come."""

    def __init__(self, ingresses: int, snapshot_delay_s: float) -> None:
        self.own = 1.0 / ingresses  # share of what came to a replica of late that an ingress knows
        self._delay_s = snapshot_delay_s
        self._used_s = POLL_S + snapshot_delay_s  # a snapshot is used until the next one comes
        # Of what an ingress knows of the others, on average.
        self.age_s = snapshot_delay_s + (REPORT_PERIOD_S + self._used_s) / 2
        self._omega = np.concatenate(([0.0], np.geomspace(0.01, 160.0, 240)))
        self._found: dict[tuple[int, ...], Loads] = {}

    def loads(self, coming_per_s: float, leaving_per_s: float, stay_s: float) -> Loads:
        """Of replicas to each of which so many come a second, and stay so long.

        `leaving_per_s` is the share of a surplus that leaves.
        """
        key = tuple(round(math.log(one) / FINE) for one in (coming_per_s, leaving_per_s, stay_s))
        if key not in self._found:
            self._found[key] = self._loads(*(math.exp(one * FINE) for one in key))
        return self._found[key]

    def _loads(self, coming: float, leaving: float, stay_s: float) -> Loads:
        """By the largest spread that feeds itself: a larger one fades, for the pull is weaker there."""
        turn = 1j * self._omega
        fade = turn + 1.0 / stay_s
        # Of what others have there: how much an ingress goes by, over what is there.
        others = np.exp(-fade * self._delay_s) * _even(fade, REPORT_PERIOD_S) * _even(turn, self._used_s)
        known, beyond = self.own + (1.0 - self.own) * others, 1.0 - others
        oldest_s = REPORT_PERIOD_S + self._delay_s + self._used_s
        most = 3.0 * max(math.sqrt(coming / leaving), coming * oldest_s)
        spreads = most * np.geomspace(1.0, 1e-3, 90)
        strength = (PULL * coming / spreads)[:, None]
        load = turn + leaving + strength * known
        part = turn + leaving + strength * self.own * beyond
        seen = self._sum(coming * np.abs(known / load) ** 2)
        seen += self._sum(coming * self.own * (1.0 - self.own) * np.abs(beyond / part) ** 2)
        grows = _grows(load) | ((self.own < 1.0) & _grows(part))
        place = int(np.argmax((seen >= spreads**2) | grows))
        return Loads(float(self._sum(coming / np.abs(load[place]) ** 2)), float(seen[place]))

    def _sum(self, density: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of twice a density over all frequencies; beyond the last one it falls with the square."""
        inside = np.trapezoid(density, self._omega, axis=-1)
        return np.asarray(2 / math.pi * (inside + density[..., -1] * self._omega[-1]))


def _grows(answer: Complex) -> NDArray[np.bool_]:
    """Whether a deviation grows by itself: the answer turns while it is negative (Nyquist)."""
    turns = np.diff(np.sign(answer.imag[:, 1:]), axis=1) != 0
    return np.asarray((turns & (answer.real[:, 1:-1] < 0)).any(axis=1))


def _even(turn: Complex, seconds: float) -> Complex:
    """The mean of exp(-turn x t) for t from 0 to so many seconds."""
    angle = turn * max(seconds, 1e-9)
    return np.where(np.abs(angle) < 1e-6, 1.0, -np.expm1(-angle) / np.where(angle == 0, 1.0, angle))
