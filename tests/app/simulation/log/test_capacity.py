"""Recorded capacity decisions made again under two policies, each from where the service really was."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app.simulation.log.capacity import CapacityAgain, capacity_again
from app.simulation.log.difference import capacity_row
from app.simulation.log.read import Seen
from autoscaling.decisions import Reason
from autoscaling.policy import CapacityPolicy
from tests.autoscaling.good_policy import policy
from tests.autoscaling.worlds import WALL, both, pool, seen

EVERY_S = 5.0


def rules(window_s: float = 30.0, cooldown_s: float = 60.0, **changes: Any) -> CapacityPolicy:
    """Eight accelerators, all assigned; a pool that is short receives after a window."""
    return policy(
        {
            "spec.bootstrap.speculative": 4,
            "spec.bootstrap.plain": 4,
            "spec.behavior.scaleUp.stabilizationWindowSeconds": window_s,
            "spec.behavior.scaleDown.stabilizationWindowSeconds": 0,
            "spec.behavior.cooldownSeconds": cooldown_s,
            **changes,
        }
    )


def short(count: int, epoch: int = 1) -> list[Seen]:
    """So many looks at a speculative pool whose callers want more than its limits, while plain is idle."""
    found = []
    for number in range(count):
        looked = seen(1000.0 + EVERY_S * number, speculative=pool(4, wanted=40), plain=pool(4, wanted=0))
        found.append(Seen(epoch, looked, both(4, 4)))
    return found


def again(found: Sequence[Seen], old: CapacityPolicy, new: CapacityPolicy) -> CapacityAgain:
    return capacity_again(found, old, new)


def test_the_same_policy_decides_the_same() -> None:
    """Every look is decided on, and none differs."""
    result = again(short(5), rules(), rules())

    assert (5, 5, 0, 0, ()) == (
        result.remade,
        result.as_recorded,
        result.elsewhere,
        result.otherwise,
        result.changes,
    )


def test_a_shorter_window_moves_sooner() -> None:
    """After 10 s instead of 30 s; the record shows the targets as they stayed."""
    result = again(short(4), rules(), rules(window_s=10))

    first, second = result.changes
    assert (4, 1, 1) == (result.as_recorded, result.elsewhere, result.otherwise)
    assert first.moves_differ
    assert WALL + 1010.0 == first.wall == first.until
    assert (both(4, 4), Reason.WINDOW) == (first.old.targets, first.old.reason)
    assert (both(5, 3), Reason.SHORTFALL) == (first.new.targets, first.new.reason)
    # It began a move that nobody made, so it cools down, and the other one goes on waiting.
    assert not second.moves_differ
    assert (Reason.WINDOW, Reason.COOLDOWN) == (second.old.reason, second.new.reason)


def test_a_move_that_nobody_made_is_asked_for_again() -> None:
    """After its cool-down, for the real targets are what they were."""
    result = again(short(10), rules(window_s=3600), rules(window_s=0, cooldown_s=20))

    assert [1000.0, 1020.0, 1040.0] == [
        change.wall - WALL for change in result.changes if change.moves_differ
    ]


def test_neighbours_that_decide_alike_are_one_stretch() -> None:
    """A bound that the new policy has is asked for at every look."""
    result = again(
        short(4), rules(window_s=3600), rules(window_s=3600, **{"spec.pools.plain.maxReplicas": 3})
    )

    (change,) = result.changes
    assert (4, 4) == (result.elsewhere, result.remade)
    assert (WALL + 1000.0, WALL + 1015.0) == (change.wall, change.until)
    assert (both(5, 3), Reason.BOUNDS) == (change.new.targets, change.new.reason)


def test_another_life_begins_its_windows_anew() -> None:
    """Its clock is another one; a window of 10 s passes in neither of two lives of 10 s."""
    two = [*short(2), *short(2, epoch=2)]
    result = again(two, rules(), rules(window_s=10))

    assert (4, 0) == (result.remade, result.elsewhere)


def test_lives_that_overlap_by_the_wall_are_taken_apart() -> None:
    """A clock that was set back between them: both windows of 10 s pass as they do alone."""
    one, other = short(4), short(4, epoch=2)
    mixed = [look for pair in zip(one, other, strict=True) for look in pair]
    alone = again(one, rules(), rules(window_s=10))

    assert 2 * alone.elsewhere == again(mixed, rules(), rules(window_s=10)).elsewhere == 2


def test_decisions_start_from_the_targets_of_the_record() -> None:
    """After the service had moved a replica, the next look starts there."""
    moved = [*short(1), *(Seen(1, seen(1010.0 + EVERY_S * at), both(5, 3)) for at in range(2))]
    result = again(moved, rules(), rules(**{"spec.pools.speculative.maxReplicas": 4}))

    assert both(5, 3) == result.changes[-1].before
    assert (both(5, 3), both(4, 4)) == (result.changes[-1].old.targets, result.changes[-1].new.targets)


def test_a_change_is_told_in_words() -> None:
    """When, for how long, and what both decide."""
    result = again(short(3), rules(), rules(window_s=10))
    at, lasts, old, new = capacity_row(result.changes[0])

    assert ("2027-01-15T08:16:50Z", "once") == (at, lasts)
    assert old.startswith("speculative 4, plain 4 (waiting_for_window: speculative is short (demand 40")
    assert new.startswith("moves to speculative 5, plain 3 (shortfall: speculative is short (demand 40")
