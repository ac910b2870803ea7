"""Targets back inside the policy's bounds and budget."""

from __future__ import annotations

import pytest

from autoscaling.bounds import assigned, bounds, fill, impossible
from autoscaling.decisions import PolicyInForce, PoolRules, Signal, Sizes
from autoscaling.signals import Signals
from tests.autoscaling.worlds import PLAIN, SPEC, both, policy, rules


def demands(speculative: float | None, plain: float | None) -> Signals:
    return {SPEC: Signal(speculative, None, None, 0, 8), PLAIN: Signal(plain, None, None, 0, 8)}


UNKNOWN = demands(None, None)


def test_allowed_targets_stay() -> None:
    """Nothing to repair gives the same targets."""
    step = bounds(both(4, 4), UNKNOWN, policy())
    assert ("bounds", "steady", both(4, 4)) == (step.name, step.reason, step.targets)


@pytest.mark.parametrize(
    ("speculative", "plain", "reason", "expected", "detail"),
    [
        (rules(6), rules(), "bounds", both(6, 2), "speculative has 4 replicas and may have 6 to 7 by pools"),
        (
            rules(1, 2),
            rules(),
            "bounds",
            both(2, 6),
            "speculative has 4 replicas and may have 1 to 2 by pools",
        ),
        (
            rules(),
            rules(5, bound_by="schedule night"),
            "schedule",
            both(3, 5),
            "plain has 4 replicas and may have 5 to 7 by schedule night",
        ),
        (
            rules(2, 2, forced=True, bound_by="override launch"),
            rules(5, bound_by="schedule night"),
            "override",
            both(2, 6),
            "speculative has 4 replicas and may have 2 to 2 by override launch",
        ),
        (
            rules(5, bound_by="override launch"),
            rules(),
            "override",
            both(5, 3),
            "speculative has 4 replicas and may have 5 to 7 by override launch",
        ),
    ],
)
def test_a_bound_is_obeyed_and_the_other_pool_pays_or_gains(
    speculative: PoolRules, plain: PoolRules, reason: str, expected: Sizes, detail: str
) -> None:
    """Outside its bounds a pool goes to the nearest bound at once; the strongest layer gives the reason."""
    step = bounds(both(4, 4), UNKNOWN, policy(speculative=speculative, plain=plain))
    assert (reason, expected, detail) == (step.reason, step.targets, step.detail)


@pytest.mark.parametrize(
    ("signals", "expected"),
    [
        (UNKNOWN, both(3, 3)),
        (demands(24, 8), both(4, 2)),
        (demands(8, 24), both(2, 4)),
        (demands(None, 24), both(3, 3)),
        (demands(99, 0), both(4, 2)),
    ],
)
def test_a_lowered_budget_is_paid_by_the_pool_with_less_load(signals: Signals, expected: Sizes) -> None:
    """Replica by replica the less loaded pool gives; unknown load keeps the bootstrap's shares."""
    step = bounds(both(4, 4), signals, policy(budget=6))
    assert ("over_budget", expected) == (step.reason, step.targets)


def test_a_lowered_budget_says_so() -> None:
    """The detail has both numbers."""
    step = bounds(both(4, 4), UNKNOWN, policy(budget=6))
    assert "the targets need 8 accelerators and the budget is 6" == step.detail


def test_minimums_are_kept_when_the_budget_shrinks() -> None:
    """The pool with less load stops at its minimum, then the other pays."""
    step = bounds(both(4, 4), demands(30, 0), policy(plain=rules(3), budget=5))
    assert both(2, 3) == step.targets


@pytest.mark.parametrize(
    ("speculative", "plain", "budget", "expected"),
    [
        (rules(), rules(), 8, ""),
        (
            rules(5, bound_by="override launch"),
            rules(4),
            8,
            "the minimums need 9 accelerators and the budget is 8 "
            "(speculative 5 by override launch, plain 4 by pools)",
        ),
        (
            rules(),
            rules(5, 2, bound_by="schedule night"),
            8,
            "plain has the minimum 5 and the maximum 2 (schedule night)",
        ),
    ],
)
def test_an_impossible_policy_is_found(
    speculative: PoolRules, plain: PoolRules, budget: int, expected: str
) -> None:
    """Minimums above the budget or above a maximum cannot be obeyed; the reason names who asks for it."""
    assert expected == impossible(policy(speculative=speculative, plain=plain, budget=budget))


@pytest.mark.parametrize(
    ("given_policy", "sizes", "signals", "expected"),
    [
        (policy(budget=10), both(4, 4), demands(24, 8), both(6, 4)),
        (policy(budget=10), both(4, 4), demands(8, 24), both(4, 6)),
        (policy(budget=10), both(4, 4), UNKNOWN, both(5, 5)),
        (policy(budget=10, bootstrap=both(8, 2)), both(4, 4), UNKNOWN, both(6, 4)),
        (policy(budget=9), both(4, 4), UNKNOWN, both(5, 4)),
        (policy(speculative=rules(maximum=4), budget=10), both(4, 4), demands(99, 0), both(4, 6)),
        (policy(speculative=rules(accelerators=2), budget=9), both(2, 4), demands(99, 0), both(2, 5)),
        (
            policy(speculative=rules(accelerators=2), plain=rules(maximum=4), budget=9),
            both(2, 4),
            UNKNOWN,
            both(2, 4),
        ),
        (policy(budget=10, budget_min=8), both(4, 4), UNKNOWN, both(4, 4)),
    ],
)
def test_unassigned_accelerators_go_to_the_needier_pool(
    given_policy: PolicyInForce, sizes: Sizes, signals: Signals, expected: Sizes
) -> None:
    """Up to budget.min whole replicas are added, by load, else by bootstrap share, inside the maximums."""
    assert expected == fill(sizes, signals, given_policy)


def test_a_replica_costs_its_accelerators() -> None:
    """Accelerators of both pools add up."""
    assert 8 == assigned(both(2, 4), policy(speculative=rules(accelerators=2)))
