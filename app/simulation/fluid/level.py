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
    ingresses: int = 1
    others: float = 0.0  # sequences per replica as ingresses that did not send them take it when the tick ends
    looks: float = 1.0
    floor: float = 0.0  # sequences up to which guests filled every replica; 0 where there were too few of them
    guests: float = 0.0  # that were let in
    present: float = 0.0  # those of them that are there when the tick ends

    def room(self, edge: float) -> float:
        """How many guests find room yet, who go only where fewer sequences are than `edge`.

        At each look they fill all replicas up to there; loads are about gamma variates.
        """
        before = self.load - self.present / self.replicas
        seen = max(1e-9, before / self.ingresses + self.others * (1.0 - 1.0 / self.ingresses))
        shape, reached = seen / self.crowding, edge / self.crowding
        free = edge * float(gammainc(shape, reached)) - seen * float(gammainc(shape + 1.0, reached))
        return max(0.0, self.looks * self.ingresses * self.replicas * free - self.guests)
