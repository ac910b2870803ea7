"""How full the replicas of a pool are within a tick, and what room they have for guests."""

from __future__ import annotations

import math
from collections.abc import Sequence

from scipy.special import gammainc, ndtr


class Level:
    """How full the replicas of a pool are that the ingresses know; `fill` raises it."""

    __slots__ = ("crowding", "guests", "load", "looks", "narrow", "now", "picky", "replicas", "staying")

    def __init__(
        self,
        now: float,
        load: float,
        replicas: int,
        staying: Sequence[float],
        crowding: float = 1.0,
        looks: float = 1.0,
    ) -> None:
        self.now = now  # sequences per replica
        self.load = load  # when the tick ends, with those that were let in so far
        self.replicas = replicas
        self.staying = staying  # by flow: the share of those let in that is still there then
        self.crowding = crowding  # variance over mean of their sequences
        self.looks = looks  # how often in the tick what is free is filled, by all ingresses together
        self.picky = 0.0  # guests, each as far as there is little room for him
        self.narrow = 0.0  # guests, each over the share of the replicas that look as if they had room
        self.guests = 0.0

    def room(self, edge: int) -> float:
        """How many guests find room yet, who go only where fewer sequences are than `edge`.

        At each look they fill all replicas up to there; loads are about gamma variates.
        """
        shape = max(self.now, 1e-9) / self.crowding
        reached = edge / self.crowding
        free = edge * float(gammainc(shape, reached)) - self.now * float(gammainc(shape + 1.0, reached))
        return max(0.0, self.looks * self.replicas * free - self.guests)

    def take(self, guests: float, edge: int) -> None:
        """Count guests that were let in.

        The fewer replicas look as if they had room, the more do all guests go to those.
        """
        self.guests += guests
        deviation = max(1e-3, self.crowding * self.now) ** 0.5
        above = min(3.0, (self.now - edge) / deviation)
        roomy = float(ndtr(-above))
        self.picky += guests * math.exp(-above * above / 2) / math.sqrt(2 * math.pi) / roomy
        self.narrow += guests / max(roomy, 1.0 / self.replicas)
