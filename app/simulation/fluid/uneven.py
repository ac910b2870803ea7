"""How the replicas of a cell differ from the mean one, by what came to them of late and was there."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from app.simulation.fluid.crowd import Crowd
from app.simulation.fluid.load import Answers

LATELY_S: Final = 3.0  # about as long as ingresses go by old numbers
FEWEST: Final = 1e-3  # sequences of a replica, and a second: below, nothing is known of how they differ
LEAST_STEADY: Final = 0.05  # where nearly all the time goes to prompts
FAR: Final = 8.0  # standard deviations above the floor, where no load is below it
FLAT: Final = 0.05  # standard deviations above the floor; less is a rounding error
MOST_SURPLUS: Final = (-0.5, 1.0)


@dataclass(frozen=True, slots=True)
class Uneven:
    """What is different where a sequence is, or may be, from the mean replica."""

    crowding: float = 1.0  # variance over mean of the sequences at a replica
    unfilled: float = 1.0  # likewise, but for the guests that fill the emptier ones
    seen: float = 1.0  # likewise of the sequences that an ingress sees there
    leaving_per_s: float = 1.0  # share of a replica's surplus that leaves
    surplus: float = 0.0  # of arrivals where a sequence is, over those at the mean replica, less 1
    own: float = 0.0  # share of what came of late that whoever sends more knows at once


@dataclass(frozen=True, slots=True)
class Lately:
    """Of the mean replica, over the last seconds."""

    came_per_s: float = 0.0
    held: float = 0.0  # sequences that were there

    def then(self, seconds: float, came: float, held: float) -> Lately:
        """With a tick more, in which so many came to a replica and at whose end so many were there."""
        newest = -math.expm1(-seconds / LATELY_S)
        return Lately(
            self.came_per_s + newest * (came / seconds - self.came_per_s),
            self.held + newest * (held - self.held),
        )

    def thinned(self, share: float) -> Lately:
        """With idle replicas more: so large a share of all have been there."""
        return Lately(share * self.came_per_s, share * self.held)

    def uneven(
        self,
        crowd: Crowd,
        replicas: int,
        steady: float,
        limit: float,
        hidden: float = 0.0,
        floor: float = 0.0,
    ) -> Uneven:
        """How so many replicas differ, which get no more than `limit` sequences each.

        `steady` is the share by which departures rise with the load.  `hidden` is the share of the variance
        of their sequences that does not show in the tokens they have left, by which ingresses go.
        """
        came, held = self.came_per_s, self.held
        if came < FEWEST or held < FEWEST:
            return Uneven()
        leaving = came / held * max(LEAST_STEADY, steady)
        variance, seen = came / leaving, 1.0  # of one that takes whoever comes
        if replicas > 1:
            loads = crowd.loads(came, leaving, held / came)
            variance = loads.there + hidden * (held - loads.there)
            seen = (loads.seen + hidden * (crowd.own * held - loads.seen)) / variance
        # Replicas have no more than the limit: where the mean is near it they are alike.
        variance = 1.0 / (1.0 / variance + 1.0 / max(0.5, limit - held) ** 2)
        unfilled = variance / held
        variance *= levelled((held - floor) / math.sqrt(seen * variance)) if floor > 0 else 1.0
        crowding = variance / held
        least, most = MOST_SURPLUS
        surplus = min(most, max(least, (leaving * crowding - came / held) / came))
        own = crowd.own if replicas > 1 else 0.0
        return Uneven(crowding, unfilled, seen * crowding, leaving, surplus, own)


def levelled(above: float) -> float:
    """The variance that is left where guests fill all replicas to a floor, over that without them.

    The mean is so many standard deviations `above` it.  Normal loads below the floor come to it.
    """
    if above >= FAR:
        return 1.0
    above = max(above, FLAT)
    z = float(brentq(lambda z: _above_floor(z) - above, -FAR, FAR))
    return (1.0 + z * z) * float(ndtr(z)) + z * _density(z) - above**2


def _above_floor(z: float) -> float:
    """The mean of a standard normal value above -z, less that place, where lower ones count as there."""
    return _density(z) + z * float(ndtr(z))


def _density(z: float) -> float:
    return math.exp(-z * z / 2) / math.sqrt(2 * math.pi)


def hidden_share(answers: Answers) -> float:
    """The share of the variance of a replica's sequences that the tokens they have left do not tell.

    An ingress takes every answer to have the mean length: when it has so many tokens, nothing is left of it.
    Requests come at random here, and tokens evenly.
    """
    lengths = answers.tokens / answers.mean
    until = np.minimum(lengths, 1.0)
    both = float(answers.shares @ (until - until**2 / 2))
    left = float(answers.shares @ (1.0 - (1.0 - until) ** 3)) / 3
    return 1.0 - both**2 / left
