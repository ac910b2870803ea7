"""The queues: one lane per tier, pin and parameters, first come, first served in each; pure."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from app.admission.demands import Demand, Refused, demand_of
from app.routing.ask import Ask
from autoscaling.types import Role, Tier

Lane = tuple[Tier, Role | None, frozenset[str], frozenset[str] | None]

_T = TypeVar("_T")


@dataclass(eq=False, slots=True)
class Ticket(Generic[_T]):
    """One request that has a place in a lane, or may get one."""

    ask: Ask
    entered: float
    owner: _T  # whom its turn is told to
    tried: frozenset[str] = frozenset()  # replicas that did not accept it at this moment
    place: int = 0  # smaller is earlier

    @property
    def lane(self) -> Lane:
        """Those that compete for the same room."""
        return self.ask.tier, self.ask.pin, self.ask.parameters, self.ask.among


@dataclass(slots=True)
class _Queue(Generic[_T]):
    """One lane: everyone in order, and the same people by what they demand."""

    everyone: OrderedDict[Ticket[_T], None] = field(default_factory=OrderedDict)
    alike: dict[Demand, OrderedDict[Ticket[_T], None]] = field(default_factory=dict)

    @property
    def first(self) -> Ticket[_T]:
        return next(iter(self.everyone))


class Lanes(Generic[_T]):
    """All who wait at one ingress."""

    def __init__(self) -> None:
        self._lanes: dict[Lane, _Queue[_T]] = {}
        self._sequences = dict.fromkeys(Tier, 0)
        self._earliest = self._latest = 0

    def __bool__(self) -> bool:
        """Whether anybody waits."""
        return bool(self._lanes)

    def waiting(self, tier: Tier) -> int:
        """Sequences of a tier that wait."""
        return self._sequences[tier]

    def tiers(self) -> frozenset[Tier]:
        """The tiers of which somebody waits."""
        return frozenset(lane[0] for lane in self._lanes)

    def has(self, ticket: Ticket[_T]) -> bool:
        """Whether it has a place."""
        lane = self._lanes.get(ticket.lane)
        return lane is not None and ticket in lane.everyone

    def is_first(self, ticket: Ticket[_T]) -> bool:
        """Whether nobody of its lane is before it."""
        lane = self._lanes.get(ticket.lane)
        return lane is not None and lane.first is ticket

    def join(self, ticket: Ticket[_T], *, front: bool = False) -> None:
        """Take the last place, or the first one again; once."""
        lane = self._lanes.setdefault(ticket.lane, _Queue())
        alike = lane.alike.setdefault(demand_of(ticket.ask), OrderedDict())
        lane.everyone[ticket] = alike[ticket] = None
        if front:
            self._earliest -= 1
            ticket.place = self._earliest
            lane.everyone.move_to_end(ticket, last=False)
            alike.move_to_end(ticket, last=False)
        else:
            self._latest += 1
            ticket.place = self._latest
        self._sequences[ticket.ask.tier] += ticket.ask.sequences

    def leave(self, ticket: Ticket[_T]) -> bool:
        """Give up the place; False when it had none."""
        lane = self._lanes.get(ticket.lane)
        if lane is None or ticket not in lane.everyone:
            return False
        demand = demand_of(ticket.ask)
        del lane.everyone[ticket], lane.alike[demand][ticket]
        self._sequences[ticket.ask.tier] -= ticket.ask.sequences
        if not lane.alike[demand]:
            del lane.alike[demand]
        if not lane.everyone:
            del self._lanes[ticket.lane]
        return True

    def next_of(self, tier: Tier, refused: Refused) -> Iterator[Ticket[_T]]:
        """Those of a tier that may use the room there is, the longest waiting lane first.

        Of a lane the first of each demand, in their order.  Whoever asks for the next one has found no room
        for the last: that is noted in `refused`, which spares all who demand as much in this look.
        """
        lanes = [(lane.first.entered, key) for key, lane in self._lanes.items() if key[0] is tier]
        for _, key in sorted(lanes, key=lambda found: found[0]):
            if refused.enough(key):
                continue
            heads = [(next(iter(alike)), demand) for demand, alike in self._lanes[key].alike.items()]
            for ticket, demand in sorted(heads, key=lambda head: head[0].place):
                if refused.covers(key, demand):
                    continue
                yield ticket
                refused.note(key, demand)
                if refused.enough(key):
                    break

    def all(self) -> tuple[tuple[Lane, tuple[Ticket[_T], ...]], ...]:
        """Every lane with those who wait there, in their order."""
        return tuple((key, tuple(lane.everyone)) for key, lane in self._lanes.items())
