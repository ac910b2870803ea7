"""How much the loads of a pool's replicas differ: by chance, and because ingresses learn late of each other.

A replica's load moves around the mean: requests come at random, those that are there leave, and the next ones
prefer whichever looks emptier.  An ingress knows what it sent itself; of all others it knows what a report
said, which is up to seconds old.  So it corrects what was, sends too much where there was room, and the loads
swing.  The linear equation of this, with its delays, gives the variance (as in Küchler and Mensch, 1992, for
one fixed delay), and the correction is as strong as the spread of loads it looks at is small.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from app.simulation.ingress import POLL_S
from autoscaling.observations import REPORT_PERIOD_S

# Arrivals at a replica rise by this share of their mean for each standard deviation that it looks emptier.
# The better of two has 0.56 if loads are normal (twice the normal density of the difference); more, as loads
# that swing have no tails.  1.0 is closest to variances counted in the event model: 1, 2 and 4 ingresses,
# snapshots 0 to 3 s old, requests of conversations and of code, 2.6 to 12.4 a second and replica.
PULL: Final = 1.0
FINE: Final = 0.05  # logarithm; numbers that differ by less are taken for the same

Complex = NDArray[np.complex128]


class Crowd:
    """Of pools before which so many ingresses work, with snapshots that are so old when they come."""

    def __init__(self, ingresses: int, snapshot_delay_s: float) -> None:
        self._oldest_s = REPORT_PERIOD_S + 2 * snapshot_delay_s + POLL_S
        self._omega = np.concatenate(([0.0], np.geomspace(0.01, 160.0, 240)))
        turn = 1j * self._omega
        held = _even(turn, POLL_S + snapshot_delay_s)  # a snapshot is used until the next one comes
        old = np.exp(-turn * snapshot_delay_s) * _even(turn, REPORT_PERIOD_S) * held
        self._known: Complex = old + (1.0 - held) / ingresses  # as seen, over what is there
        self.own = 1.0 / ingresses  # share of what came to a replica of late that an ingress knows
        # How long ingresses take the same replicas for the emptier ones; one alone knows what it sent.
        self.held_s = max(REPORT_PERIOD_S, POLL_S + snapshot_delay_s) if ingresses > 1 else 0.0
        # How often all ingresses together fill what they take for free.
        self.looks_per_s = ingresses / max(REPORT_PERIOD_S, POLL_S + snapshot_delay_s)
        self._found: dict[tuple[int, ...], float] = {}

    def variance(self, coming_per_s: float, leaving_per_s: float, picky: float = 0.0) -> float:
        """Of the sequences of a replica, to each of which so many come.

        `leaving_per_s` is the share of a surplus that leaves.  `picky` tells how much more strongly those who
        come look for emptier replicas than the better of two would have it, as a share, on average.
        """
        pull = PULL * (1.0 + picky)
        key = tuple(round(math.log(one) / FINE) for one in (coming_per_s, leaving_per_s, pull))
        if key not in self._found:
            self._found[key] = self._variance(*(math.exp(one * FINE) for one in key))
        return self._found[key]

    def _variance(self, coming: float, leaving: float, pull: float) -> float:
        """By the largest deviation that feeds itself: a larger one fades, for the pull is weaker there."""
        most = 3.0 * max(math.sqrt(coming / leaving), coming * self._oldest_s)
        deviations = most * np.geomspace(1.0, 1e-3, 90)
        strength = (pull * coming / deviations)[:, None]
        decay = 1j * self._omega + leaving
        answer = decay + strength * self._known
        density = 2 * coming / np.abs(answer) ** 2
        beyond = 2 * coming / self._omega[-1]
        fed = (np.trapezoid(density, self._omega, axis=1) + beyond) / math.pi
        # Nyquist: where the answer turns while it is negative, a deviation grows by itself.
        turns = np.diff(np.sign(answer.imag[:, 1:]), axis=1) != 0
        grows = (turns & (answer.real[:, 1:-1] < 0)).any(axis=1)
        place = int(np.argmax((fed >= deviations**2) | grows))
        return float(deviations[place] ** 2)


def _even(turn: Complex, seconds: float) -> Complex:
    """The mean of exp(-turn x t) for t from 0 to so many seconds."""
    angle = turn * max(seconds, 1e-9)
    return np.where(np.abs(angle) < 1e-6, 1.0, -np.expm1(-angle) / np.where(angle == 0, 1.0, angle))
