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
    crowding: float = 1.0  # variance over mean of their sequences, as an ingress sees them
    own: float = 1.0  # share of what is there that an ingress has sent itself
    others: float = 0.0  # sequences per replica at the time of which ingresses know each other's
    looks: float = 1.0  # how often in the tick loads have become others, so that there is room anew
    floor: float = (
        0.0  # sequences up to which guests filled every replica; 0 where there were too few of them
    )
    guests: float = 0.0  # that were let in
    bunch: float = 1.0  # of those that come to a replica together with one, that one included
    present: float = 0.0  # those of them that are there when the tick ends

    def room(self, edge: float) -> float:
        """How many guests find room yet, who are refused by a replica with `edge` sequences.

        Every ingress fills all replicas up to there by what it sees: its own part as it is, that of the
        others as it was.  So each of them fills what all have free.
        """
        free, _ = self._free(edge)
        return max(0.0, self.looks / self.own * self.replicas * free - self.guests)

    def let_in(self, guests: float, flow: int) -> None:
        """Count guests of a flow; `load` is raised by whoever lets them in."""
        self.guests += guests
        self.present += guests * self.staying[flow]

    def close(self, edge: float) -> None:
        """More guests wait than there is room for up to `edge`: wherever there is, they come at once."""
        if edge > self.floor:
            free, square = self._free(edge)
            # Whole ones come, half a sequence more on average than there is room.
            self.floor, self.bunch = edge, max(1.0, square / free + 0.5) if free > 0 else 1.0

    def _free(self, edge: float) -> tuple[float, float]:
        """The mean room below `edge` at a replica, and that of its square; loads are about gamma variates."""
        before = self.load - self.present / self.replicas
        seen = self.own * before + (1.0 - self.own) * self.others
        shape, reached = max(seen, 1e-9) / self.crowding, edge / self.crowding
        none, one, two = (float(gammainc(shape + power, reached)) for power in (0.0, 1.0, 2.0))
        square = edge * edge * none - 2 * edge * seen * one + seen * (seen + self.crowding) * two
        return edge * none - seen * one, square
