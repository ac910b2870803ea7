"""Who should have a replica more and who can give one."""

from __future__ import annotations

from typing import Any

import pytest

from autoscaling.allocate import grown, want
from autoscaling.decisions import PolicyInForce, Sizes, Step
from autoscaling.signals import read
from tests.autoscaling.worlds import PLAIN, SPEC, both, policy, pool, rules, seen


def wanted(
    given_policy: PolicyInForce,
    sizes: Sizes,
    speculative: int | None,
    plain: int | None,
    **plain_changes: Any,
) -> Step:
    observation = seen(
        speculative=pool(sizes[SPEC], inflight=speculative),
        plain=pool(sizes[PLAIN], inflight=plain, **plain_changes),
    )
    return want(sizes, read(observation, given_policy, sizes), observation, given_policy)


def test_enough_everywhere_is_steady() -> None:
    """Inside the dead band nothing is wanted."""
    step = wanted(policy(), both(4, 4), 25, 25)
    assert ("want", "steady", both(4, 4), "no pool is short") == (
        step.name,
        step.reason,
        step.targets,
        step.detail,
    )


@pytest.mark.parametrize(
    ("speculative", "plain", "max_step", "expected"),
    [
        (28, 4, 1, both(5, 3)),
        (40, 0, 1, both(5, 3)),
        (40, 0, 3, both(6, 2)),
        (60, 0, 3, both(7, 1)),
        (4, 28, 1, both(3, 5)),
    ],
)
def test_a_short_pool_gets_what_it_misses(
    speculative: int, plain: int, max_step: int, expected: Sizes
) -> None:
    """As many replicas as bring it back inside its limit, at most the step limit."""
    step = wanted(policy(max_step=max_step), both(4, 4), speculative, plain)
    assert ("shortfall", expected) == (step.reason, step.targets)


def test_fewer_are_taken_when_the_donor_cannot_give_all() -> None:
    """The donor stays at or below 0.60 with what it has left."""
    step = wanted(policy(max_step=3), both(4, 4), 60, 9)
    assert ("shortfall", both(6, 2)) == (step.reason, step.targets)


def test_free_budget_comes_first() -> None:
    """Accelerators that nobody has are taken before those of the other pool."""
    step = wanted(policy(budget=10, budget_min=8, max_step=3), both(4, 4), 60, 0)
    assert ("shortfall", both(6, 4)) == (step.reason, step.targets)


def test_of_two_short_pools_the_shorter_gets_the_free_budget() -> None:
    """Free accelerators go to the pool with more load."""
    step = wanted(policy(budget=9, budget_min=8), both(4, 4), 30, 40)
    assert ("shortfall", both(4, 5)) == (step.reason, step.targets)


@pytest.mark.parametrize(
    ("given_policy", "sizes", "plain", "reason", "detail"),
    [
        (policy(), both(4, 4), 30, "no_donor", "plain is short too (demand 30, limit 8 x 4)"),
        (policy(), both(4, 4), 15, "no_donor", "plain needs its replicas (demand 15, limit 8 x 4)"),
        (policy(), both(4, 4), None, "no_donor", "what plain needs is unknown (demand unknown, limit 8 x 4)"),
        (policy(plain=rules(4)), both(4, 4), 0, "at_minimum", "plain has 4 replicas and its minimum is 4"),
        (
            policy(plain=rules(4, bound_by="schedule night")),
            both(4, 4),
            0,
            "at_minimum",
            "plain has 4 replicas and its minimum is 4 by schedule night",
        ),
        (policy(speculative=rules(maximum=4)), both(4, 4), 0, "at_maximum", "has its maximum of 4"),
        (
            policy(speculative=rules(maximum=4, bound_by="override o1")),
            both(4, 4),
            0,
            "at_maximum",
            "has its maximum of 4 by override o1",
        ),
    ],
)
def test_a_refusal_has_its_reason(
    given_policy: PolicyInForce, sizes: Sizes, plain: int | None, reason: str, detail: str
) -> None:
    """A short pool that gets nothing says why."""
    step = wanted(given_policy, sizes, 60, plain)
    assert (reason, sizes) == (step.reason, step.targets)
    assert f"speculative is short (demand 60, limit 8 x 4), but {detail}" == step.detail


@pytest.mark.parametrize(
    ("given_policy", "plain", "waits_for"),
    [
        (policy(), 30, "plain to need fewer replicas, or a higher budget.max"),
        (
            policy(plain=rules(4, bound_by="schedule night")),
            0,
            "speculative to need fewer replicas, a higher budget.max, "
            "or a lower minimum of plain (in force by schedule night)",
        ),
        (
            policy(speculative=rules(maximum=4)),
            0,
            "a higher maximum of speculative (in force by pools)",
        ),
    ],
)
def test_a_refusal_names_the_way_out(given_policy: PolicyInForce, plain: int, waits_for: str) -> None:
    """What would have to change, and what set the bound."""
    assert waits_for == wanted(given_policy, both(4, 4), 60, plain).waits_for


def test_an_exchange_that_passes_a_minimum_says_how_many_would_go() -> None:
    """One above its minimum is not enough where two have to go."""
    given_policy = policy(speculative=rules(accelerators=2), plain=rules(3))
    step = wanted(given_policy, both(2, 4), 30, 0)
    expected = (
        "speculative is short (demand 30, limit 8 x 2), "
        "but plain has 4 replicas, would give 2 and its minimum is 3"
    )
    assert ("at_minimum", expected) == (step.reason, step.detail)


@pytest.mark.parametrize(
    ("speculative", "plain", "unknown"),
    [
        (None, 20, "the demand of speculative is unknown"),
        (None, None, "the demand of speculative and the demand of plain are unknown"),
    ],
)
def test_an_unknown_need_is_not_called_enough(
    speculative: int | None, plain: int | None, unknown: str
) -> None:
    """No pool is known to be short is not the same as no pool is short."""
    step = wanted(policy(), both(4, 4), speculative, plain)
    assert ("steady", f"no pool is known to be short: {unknown}") == (step.reason, step.detail)


def test_an_objective_is_told_with_both_values() -> None:
    """What it is, what it would be with fewer replicas, and what is promised."""
    step = wanted(policy(plain=rules(ttft_s=5.0)), both(4, 4), 60, 4, ttft_p95_s=4.0)
    assert step.detail.endswith(
        "plain would leave its objective: "
        "TTFT is 4 s and would be about 5.3 s with 3 replicas; the objective is 5 s"
    )


@pytest.mark.parametrize(
    ("ttft", "tpot", "expected"),
    [
        (None, None, "shortfall"),
        (0.7, 0.03, "shortfall"),
        (0.8, 0.03, "no_donor"),  # 0.8 s with 4 replicas, 1.07 s with 3
        (0.7, 0.04, "no_donor"),
        (1.5, 0.03, "shortfall"),
        (1.5, 0.04, "no_donor"),
    ],
)
def test_a_donor_keeps_the_objective_that_it_meets(
    ttft: float | None, tpot: float | None, expected: str
) -> None:
    """A donor that would leave its objective gives nothing; one that misses it already says nothing."""
    given_policy = policy(plain=rules(ttft_s=1.0, tpot_s=0.05))
    step = wanted(given_policy, both(4, 4), 60, 4, ttft_p95_s=ttft, tpot_p95_s=tpot)
    assert expected == step.reason


@pytest.mark.parametrize(
    ("speculative", "plain", "expected"),
    [
        (4, 8, both(3, 4)),
        (8, 4, both(4, 3)),
        (None, 4, both(4, 3)),
        (20, 20, both(4, 4)),
        (None, None, both(4, 4)),
    ],
)
def test_what_nobody_needs_goes_back(speculative: int | None, plain: int | None, expected: Sizes) -> None:
    """Above budget.min the least loaded pool that does with one less gives a replica back."""
    step = wanted(policy(budget_min=4), both(4, 4), speculative, plain)
    assert ("steady" if expected == both(4, 4) else "surplus", expected) == (step.reason, step.targets)


def test_nothing_goes_back_below_the_floor_of_the_budget() -> None:
    """The last accelerators of budget.min stay assigned, also when one replica holds two."""
    given_policy = policy(speculative=rules(0, accelerators=2), plain=rules(4), budget_min=7)
    assert both(2, 4) == wanted(given_policy, both(2, 4), 0, 0).targets


def test_unassigned_budget_is_wanted_before_all_else() -> None:
    """Below budget.min the whole rest is assigned."""
    step = wanted(policy(), both(4, 2), 20, 4)
    assert ("unassigned_budget", both(6, 2)) == (step.reason, step.targets)
    assert "6 accelerators are assigned and the budget keeps 8" == step.detail


@pytest.mark.parametrize(
    ("sizes", "receiver", "count", "expected"),
    [
        (both(2, 4), SPEC, 1, both(3, 2)),
        (both(2, 3), SPEC, 1, both(3, 2)),  # one accelerator is free already
        (both(2, 4), PLAIN, 1, both(1, 5)),  # the second one stays free
        (both(2, 4), PLAIN, 2, both(1, 6)),
        (both(2, 2), SPEC, 1, both(3, 2)),
        (both(2, 4), SPEC, 0, both(2, 4)),
    ],
)
def test_replicas_of_unequal_accelerators(sizes: Sizes, receiver: Any, count: int, expected: Sizes) -> None:
    """The other pool gives as many whole replicas as the receiver's need beyond what is free."""
    found = grown(sizes, receiver, count, policy(speculative=rules(accelerators=2)))
    assert (expected, [SPEC, PLAIN]) == (found, list(found))
