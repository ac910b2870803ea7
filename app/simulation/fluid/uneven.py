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
    # Variance over mean of those who come in a long time, beyond that of chance; and about how long they
    # come to the same replicas.
    burst: float = 0.0
    burst_s: float = 1.0
    own: float = 0.0  # share of what came of late that whoever sends more knows at once


@dataclass(frozen=True, slots=True)
class Guests:
    """Of those who come, the ones that go only to emptier replicas."""

    count: float = 0.0
    picky: float = 0.0  # each as far as there is little room for him
    narrow: float = 0.0  # each over the share of the replicas that look as if they had room

    def of(self, replicas: int) -> Guests:
        """Those of one of so many replicas."""
        return Guests(self.count / replicas, self.picky / replicas, self.narrow / replicas)


NO_GUESTS: Final = Guests()


@dataclass(frozen=True, slots=True)
class Lately:
    """Of the mean replica, over the last seconds."""

    came_per_s: float = 0.0
    guests_per_s: float = 0.0  # of these
    picky_per_s: float = 0.0
    narrow_per_s: float = 0.0
    held: float = 0.0  # sequences that were there

    def then(self, seconds: float, came: float, guests: Guests, held: float) -> Lately:
        """With a tick more, in which so many came to a replica and at whose end so many were there."""
        newest = -math.expm1(-seconds / LATELY_S)
        return Lately(
            self.came_per_s + newest * (came / seconds - self.came_per_s),
            self.guests_per_s + newest * (guests.count / seconds - self.guests_per_s),
            self.picky_per_s + newest * (guests.picky / seconds - self.picky_per_s),
            self.narrow_per_s + newest * (guests.narrow / seconds - self.narrow_per_s),
            self.held + newest * (held - self.held),
        )

    def thinned(self, share: float) -> Lately:
        """With idle replicas more: so large a share of all have been there."""
        return Lately(
            share * self.came_per_s,
            share * self.guests_per_s,
            share * self.picky_per_s,
            share * self.narrow_per_s,
            share * self.held,
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
        burst_s = max(1e-3, crowd.held_s / 2)
        burst = 2 * burst_s * came * self._swing(guests / came) if replicas > 1 and crowd.held_s else 0.0
        own = crowd.own if replicas > 1 else 0.0
        return Uneven(crowding, leaving, surplus, at_home, as_guest, burst, burst_s, own)

    def _swing(self, guests: float) -> float:
        """Variance of what comes to a replica in a moment, over the square of its mean.

        Of two replicas the emptier one is taken: one that is fuller than a share F of all those considered
        gets 2 (1 - F) times the mean.  `guests` is their share of all; they consider only some replicas.
        """
        others = 1.0 - guests
        if guests * self.came_per_s < FEWEST:
            return 1 / 3
        narrow = max(1.0, self.narrow_per_s / self.guests_per_s)
        both = 1.0 - 2 / 3 / narrow
        return others**2 / 3 + guests**2 * (4 / 3 * narrow - 1.0) + 2 * others * guests * both
