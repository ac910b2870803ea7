"""How full the replicas of a pool are within a tick, and what room they have for guests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scipy.special import gammainc


@dataclass(slots=True)
class Level:
    """How full the replicas of a pool are that the ingresses know; `fill` raises it."""

    now: float  # sequences per replica
    load: float  # when the tick ends, with those that were let in so far
    replicas: int
    staying: Sequence[float]  # by flow: the share of those let in that is still there then
    crowding: float = 1.0  # variance over mean of their sequences
    looks: float = 1.0  # how often in the tick what is free is filled, by all ingresses together
    guests: float = 0.0  # that were let in

    def room(self, edge: int) -> float:
        """How many guests find room yet, who go only where fewer sequences are than `edge`.

        At each look they fill all replicas up to there; loads are about gamma variates.
        """
        shape = max(self.now, 1e-9) / self.crowding
        reached = edge / self.crowding
        free = edge * float(gammainc(shape, reached)) - self.now * float(gammainc(shape + 1.0, reached))
        return max(0.0, self.looks * self.replicas * free - self.guests)
