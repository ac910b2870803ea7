"""The order of those who wait."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from app.admission.lanes import LOOKAHEAD, Lanes, Ticket
from app.routing.ask import Ask
from autoscaling.types import Role, Tier


def ticket(
    name: str,
    entered: float = 0.0,
    tier: Tier = Tier.STANDARD,
    *,
    sequences: int = 1,
    pin: Role | None = None,
    parameters: frozenset[str] = frozenset(),
) -> Ticket[str]:
    return Ticket(Ask(tier, pin=pin, sequences=sequences, parameters=parameters), entered, name)


def names(lanes: Lanes[str], tier: Tier = Tier.STANDARD) -> list[str]:
    return [found.owner for found in lanes.next_of(tier)]


def test_first_come_first_served() -> None:
    """The order of a lane is the order of arrival; one that goes back to the front comes first."""
    lanes: Lanes[str] = Lanes()
    for name in ("a", "b"):
        lanes.join(ticket(name))
    lanes.join(ticket("again"), front=True)
    assert ["again", "a", "b"] == names(lanes)


def test_the_longest_waiting_lane_comes_first() -> None:
    """Lanes of a tier follow each other by how long their first one waits; other tiers are not named."""
    lanes: Lanes[str] = Lanes()
    lanes.join(ticket("late", 5.0))
    lanes.join(ticket("pinned", 1.0, pin=Role.PLAIN))
    lanes.join(ticket("biased", 3.0, parameters=frozenset({"logit_bias"})))
    lanes.join(ticket("other", 0.0, Tier.BATCH))
    assert ["pinned", "biased", "late"] == names(lanes)


def test_few_of_a_lane_are_looked_at() -> None:
    """A thousand that wait cost no more than four."""
    lanes: Lanes[str] = Lanes()
    for index in range(1000):
        lanes.join(ticket(str(index)))
    assert 4 == LOOKAHEAD
    assert ["0", "1", "2", "3"] == names(lanes)


@pytest.mark.parametrize(
    ("sequences", "expected"),
    [
        ([8, 8, 8, 8, 8, 1, 1], [8, 1, 1]),
        ([8, 9, 4, 4, 2, 1], [8, 4, 2, 1]),
        ([9, 8, 7, 6, 5, 1], [9, 8, 7, 6, 1]),
        ([1, 1, 4, 1, 1, 1], [1, 1, 4, 1, 1]),
    ],
)
def test_large_requests_do_not_bar_small_ones(sequences: list[int], expected: list[int]) -> None:
    """Where eight sequences found no room, the next eight are not asked, and a single one is."""
    lanes: Lanes[str] = Lanes()
    for count in sequences:
        lanes.join(ticket("x", sequences=count))
    assert expected == [found.ask.sequences for found in lanes.next_of(Tier.STANDARD)]


def test_one_may_leave_while_they_are_looked_at() -> None:
    """A look goes on when one of those it sees gives up its place."""
    lanes: Lanes[str] = Lanes()
    for name in ("a", "b", "c"):
        lanes.join(ticket(name))
    seen = []
    for found in lanes.next_of(Tier.STANDARD):
        seen.append(found.owner)
        lanes.leave(found)
    assert ["a", "b", "c"] == seen
    assert not lanes


def test_a_place_is_given_up_once() -> None:
    """Leaving twice, or without a place, changes nothing."""
    lanes: Lanes[str] = Lanes()
    mine, stranger = ticket("mine", sequences=3), ticket("stranger")
    lanes.join(mine)
    assert [False, True, False] == [lanes.leave(stranger), lanes.leave(mine), lanes.leave(mine)]
    assert 0 == lanes.waiting(Tier.STANDARD)


class LanesMachine(RuleBasedStateMachine):
    """Any order of arrivals and departures."""

    def __init__(self) -> None:
        super().__init__()
        self.lanes: Lanes[str] = Lanes()
        self.inside: list[Ticket[str]] = []
        self.now = 0.0

    @rule(
        tier=st.sampled_from(list(Tier)),
        sequences=st.integers(1, 9),
        pin=st.none() | st.sampled_from(list(Role)),
        front=st.booleans(),
    )
    def join(self, tier: Tier, sequences: int, pin: Role | None, front: bool) -> None:
        self.now += 1.0
        one = ticket("x", self.now, tier, sequences=sequences, pin=pin)
        self.lanes.join(one, front=front)
        self.inside.insert(0 if front else len(self.inside), one)

    @precondition(lambda self: self.inside)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        one = data.draw(st.sampled_from(self.inside))
        assert self.lanes.leave(one)
        assert not self.lanes.leave(one)
        self.inside.remove(one)

    @invariant()
    def counts_are_the_sums_of_those_inside(self) -> None:
        for tier in Tier:
            expected = sum(one.ask.sequences for one in self.inside if one.ask.tier is tier)
            assert expected == self.lanes.waiting(tier)
        assert {one.ask.tier for one in self.inside} == self.lanes.tiers()
        assert bool(self.inside) is bool(self.lanes)

    @invariant()
    def every_lane_keeps_its_order(self) -> None:
        for lane, tickets in self.lanes.all():
            assert [one for one in self.inside if one.lane == lane] == list(tickets)

    @invariant()
    def the_first_of_every_lane_is_looked_at(self) -> None:
        for tier in Tier:
            seen = list(self.lanes.next_of(tier))
            for lane, tickets in self.lanes.all():
                assert (lane[0] is tier) is (tickets[0] in seen)


TestLanesMachine = LanesMachine.TestCase
TestLanesMachine.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
