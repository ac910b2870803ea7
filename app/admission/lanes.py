"""The queues: one lane per tier, pin and parameters, first come, first served in each; pure."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from app.routing.ask import Ask
from autoscaling.types import Role, Tier

Lane = tuple[Tier, Role | None, frozenset[str], frozenset[str] | None]
LOOKAHEAD: Final = 4  # behind those that cannot use the room there is, so many of a lane are looked at

_T = TypeVar("_T")


@dataclass(eq=False, slots=True)
class Ticket(Generic[_T]):
    """One request that has a place in a lane, or may get one."""

    ask: Ask
    entered: float
    owner: _T  # whom its turn is told to
    tried: frozenset[str] = frozenset()  # replicas that did not accept it at this moment

    @property
    def lane(self) -> Lane:
        """Those that compete for the same room."""
        return self.ask.tier, self.ask.pin, self.ask.parameters, self.ask.among


class Lanes(Generic[_T]):
    """All who wait at one ingress."""

    def __init__(self) -> None:
        self._lanes: dict[Lane, OrderedDict[Ticket[_T], None]] = {}
        self._sequences = dict.fromkeys(Tier, 0)

    def __bool__(self) -> bool:
        """Whether anybody waits."""
        return bool(self._lanes)

    def waiting(self, tier: Tier) -> int:
        """Sequences of a tier that wait."""
        return self._sequences[tier]

    def tiers(self) -> frozenset[Tier]:
        """The tiers of which somebody waits."""
        return frozenset(lane[0] for lane in self._lanes)

    def join(self, ticket: Ticket[_T], *, front: bool = False) -> None:
        """Take the last place, or the first one again; once."""
        lane = self._lanes.setdefault(ticket.lane, OrderedDict())
        lane[ticket] = None
        if front:
            lane.move_to_end(ticket, last=False)
        self._sequences[ticket.ask.tier] += ticket.ask.sequences

    def leave(self, ticket: Ticket[_T]) -> bool:
        """Give up the place; False when it had none."""
        lane = self._lanes.get(ticket.lane)
        if lane is None or ticket not in lane:
            return False
        del lane[ticket]
        self._sequences[ticket.ask.tier] -= ticket.ask.sequences
        if not lane:
            del self._lanes[ticket.lane]
        return True

    def next_of(self, tier: Tier) -> Iterator[Ticket[_T]]:
        """Those of a tier that may use the room there is, the longest waiting lane first.

        Whoever asks for the next one has found no room for the last.  Then of several sequences no
        more need be asked for as many or more: large requests do not bar small ones behind them.
        """
        lanes = [tuple(lane) for key, lane in self._lanes.items() if key[0] is tier]
        for lane in sorted(lanes, key=lambda tickets: tickets[0].entered):
            yield from _foremost(lane)

    def all(self) -> tuple[tuple[Lane, tuple[Ticket[_T], ...]], ...]:
        """Every lane with those who wait there, in their order."""
        return tuple((key, tuple(lane)) for key, lane in self._lanes.items())


def _foremost(lane: Iterable[Ticket[_T]]) -> Iterator[Ticket[_T]]:
    """LOOKAHEAD single sequences, and as many larger requests, each smaller than the one before."""
    single = larger = 0
    smallest = None
    for ticket in lane:
        sequences = ticket.ask.sequences
        if sequences == 1:
            single += 1
            yield ticket
            if single == LOOKAHEAD:
                return
        elif larger < LOOKAHEAD and (smallest is None or sequences < smallest):
            larger, smallest = larger + 1, sequences
            yield ticket
