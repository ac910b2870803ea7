"""The order of those who wait."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from app.admission.demands import LOOKAHEAD, LOOKAHEAD_IN_ALL, Refused
from app.admission.lanes import Lanes, Ticket
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
    max_tokens: int | None = None,
    draftable: bool = False,
    prompt_tokens: int = 0,
    tokens_per_step: float | None = None,
) -> Ticket[str]:
    ask = Ask(
        tier,
        pin=pin,
        sequences=sequences,
        parameters=parameters,
        max_tokens=max_tokens,
        draftable=draftable,
        prompt_tokens=prompt_tokens,
        tokens_per_step=tokens_per_step,
    )
    return Ticket(ask, entered, name)


def names(lanes: Lanes[str], tier: Tier = Tier.STANDARD) -> list[str]:
    """Those who are looked at when nobody finds room."""
    return [found.owner for found in lanes.next_of(tier, Refused())]


def served(lanes: Lanes[str], tier: Tier = Tier.STANDARD) -> list[str]:
    """The order in which they are served when everybody finds room."""
    found = []
    while (first := next(lanes.next_of(tier, Refused()), None)) is not None:
        lanes.leave(first)
        found.append(first.owner)
    return found


def test_first_come_first_served() -> None:
    """The order of a lane is the order of arrival; one that goes back to the front comes first."""
    lanes: Lanes[str] = Lanes()
    for name in ("a", "b"):
        lanes.join(ticket(name))
    lanes.join(ticket("again"), front=True)
    assert ["again", "a", "b"] == served(lanes)


def test_the_longest_waiting_lane_comes_first() -> None:
    """Lanes of a tier follow each other by how long their first one waits; other tiers are not named."""
    lanes: Lanes[str] = Lanes()
    lanes.join(ticket("late", 5.0))
    lanes.join(ticket("pinned", 1.0, pin=Role.PLAIN))
    lanes.join(ticket("biased", 3.0, parameters=frozenset({"logit_bias"})))
    lanes.join(ticket("other", 0.0, Tier.BATCH))
    assert ["pinned", "biased", "late"] == names(lanes)


def test_equal_demands_are_looked_at_once() -> None:
    """A thousand that wait for the same cost no more than one, and the one behind them is found."""
    lanes: Lanes[str] = Lanes()
    for index in range(1000):
        lanes.join(ticket(str(index), max_tokens=4000 + index % 50))
    lanes.join(ticket("short", max_tokens=10))
    assert ["0", "short"] == names(lanes)


@pytest.mark.parametrize(
    ("first", "second", "looked_at"),
    [
        ({"max_tokens": 10}, {"max_tokens": 4000}, False),
        ({"max_tokens": 4000}, {"max_tokens": 10}, True),
        ({"max_tokens": 10}, {}, True),
        ({}, {"max_tokens": 4000}, True),
        ({"max_tokens": 10}, {"max_tokens": 10, "sequences": 2}, False),
        ({"max_tokens": 4000}, {"max_tokens": 10, "sequences": 2}, True),
        ({}, {"draftable": True}, True),
        ({}, {"tokens_per_step": 1.5}, True),
        ({"prompt_tokens": 1000}, {"prompt_tokens": 1010}, False),
        ({"prompt_tokens": 1000}, {"prompt_tokens": 2000}, True),
        ({"prompt_tokens": 2000}, {"prompt_tokens": 1000}, True),
    ],
)
def test_who_demands_as_much_or_more_is_passed_over(
    first: dict[str, int], second: dict[str, int], looked_at: bool
) -> None:
    """In sequences and answer; what differs in kind, or has another prompt, has a look of its own."""
    lanes: Lanes[str] = Lanes()
    lanes.join(ticket("first", **first))  # type: ignore[arg-type]
    lanes.join(ticket("second", **second))  # type: ignore[arg-type]
    assert (["first", "second"] if looked_at else ["first"]) == names(lanes)


@pytest.mark.parametrize(
    ("sequences", "expected"),
    [
        ([8, 8, 8, 8, 8, 1, 1], [8, 1]),
        ([8, 9, 4, 4, 2, 1], [8, 4, 2, 1]),
        ([9, 8, 7, 6, 5, 1], [9, 8, 7, 6, 5, 1]),
        ([1, 1, 4, 1, 1, 1], [1]),
    ],
)
def test_large_requests_do_not_bar_small_ones(sequences: list[int], expected: list[int]) -> None:
    """Where eight sequences found no room, the next eight are not asked, and a single one is."""
    lanes: Lanes[str] = Lanes()
    for count in sequences:
        lanes.join(ticket("x", sequences=count))
    assert expected == [found.ask.sequences for found in lanes.next_of(Tier.STANDARD, Refused())]


def test_the_lookahead_is_bounded() -> None:
    """32 demands of a lane; 128 of all lanes, and of each lane the first all the same."""
    lanes: Lanes[str] = Lanes()
    for name in [f"p{index}" for index in range(9)]:
        for index in range(40):
            one = ticket(name, parameters=frozenset({name}), draftable=True, tokens_per_step=1.0 + index)
            lanes.join(one)
    found = names(lanes)
    assert (32, 128) == (LOOKAHEAD, LOOKAHEAD_IN_ALL)
    assert [32, 32, 32, 32, 1, 1, 1, 1, 1] == [found.count(f"p{index}") for index in range(9)]


def test_a_look_remembers_who_found_no_room() -> None:
    """After a seat was given out, those who found no room in this look are not asked again."""
    lanes: Lanes[str] = Lanes()
    refused = Refused()
    for name, longest in (("long", 4000), ("short", 10), ("short too", 10)):
        lanes.join(ticket(name, max_tokens=longest))
    look = lanes.next_of(Tier.STANDARD, refused)
    assert "long" == next(look).owner
    short = next(look)
    lanes.leave(short)
    assert ["short too"] == [found.owner for found in lanes.next_of(Tier.STANDARD, refused)]
    refused.forget()
    assert ["long", "short too"] == [found.owner for found in lanes.next_of(Tier.STANDARD, refused)]


def test_one_may_leave_while_they_are_looked_at() -> None:
    """A look goes on when one of those it sees gives up its place."""
    lanes: Lanes[str] = Lanes()
    for sequences, name in ((3, "a"), (2, "b"), (1, "c")):
        lanes.join(ticket(name, sequences=sequences))
    seen = []
    for found in lanes.next_of(Tier.STANDARD, Refused()):
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
        assert not self.lanes.has(one)
        assert not self.lanes.is_first(one)
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
            assert [True] + [False] * (len(tickets) - 1) == [self.lanes.is_first(one) for one in tickets]
            assert all(self.lanes.has(one) for one in tickets)

    @invariant()
    def the_first_of_every_lane_is_looked_at(self) -> None:
        for tier in Tier:
            seen = list(self.lanes.next_of(tier, Refused()))
            for lane, tickets in self.lanes.all():
                assert (lane[0] is tier) is (tickets[0] in seen)


TestLanesMachine = LanesMachine.TestCase
TestLanesMachine.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
