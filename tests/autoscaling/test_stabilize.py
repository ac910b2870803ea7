"""When a wanted change may begin."""

from __future__ import annotations

from dataclasses import replace

import pytest

from autoscaling.decisions import (
    Change,
    Limit,
    Memory,
    Move,
    MoveState,
    Observation,
    PolicyInForce,
    PoolObservation,
    Reason,
    ScaleRule,
    Signal,
    Sizes,
    Step,
)
from autoscaling.limits import allowed, changed
from autoscaling.stabilize import stabilize, watch
from tests.autoscaling.worlds import (
    AT_ONCE,
    EAGER,
    PLAIN,
    SPEC,
    both,
    long_since,
    policy,
    pool,
    remembered,
    seen,
)

READY = {"short_since": long_since(SPEC, PLAIN), "spare_since": long_since(SPEC, PLAIN)}
MOVE = Move(
    id="m7",
    at=900.0,
    wall=0.0,
    source=PLAIN,
    receiver=SPEC,
    count=1,
    reason=Reason.SHORTFALL,
    before=both(3, 5),
    after=both(4, 4),
    state=MoveState.STARTING,
    revision=1,
    waiting_for="1 replica of speculative to start",
)


def settle(
    after: Sizes,
    memory: Memory,
    *,
    reason: Reason = Reason.SHORTFALL,
    rules: PolicyInForce | None = None,
    observation: Observation | None = None,
) -> Step:
    return stabilize(
        Step("want", reason, after), both(4, 4), observation or seen(), rules or policy(), memory
    )


def test_a_lasting_shortfall_moves() -> None:
    """With both windows over, nothing on its way and no cool-down the whole change begins."""
    step = settle(both(5, 3), remembered(**READY))
    assert ("stabilize", "shortfall", both(5, 3)) == (step.name, step.reason, step.targets)


def test_nothing_wanted_is_passed_on() -> None:
    """Unchanged targets keep their reason."""
    step = settle(both(4, 4), remembered(), reason=Reason.NO_DONOR)
    assert ("no_donor", both(4, 4)) == (step.reason, step.targets)


@pytest.mark.parametrize(
    ("changes", "reason", "detail"),
    [
        ({"short_since": {SPEC: 975.0}}, "waiting_for_window", "speculative has been short for 25 of 30 s"),
        ({"short_since": {}}, "waiting_for_window", "speculative has been short for 0 of 30 s"),
        ({"spare_since": {PLAIN: 990.0}}, "waiting_for_window", "plain has been spare for 10 of 300 s"),
        ({"cooling_until": 1012.0}, "cooling_down", "the cool-down lasts 12 s more"),
        ({"move": MOVE}, "move_in_flight", "m7 waits for 1 replica of speculative to start"),
    ],
)
def test_a_change_waits(changes: dict[str, object], reason: str, detail: str) -> None:
    """Windows of both pools, the cool-down and a move on its way each hold a change back, with numbers."""
    step = settle(both(5, 3), remembered(**(READY | changes)))
    assert (reason, both(4, 4), detail) == (step.reason, step.targets, step.detail)


@pytest.mark.parametrize(
    "changes",
    [
        {"short_since": {SPEC: 970.0}},
        {"spare_since": {PLAIN: 700.0}},
        {"cooling_until": 1000.0},
        {"move": replace(MOVE, state=MoveState.DONE)},
        {"move": replace(MOVE, state=MoveState.TIMED_OUT)},
    ],
)
def test_a_change_waits_no_longer_than_it_must(changes: dict[str, object]) -> None:
    """At the end of a window or cool-down, or after a move, the change begins."""
    assert both(5, 3) == settle(both(5, 3), remembered(**(READY | changes))).targets


@pytest.mark.parametrize("observed", [pool(running=3, starting=1), pool(running=3), pool(starting=1)])
def test_a_receiver_that_still_starts_gets_no_more(observed: object) -> None:
    """Case C3: while a pool's own replicas start, or are missing, its target does not grow."""
    step = settle(both(5, 3), remembered(**READY), observation=seen(speculative=observed))
    assert ("still_starting", both(4, 4)) == (step.reason, step.targets)


def test_what_is_given_back_waits_for_its_own_window_only() -> None:
    """A replica that nobody needs goes after the scale-down window; nobody has to be short."""
    memory = remembered(spare_since=long_since(PLAIN))
    assert both(4, 3) == settle(both(4, 3), memory, reason=Reason.SURPLUS).targets
    early = settle(both(4, 3), remembered(spare_since={PLAIN: 800.0}), reason=Reason.SURPLUS)
    assert ("waiting_for_window", both(4, 4)) == (early.reason, early.targets)


def test_unassigned_budget_waits_for_a_move_only() -> None:
    """Neither windows nor cool-down nor limits hold back what the budget says is assigned."""
    memory = remembered(cooling_until=2000.0)
    assert both(6, 5) == settle(both(6, 5), memory, reason=Reason.UNASSIGNED).targets
    flying = settle(both(6, 5), replace(memory, move=MOVE), reason=Reason.UNASSIGNED)
    assert ("move_in_flight", both(4, 4)) == (flying.reason, flying.targets)


@pytest.mark.parametrize(
    ("up", "down", "expected"),
    [
        ((Limit(2, 60.0),), (), both(6, 2)),
        ((), (Limit(1, 60.0),), both(5, 3)),
        ((Limit(3, 60.0),), (Limit(2, 60.0),), both(6, 2)),
        ((), (), both(7, 1)),
    ],
)
def test_both_directions_limits_cut_a_move(
    up: tuple[Limit, ...], down: tuple[Limit, ...], expected: Sizes
) -> None:
    """A move is what the receiver's and the donor's limits both allow."""
    rules = policy(**(EAGER | {"scale_up": ScaleRule(0.0, up), "scale_down": ScaleRule(0.0, down)}))
    assert expected == settle(both(7, 1), remembered(**READY), rules=rules).targets


def test_nothing_left_of_a_move_is_said() -> None:
    """When a limit is used up the reason is the behavior, not a want."""
    memory = remembered(**READY, changes=(Change(950.0, SPEC, 1, 3),))
    step = settle(both(5, 3), memory)
    assert ("behavior_limit", both(4, 4)) == (step.reason, step.targets)
    assert "scaleUp allows speculative 1 replica in 60 s; the next one in 10 s" == step.detail
    assert "room under scaleUp for speculative" == step.waits_for


@pytest.mark.parametrize(
    ("up", "down", "detail"),
    [
        (
            ScaleRule(0.0, (Limit(1, 60.0), Limit(2, 600.0)), "Min"),
            AT_ONCE,
            "scaleUp allows speculative 2 replicas in 600 s; the next one in 540 s",
        ),
        (
            ScaleRule(0.0, (Limit(1, 60.0), Limit(25, 300.0, percent=True))),
            AT_ONCE,
            "scaleUp allows speculative 1 replica in 60 s; the next one in 50 s",
        ),
        (
            ScaleRule(0.0, (Limit(3, 60.0),)),
            ScaleRule(0.0, (Limit(25, 120.0, percent=True),)),
            "scaleDown allows plain 2 replicas in 120 s; the next one in 60 s",
        ),
    ],
)
def test_the_rule_that_allows_no_more_is_named(up: ScaleRule, down: ScaleRule, detail: str) -> None:
    """Direction, pool, the limit that counts and when it lets go; of two rules the later one."""
    changes = (
        Change(940.0, SPEC, 1, 2),
        Change(940.0, PLAIN, -1, 6),
        Change(990.0, SPEC, 1, 3),
        Change(990.0, PLAIN, -1, 5),
    )
    rules = policy(scale_up=up, scale_down=down, cooldown_s=0.0)
    step = settle(both(5, 3), remembered(**READY, changes=changes), rules=rules)
    assert ("behavior_limit", detail) == (step.reason, step.detail)


@pytest.mark.parametrize(
    ("changes", "detail"),
    [
        (
            {"scale_down": ScaleRule(0.0, (), "Disabled")},
            "scaleDown is Disabled: plain never gives for demand",
        ),
        (
            {"scale_up": ScaleRule(0.0, (Limit(4, 60.0),), "Disabled")},
            "scaleUp is Disabled: speculative never receives for demand",
        ),
    ],
)
def test_a_disabled_direction_never_moves(changes: dict[str, ScaleRule], detail: str) -> None:
    """No time helps, only an edit."""
    step = settle(both(5, 3), remembered(**READY), rules=policy(**(EAGER | changes)))
    assert ("behavior_limit", both(4, 4), detail, "an edit of the policy") == (
        step.reason,
        step.targets,
        step.detail,
        step.waits_for,
    )


@pytest.mark.parametrize(
    ("observed", "plan", "detail"),
    [
        (pool(running=3, starting=1), both(4, 4), "3 of 4 replicas of speculative are running"),
        (
            pool(running=3),
            both(3, 4),
            "3 of 4 replicas of speculative run; the fourth waits for an accelerator",
        ),
        (
            pool(running=2),
            both(2, 4),
            "2 of 4 replicas of speculative run; 2 replicas wait for an accelerator",
        ),
        (
            pool(running=3),
            both(4, 4),
            "3 of 4 replicas of speculative run; the fourth has not begun to start",
        ),
    ],
)
def test_what_a_missing_replica_waits_for(observed: PoolObservation, plan: Sizes, detail: str) -> None:
    """It is starting only if one does; else it waits for an accelerator, or Ray Serve has yet to begin."""
    memory = remembered(**READY, plan=plan)
    step = settle(both(5, 3), memory, observation=seen(speculative=observed))
    assert ("still_starting", detail) == (step.reason, step.detail)


def test_no_limit_is_below_a_whole_exchange() -> None:
    """A donor limit of one replica of one accelerator lets two go for a receiver of two."""
    rules = policy(**(EAGER | {"scale_down": ScaleRule(0.0, (Limit(1, 60.0),))}), budget=12)
    rules = replace(rules, pools={**rules.pools, SPEC: replace(rules.pools[SPEC], accelerators=2)})
    step = settle(both(5, 2), remembered(**READY), rules=rules)
    assert ("shortfall", both(5, 2)) == (step.reason, step.targets)


@pytest.mark.parametrize(
    ("rule", "changes", "expected"),
    [
        (ScaleRule(0.0), (), None),
        (ScaleRule(0.0, (Limit(3, 60.0),)), (), 3),
        (ScaleRule(0.0, (Limit(3, 60.0),)), (Change(950.0, SPEC, 2, 4),), 1),
        (ScaleRule(0.0, (Limit(1, 60.0),)), (Change(950.0, SPEC, 2, 4),), 0),
        (ScaleRule(0.0, (Limit(3, 60.0),)), (Change(940.0, SPEC, 2, 4),), 3),
        (ScaleRule(0.0, (Limit(3, 60.0),)), (Change(950.0, SPEC, -2, 8),), 3),
        (ScaleRule(0.0, (Limit(3, 60.0),)), (Change(950.0, PLAIN, 2, 4),), 3),
        (ScaleRule(0.0, (Limit(50, 60.0, percent=True),)), (), 3),
        (ScaleRule(0.0, (Limit(10, 60.0, percent=True),)), (), 1),
        (ScaleRule(0.0, (Limit(50, 60.0, percent=True),)), (Change(950.0, SPEC, 1, 10),), 4),
        (ScaleRule(0.0, (Limit(1, 60.0), Limit(100, 60.0, percent=True))), (), 6),
        (ScaleRule(0.0, (Limit(1, 60.0), Limit(100, 60.0, percent=True)), "Min"), (), 1),
        (ScaleRule(0.0, (Limit(1, 60.0),), "Disabled"), (), 0),
        (ScaleRule(0.0, (), "Disabled"), (), 0),
    ],
)
def test_limits_are_hpas(rule: ScaleRule, changes: tuple[Change, ...], expected: int | None) -> None:
    """Value or percent of the size at the period's start, less what changed in it; Max, Min or Disabled."""
    assert expected == allowed(rule, changes, SPEC, 1, 6, 1000.0)


def test_a_percentage_of_nothing_is_one_replica() -> None:
    """A pool of size zero may grow by one."""
    assert 1 == allowed(ScaleRule(0.0, (Limit(50, 60.0, percent=True),)), (), SPEC, 1, 0, 1000.0)


def test_changes_are_kept_for_the_longest_period() -> None:
    """A change is remembered per pool, with the size before it, as long as some limit may ask."""
    rules = policy(scale_up=ScaleRule(0.0, (Limit(1, 100.0),)), scale_down=AT_ONCE)
    old, recent = Change(900.0, SPEC, 1, 2), Change(901.0, SPEC, 1, 3)
    assert (recent, Change(1000.0, SPEC, 1, 4), Change(1000.0, PLAIN, -2, 4)) == changed(
        (old, recent), both(4, 4), both(5, 2), rules, 1000.0
    )


def test_a_clock_runs_while_its_condition_lasts() -> None:
    """Short and spare are timed from their first tick; a tick without them, or without data, ends it."""
    short, idle = Signal(30.0, 32.0, None, 4, 8), Signal(0.0, 32.0, None, 4, 8)
    memory = watch(remembered(), {SPEC: short, PLAIN: idle}, policy(), 10.0)
    memory = watch(memory, {SPEC: short, PLAIN: idle}, policy(), 20.0)
    assert ({SPEC: 10.0}, {PLAIN: 10.0}) == (memory.short_since, memory.spare_since)
    unknown = Signal(None, None, None, 4, None)
    memory = watch(memory, {SPEC: idle, PLAIN: unknown}, policy(), 30.0)
    assert ({}, {SPEC: 30.0}) == (memory.short_since, memory.spare_since)
