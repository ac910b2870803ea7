"""How the replicas of a cell differ from the mean one, by what came to them of late and was there."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from app.simulation.fluid.crowd import Crowd

LATELY_S: Final = 3.0  # about as long as ingresses go by old numbers
FEWEST: Final = 1e-3  # sequences of a replica, and a second: below, nothing is known of how they differ
LEAST_STEADY: Final = 0.05  # where nearly all the time goes to prompts
MOST_SURPLUS: Final = (-0.5, 1.0)


@dataclass(frozen=True, slots=True)
class Uneven:
    """What is different where a sequence is, or may be, from the mean replica."""

    crowding: float = 1.0  # variance over mean of the sequences at a replica
    leaving_per_s: float = 1.0  # share of a replica's surplus that leaves
    surplus: float = 0.0  # of arrivals where a sequence is, over those at the mean replica, less 1
    at_home: float = 0.0  # more sequences where those are whose own pool it is, than where a sequence is
    as_guest: float = 0.0  # likewise of guests


@dataclass(frozen=True, slots=True)
class Lately:
    """Of the mean replica, over the last seconds."""

    came_per_s: float = 0.0
    guests_per_s: float = 0.0  # of these
    picky_per_s: float = 0.0  # guests, each as far as there is little room for him
    held: float = 0.0  # sequences that were there

    def then(self, seconds: float, came: float, guests: float, picky: float, held: float) -> Lately:
        """With a tick more, in which so many came to a replica and at whose end so many were there."""
        newest = -math.expm1(-seconds / LATELY_S)
        return Lately(
            self.came_per_s + newest * (came / seconds - self.came_per_s),
            self.guests_per_s + newest * (guests / seconds - self.guests_per_s),
            self.picky_per_s + newest * (picky / seconds - self.picky_per_s),
            self.held + newest * (held - self.held),
        )

    def thinned(self, share: float) -> Lately:
        """With idle replicas more: so large a share of all have been there."""
        return Lately(
            *(share * one for one in (self.came_per_s, self.guests_per_s, self.picky_per_s, self.held))
        )

    def uneven(self, crowd: Crowd, replicas: int, steady: float, limit: float) -> Uneven:
        """How so many replicas differ, which get no more than `limit` sequences each.

        `steady` is the share by which departures rise with the load.
        """
        came, held = self.came_per_s, self.held
        if came < FEWEST or held < FEWEST:
            return Uneven()
        leaving = came / held * max(LEAST_STEADY, steady)
        variance = came / leaving  # of one that takes whoever comes
        if replicas > 1:
            variance = crowd.variance(came, leaving, self.picky_per_s / came)
        # Replicas have no more than the limit: where the mean is near it they are alike.
        variance = 1.0 / (1.0 / variance + 1.0 / max(0.5, limit - held) ** 2)
        crowding = variance / held
        least, most = MOST_SURPLUS
        surplus = min(most, max(least, (leaving * crowding - came / held) / came))
        at_home = as_guest = 0.0
        guests = min(self.guests_per_s, came)
        if guests > FEWEST:
            # Where little room is left guests fill up what others leave, so that those meet as many anywhere.
            full = self.picky_per_s / (guests + self.picky_per_s)
            at_home = min(0.0, 1.0 - crowding) * full
            as_guest = -at_home * (came - guests) / guests
        return Uneven(crowding, leaving, surplus, at_home, as_guest)
