"""A memory that outlives its controller."""

from __future__ import annotations

from dataclasses import replace

from autoscaling.decisions import Change, Memory, MoveState, Reason
from autoscaling.memory import shifted
from autoscaling.moves import begin
from tests.autoscaling.worlds import PLAIN, SPEC, both, policy, remembered, seen

MOVE = replace(
    begin(3, both(4, 4), both(5, 3), Reason.SHORTFALL, seen(1000.0), policy()),
    drained_at=1020.0,
    started_at=1021.0,
)
MEMORY = remembered(
    5,
    3,
    short_since={SPEC: 990.0},
    spare_since={PLAIN: 700.0},
    changes=(Change(1000.0, SPEC, 1, 4),),
    move=MOVE,
    moves=3,
    decisions=40,
)


def test_every_time_moves_by_the_same() -> None:
    """Case C6: by the new clock everything is as long ago as it was; targets and counters are the same."""
    memory = shifted(MEMORY, -900.0, 200.0)
    assert ({SPEC: 90.0}, {PLAIN: -200.0}) == (memory.short_since, memory.spare_since)
    assert (Change(100.0, SPEC, 1, 4),) == memory.changes
    assert (100.0, 120.0, 121.0, None) == (
        memory.move.at,
        memory.move.drained_at,
        memory.move.started_at,
        memory.move.ended_at,
    )
    assert MOVE.wall == memory.move.wall
    assert (MEMORY.targets, MEMORY.plan, 3, 40) == (
        memory.targets,
        memory.plan,
        memory.moves,
        memory.decisions,
    )


def test_what_has_happened_is_never_in_the_future() -> None:
    """After a jump of the wall clock past times are now; a cool-down lasts as long as it did."""
    ended = replace(MOVE, state=MoveState.DONE, ended_at=1040.0)
    memory = shifted(replace(MEMORY, move=ended, cooling_until=1100.0), 5000.0, 300.0)
    assert ({SPEC: 300.0}, {PLAIN: 300.0}) == (memory.short_since, memory.spare_since)
    assert (300.0, 300.0, 360.0) == (memory.move.at, memory.move.ended_at, memory.cooling_until)
    assert (300.0,) == tuple(change.at for change in memory.changes)


def test_a_cool_down_comes_back() -> None:
    """Case C6: a cool-down ends as far from its move's end as before, also when a later move replaced it."""
    ended = replace(MOVE, state=MoveState.DONE, ended_at=1040.0)
    assert 200.0 == shifted(replace(MEMORY, move=ended, cooling_until=1100.0), -900.0, 200.0).cooling_until
    assert 200.0 == shifted(replace(MEMORY, cooling_until=1100.0), -900.0, 300.0).cooling_until


def test_an_empty_memory_stays_empty() -> None:
    """There is nothing to shift before the first decision."""
    assert Memory() == shifted(Memory(), -900.0, 200.0)
