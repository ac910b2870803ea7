"""A move from its beginning to its end."""

from __future__ import annotations

from dataclasses import replace

import pytest

from autoscaling.decisions import Memory, Move, Observation, Reason, Sizes
from autoscaling.moves import LATE, begin, follow, in_flight, replaced, staged, words
from tests.autoscaling.worlds import both, policy, pool, remembered, rules, seen

HERE = seen(1000.0)


EVEN, MORE = both(4, 4), both(5, 3)


def started(before: Sizes = EVEN, after: Sizes = MORE, observation: Observation = HERE) -> Move:
    return begin(1, before, after, Reason.SHORTFALL, observation, policy())


def followed(move: Move, observation: Observation) -> tuple[Memory, Move | None]:
    return follow(remembered(move=move), observation, policy())


def drained(now: float, running: int = 4, reporting: int = 4, starting: int = 1) -> Observation:
    return seen(
        now,
        speculative=pool(5, running=running, reporting=reporting, starting=starting),
        plain=pool(3),
    )


@pytest.mark.parametrize(
    ("before", "after", "source", "receiver", "count", "state", "waiting"),
    [
        (both(4, 4), both(5, 3), "plain", "speculative", 1, "draining", "1 replica of plain to drain"),
        (both(4, 4), both(5, 2), "plain", "speculative", 1, "draining", "2 replicas of plain to drain"),
        (both(4, 4), both(6, 4), None, "speculative", 2, "starting", "2 replicas of speculative to start"),
        (both(4, 4), both(4, 3), "plain", None, 1, "draining", "1 replica of plain to drain"),
        (
            both(4, 4),
            both(3, 2),
            "plain",
            None,
            2,
            "draining",
            "1 replica of speculative to drain, 2 replicas of plain to drain",
        ),
    ],
)
def test_a_move_begins(
    before: Sizes,
    after: Sizes,
    source: str | None,
    receiver: str | None,
    count: int,
    state: str,
    waiting: str,
) -> None:
    """Source and receiver are who loses and gains most; it starts with whatever is waited for first."""
    move = started(before, after)
    assert ("m1", 1000.0, 1_800_001_000.0, "shortfall", 1) == (
        move.id,
        move.at,
        move.wall,
        move.reason,
        move.revision,
    )
    assert (source, receiver, count, state, waiting) == (
        move.source,
        move.receiver,
        move.count,
        move.state,
        move.waiting_for,
    )
    assert (before, after) == (move.before, move.after)


def test_a_move_is_followed_to_its_end() -> None:
    """Drained when no replica is too many or draining; done when the receiver's replicas run and report."""
    memory, ended = followed(started(), seen(1010.0, plain=pool(3, draining=1)))
    assert ("draining", "1 replica of plain to drain", None) == (
        memory.move.state,
        memory.move.waiting_for,
        ended,
    )
    memory, ended = follow(memory, drained(1020.0), policy())
    assert ("starting", 1020.0, "1 replica of speculative to start", None) == (
        memory.move.state,
        memory.move.drained_at,
        memory.move.waiting_for,
        ended,
    )
    memory, ended = follow(memory, drained(1030.0, running=5, starting=0), policy())
    assert ("starting", None) == (memory.move.state, ended)
    memory, ended = follow(memory, drained(1040.0, running=5, reporting=5, starting=0), policy())
    assert ("done", 1040.0, "", 1100.0) == (
        memory.move.state,
        memory.move.ended_at,
        memory.move.waiting_for,
        memory.cooling_until,
    )
    assert memory.move == ended
    assert (memory, None) == follow(memory, drained(1050.0, running=5, reporting=5, starting=0), policy())


def test_a_move_back_to_free_budget_ends_drained() -> None:
    """Without a receiver nothing has to start."""
    memory, ended = followed(started(after=both(4, 3)), seen(1020.0, plain=pool(3)))
    assert ("done", 1020.0, 1020.0) == (memory.move.state, memory.move.drained_at, memory.move.ended_at)
    assert memory.move == ended


def test_unknown_states_end_nothing() -> None:
    """Without Ray Serve's word the move stays as it was."""
    move = started()
    memory, ended = followed(move, seen(1020.0, plain=pool(3, running=None)))
    assert (move, None) == (memory.move, ended)


def test_a_move_is_given_up_after_its_time() -> None:
    """After move_timeout_s it is over, cools down, and still says what it waited for."""
    memory, _ = followed(started(), seen(1899.0, plain=pool(3, draining=1)))
    assert in_flight(memory.move)
    memory, ended = follow(memory, seen(1900.0, plain=pool(3, draining=1)), policy())
    assert ("timed_out", 1900.0, f"1 replica of plain to drain{LATE}", 1960.0) == (
        ended.state,
        ended.ended_at,
        ended.waiting_for,
        memory.cooling_until,
    )


def test_a_late_drain_is_said() -> None:
    """Longer than drainTimeoutSeconds of the pool that gives, once; the start that follows is not late."""
    late = "1 replica of plain to drain (late: longer than drainTimeoutSeconds)"
    memory, _ = followed(started(), seen(1300.0, plain=pool(3, draining=1)))
    assert "1 replica of plain to drain" == memory.move.waiting_for
    for now in (1301.0, 1302.0):
        memory, _ = follow(memory, seen(now, plain=pool(3, draining=1)), policy())
        assert late == memory.move.waiting_for
    memory, _ = follow(memory, seen(1303.0, plain=pool(3)), policy())
    assert "1 replica of speculative to start" == memory.move.waiting_for


def test_a_move_does_not_end_when_it_begins() -> None:
    """The observation that began a move cannot end it, even if its counts would."""
    move = started(after=both(4, 3), observation=seen(1000.0, plain=pool(3)))
    memory, ended = followed(move, seen(1000.0, plain=pool(3)))
    assert (move, None, "Ray Serve") == (memory.move, ended, move.waiting_for)


def test_a_replaced_move_is_over() -> None:
    """It keeps when it ended and waits for nothing."""
    move = replaced(started(), 1030.0)
    assert ("replaced", 1030.0, "", False) == (move.state, move.ended_at, move.waiting_for, in_flight(move))


def test_the_start_of_the_receiver_is_noted_once() -> None:
    """It is the first plan in which the receiver has more than before."""
    move = staged(started(), both(4, 3), 1001.0)
    assert move.started_at is None
    move = staged(move, both(5, 3), 1020.0)
    assert 1020.0 == staged(move, both(5, 3), 1030.0).started_at


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (both(4, 4), both(5, 3), "1 replica moves from plain"),
        (both(4, 4), both(2, 6), "2 replicas move from speculative"),
        (both(2, 4), both(3, 2), "speculative 2 -> 3, plain 4 -> 2"),
        (both(4, 4), both(4, 6), "2 replicas of plain added from free budget"),
        (both(4, 4), both(3, 4), "1 replica of speculative given back"),
        (both(4, 4), both(3, 3), "speculative 4 -> 3, plain 4 -> 3"),
    ],
)
def test_a_change_in_words(before: Sizes, after: Sizes, expected: str) -> None:
    """The end of a sentence, in whole replicas."""
    assert expected == words(before, after)


def test_targets_of_the_move_count_not_the_bounds() -> None:
    """A move waits for the sizes it was begun for, whatever the policy says since."""
    memory = remembered(move=started())
    memory, ended = follow(memory, drained(1020.0, 5, 5, 0), policy(speculative=rules(7)))
    assert ("done", 1020.0) == (ended.state, memory.move.ended_at)
    assert replace(ended, drained_at=None).after == both(5, 3)
