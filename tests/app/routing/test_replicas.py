"""Which replica of the chosen pool: less work of two, and the home of a conversation."""

from __future__ import annotations

from collections import Counter

import pytest

from app.candidates import Candidate
from app.routing.replicas import Pick, choose_replica, home_of
from autoscaling.types import Role
from tests.app.routing.worlds import first, plain, replica

EIGHT = [plain(0, f"twinpool#plain#{name}") for name in ("a9", "b8", "c7", "d6", "e5", "f4", "g3", "h2")]
# Five names of one length, as Ray Serve makes them.
FIVE = [plain(0, f"ab{number}cd{number}") for number in range(5)]
CONVERSATIONS = [f"{number:016x}" for number in range(2000)]


def at(load: int, work: float, name: str) -> Candidate:
    return replica(Role.PLAIN, name, load, limit=32, work=work)


@pytest.mark.parametrize(
    ("draws", "expected"),
    [((0, 0), "b"), ((0, 1), "c"), ((1, 0), "b"), ((1, 1), "b"), ((2, 0), "c"), ((2, 1), "b")],
)
def test_two_are_drawn_and_the_one_with_less_work_is_taken(draws: tuple[int, int], expected: str) -> None:
    """Work is what is left to generate, not how many requests there are."""
    members = [at(1, 900.0, "a"), at(9, 100.0, "b"), at(5, 500.0, "c")]
    left = list(draws)
    found = choose_replica(members, None, lambda _n: left.pop(0))

    assert expected == found.taken.replica.replica_id
    assert (found.pick, len(found.drawn), found.members) == (Pick.LESS_WORK, 2, 3)


def test_of_equal_work_the_smaller_number_counts() -> None:
    """Then the one that was drawn first."""
    assert choose_replica([at(3, 0.0, "a"), at(2, 0.0, "b")], None, first).taken.replica.replica_id == "b"
    assert choose_replica([at(2, 0.0, "a"), at(2, 0.0, "b")], None, first).taken.replica.replica_id == "a"


def test_a_single_one_needs_no_choice() -> None:
    """Also for a conversation."""
    found = choose_replica([plain()], "c", first)

    assert (found.taken.replica.replica_id, found.pick) == ("p", Pick.ONLY_ONE)


@pytest.mark.parametrize("members", [EIGHT, FIVE], ids=["eight", "five"])
def test_conversations_are_spread(members: list[Candidate]) -> None:
    """Each replica is the home of its part of them, within a fifth, also where names differ little."""
    homes = Counter(home_of(members, one).replica.replica_id for one in CONVERSATIONS)
    fair = len(CONVERSATIONS) / len(members)

    assert len(members) == len(homes)
    assert fair * 0.8 <= min(homes.values())
    assert max(homes.values()) <= fair * 1.2


def test_every_turn_meets_the_same_replica() -> None:
    """Whatever is drawn, in whatever order the replicas are known, and while loads are about even."""
    busier = [at(3 + number % 2, 0.0, one.replica.replica_id) for number, one in enumerate(EIGHT)]
    for conversation in CONVERSATIONS[:50]:
        home = choose_replica(EIGHT, conversation, first)
        again = choose_replica(busier[::-1], conversation, lambda count: count - 1)

        assert home.taken.replica.replica_id == again.taken.replica.replica_id
        assert (home.pick, again.pick) == (Pick.SAME_CONVERSATION, Pick.SAME_CONVERSATION)


def test_only_the_conversations_of_a_lost_replica_move() -> None:
    """About one in eight."""
    left = EIGHT[:3] + EIGHT[4:]
    moved = [one for one in CONVERSATIONS if home_of(EIGHT, one) is not home_of(left, one)]

    assert {home_of(EIGHT, one).replica.replica_id for one in moved} == {EIGHT[3].replica.replica_id}
    assert 0.8 / 8 <= len(moved) / len(CONVERSATIONS) <= 1.2 / 8


@pytest.mark.parametrize(
    ("load", "stays"),
    [(1, True), (5, True), (6, True), (7, False), (20, False)],
)
def test_a_conversation_leaves_a_home_that_has_too_much(load: int, stays: bool) -> None:
    """Up to a quarter more than the mean and one: with three others of 4 and its own 6 that is 6.625."""
    conversation = CONVERSATIONS[0]
    home = home_of(FIVE[:4], conversation).replica.replica_id
    members = [
        at(load if one.replica.replica_id == home else 4, 0.0, one.replica.replica_id) for one in FIVE[:4]
    ]
    found = choose_replica(members, conversation, first)

    assert (found.pick is Pick.SAME_CONVERSATION) == stays
    assert found.home is not None
    assert found.home.replica.replica_id == home
