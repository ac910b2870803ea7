"""What may be published now on the way to the targets."""

from __future__ import annotations

import pytest

from autoscaling.decisions import Memory, Observation, PolicyInForce, Reason, Sizes, Step
from autoscaling.stage import keep, stage
from tests.autoscaling.worlds import both, policy, pool, remembered, rules, seen

TWO = policy(speculative=rules(accelerators=2), plain=rules(maximum=8))


def staged(
    targets: Sizes, plan: Sizes, observation: Observation, given_policy: PolicyInForce | None = None
) -> Step:
    return stage(Step("stabilize", Reason.SHORTFALL, targets), plan, observation, given_policy or policy())


def fleet(
    speculative: tuple[int, int, int],
    plain: tuple[int, int, int],
    *,
    plain_target: int | None = None,
) -> Observation:
    """Running, starting and draining replicas of both pools; Serve's target is what runs and starts."""
    target = plain[0] + plain[1] if plain_target is None else plain_target
    return seen(
        speculative=pool(
            speculative[0] + speculative[1],
            running=speculative[0],
            starting=speculative[1],
            draining=speculative[2],
        ),
        plain=pool(target, running=plain[0], starting=plain[1], draining=plain[2]),
    )


@pytest.mark.parametrize(
    ("plan", "observation", "expected"),
    [
        (both(4, 4), fleet((4, 0, 0), (4, 0, 0)), both(4, 3)),  # the donor first
        (both(4, 3), fleet((4, 0, 0), (4, 0, 0)), both(4, 3)),  # Ray Serve has not obeyed yet
        (both(4, 3), fleet((4, 0, 0), (3, 0, 1)), both(4, 3)),  # the donor drains
        (both(4, 3), fleet((4, 0, 0), (3, 0, 0)), both(5, 3)),  # and is gone
        (both(5, 3), fleet((4, 0, 0), (3, 0, 0)), both(5, 3)),  # a stale observation changes nothing
        (both(5, 3), fleet((4, 1, 0), (3, 0, 0)), both(5, 3)),
        (both(5, 3), fleet((5, 0, 0), (3, 0, 0)), both(5, 3)),
        (both(4, 3), fleet((4, 0, 0), (2, 0, 0)), both(5, 3)),  # a crashed replica keeps its accelerator
        (both(4, 3), fleet((3, 0, 0), (3, 0, 1)), both(4, 3)),
    ],
)
def test_shrink_then_grow(plan: Sizes, observation: Observation, expected: Sizes) -> None:
    """From 4 and 4 to 5 and 3: the receiver is asked for when the donor's accelerator is really free."""
    step = staged(both(5, 3), plan, observation)
    assert ("stage", "shortfall", expected) == (step.name, step.reason, step.targets)


def test_a_crash_is_not_taken_for_a_drain() -> None:
    """A replica that Ray Serve will replace, by the target of that look, holds its accelerator."""
    before_it_obeyed = fleet((4, 0, 0), (3, 0, 0), plain_target=4)
    assert both(4, 3) == staged(both(5, 3), both(4, 3), before_it_obeyed).targets


def test_a_wait_is_said() -> None:
    """The step names the replicas that wait, and nothing when none do."""
    waits = staged(both(6, 2), both(4, 2), fleet((4, 0, 0), (2, 0, 2)))
    assert "waits for free accelerators: 2 of speculative" == waits.detail
    assert "" == staged(both(4, 4), both(4, 4), fleet((4, 0, 0), (4, 0, 0))).detail


def test_a_receiver_grows_as_accelerators_come_free() -> None:
    """Of two replicas that move the first starts when the first donor is gone."""
    assert both(5, 2) == staged(both(6, 2), both(4, 2), fleet((4, 0, 0), (2, 0, 1))).targets


def test_surge_is_used_while_a_donor_drains() -> None:
    """With surge accelerators the receiver starts at once; the plan itself stays inside the budget."""
    step = staged(both(5, 3), both(4, 4), fleet((4, 0, 0), (4, 0, 0)), policy(surge=1))
    assert both(5, 3) == step.targets


@pytest.mark.parametrize(
    ("plain", "expected"), [((2, 0, 2), both(2, 2)), ((2, 0, 1), both(2, 2)), ((2, 0, 0), both(3, 2))]
)
def test_a_replica_of_two_accelerators_needs_both(plain: tuple[int, int, int], expected: Sizes) -> None:
    """It is asked for when two accelerators are free, not one."""
    assert expected == staged(both(3, 2), both(2, 2), fleet((2, 0, 0), plain), TWO).targets


def test_free_accelerators_are_given_once() -> None:
    """Two receivers share what is free in turn."""
    assert both(5, 3) == staged(both(5, 5), both(3, 3), fleet((3, 0, 1), (3, 0, 0)), policy(budget=9)).targets
    assert (
        both(5, 4) == staged(both(5, 5), both(3, 3), fleet((3, 0, 1), (3, 0, 0)), policy(budget=10)).targets
    )


def test_nothing_grows_over_the_budget() -> None:
    """While more accelerators are held than the budget has, no pool grows."""
    step = staged(both(4, 2), both(3, 2), fleet((3, 0, 0), (2, 0, 4)), policy(budget=6))
    assert both(3, 2) == step.targets


def test_a_pool_that_has_not_yet_shrunk_does_not_grow() -> None:
    """A target that went down and up again waits for Ray Serve; else each look would grant the same twice."""
    observation = fleet((4, 0, 0), (4, 0, 0))
    assert both(4, 3) == staged(both(4, 5), both(4, 3), observation, policy(budget=9)).targets


@pytest.mark.parametrize("unknown", ["running", "starting", "draining"])
def test_unknown_states_leave_the_plan(unknown: str) -> None:
    """Neither pool's plan changes, not even a donor's."""
    observation = seen(plain=pool(**{unknown: None}))
    assert both(4, 4) == staged(both(5, 3), both(4, 4), observation).targets


def test_a_tick_without_targets_keeps_the_last_plan() -> None:
    """A bootstrap is published whole; else the last plan stays, and without one the start is published."""
    held = Step("know", Reason.HELD, both(5, 3))
    assert both(4, 3) == keep(held, remembered(5, 3, plan=both(4, 3))).targets
    assert both(5, 3) == keep(held, Memory()).targets
    assert both(4, 4) == keep(Step("know", Reason.BOOTSTRAP, both(4, 4)), remembered(5, 3)).targets
    assert keep(Step("know", Reason.HELD, None), Memory()).targets is None
