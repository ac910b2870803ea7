"""A policy at another size."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app.simulation.scaled_policy import SizeError, replicas_of, scaled, size_words
from autoscaling.policy import CapacityPolicy
from autoscaling.policy_file import read_policy
from deployments import starter_policies
from tests.autoscaling.good_policy import policy


def bounds(found: CapacityPolicy) -> tuple[int, ...]:
    """The budget, then minimum and maximum of both pools."""
    pools = found.spec.pools
    return (
        found.spec.budget.max,
        pools.speculative.min_replicas,
        pools.speculative.max_replicas,
        pools.plain.min_replicas,
        pools.plain.max_replicas,
    )


@pytest.mark.parametrize(
    ("replicas", "expected"),
    [
        (8, (8, 1, 6, 2, 7)),
        (16, (16, 2, 12, 4, 14)),
        (64, (64, 8, 48, 16, 56)),
        (12, (12, 1, 9, 3, 11)),
        (4, (4, 1, 3, 1, 4)),
        (2, (2, 1, 2, 1, 2)),
    ],
)
def test_bounds_grow_and_shrink_with_the_budget(replicas: int, expected: tuple[int, ...]) -> None:
    """A minimum is rounded down and stays at least 1, a maximum is rounded up."""
    assert expected == bounds(scaled(policy(), replicas))


def test_everything_that_counts_replicas_is_scaled() -> None:
    """First sizes, surge, steps, limits on change, schedules and overrides; shares and times stay."""
    given = policy(
        {
            "spec.budget.min": 6,
            "spec.bootstrap.speculative": 3,
            "spec.bootstrap.plain": 5,
            "spec.surgeSlots": 1,
            "spec.guardrails.maxStepReplicas": 2,
            "spec.schedules[].pools.plain": {"minReplicas": 3, "maxReplicas": 4},
            "spec.overrides[].replicas": 4,
            "spec.behavior.scaleUp.policies[].value": 1,
            "spec.behavior.scaleUp.stabilizationWindowSeconds": 15,
            "spec.behavior.scaleDown.policies[].type": "Percent",
            "spec.behavior.scaleDown.policies[].value": 50,
            "spec.behavior.scaleDown.stabilizationWindowSeconds": 100,
            "spec.backfill.reserve": 3,
        }
    )
    spec = scaled(given, 16).spec

    assert spec.bootstrap is not None
    assert (12, 6, 10) == (spec.budget.min, spec.bootstrap.speculative, spec.bootstrap.plain)
    assert (2, 4) == (spec.surge_slots, spec.guardrails.max_step_replicas)
    assert spec.schedules[0].pools.plain is not None
    assert (6, 8) == (
        spec.schedules[0].pools.plain.min_replicas,
        spec.schedules[0].pools.plain.max_replicas,
    )
    assert 8 == spec.overrides[0].replicas
    assert (2, 50) == (spec.behavior.scale_up.policies[0].value, spec.behavior.scale_down.policies[0].value)
    assert (15, 3) == (spec.behavior.scale_up.stabilization_window_seconds, spec.backfill.reserve)


@pytest.mark.parametrize("name", starter_policies.names())
@pytest.mark.parametrize("replicas", [2, 3, 5, 8, 13, 64, 1000])
def test_every_starter_has_every_size(name: str, replicas: int) -> None:
    """As a policy that a service would take."""
    given = read_policy(starter_policies.text(name)).policy
    assert given is not None
    made = scaled(given, replicas)

    assert replicas == replicas_of(made)
    again = read_policy(json.dumps(made.model_dump(mode="json", by_alias=True, exclude_none=True)))
    assert () == again.problems


def test_a_replica_of_several_accelerators_is_counted_as_one() -> None:
    """The budget is in accelerators, the size in replicas."""
    given = policy(
        {
            "spec.budget.max": 32,
            "spec.pools.plain.acceleratorsPerReplica": 4,
            "spec.pools.speculative.acceleratorsPerReplica": 4,
        }
    )

    assert 8 == replicas_of(given)
    assert 48 == scaled(given, 12).spec.budget.max


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {"spec.pools.plain.acceleratorsPerReplica": 2},
            "spec.pools: a replica takes 1 accelerators in speculative and 2 in plain",
        ),
        (
            {
                "spec.budget.max": 9,
                "spec.pools.plain.acceleratorsPerReplica": 2,
                "spec.pools.speculative.acceleratorsPerReplica": 2,
            },
            "spec.budget.max is 9, which is no whole number of replicas of 2 accelerators: write 8",
        ),
        (
            {"spec.budget.max": 1},
            "spec.budget.max is 1, which is less than a replica of 1 accelerators for each of two pools: "
            "write 2",
        ),
    ],
)
def test_a_policy_without_one_size_is_refused(changes: dict[str, Any], expected: str) -> None:
    """With the field, its value, and what would do."""
    with pytest.raises(SizeError, match=expected):
        replicas_of(policy(changes))


@pytest.mark.parametrize("replicas", [-1, 0, 1, 10_001])
def test_a_size_for_which_there_is_no_policy_is_refused(replicas: int) -> None:
    """One replica for each pool is the least."""
    with pytest.raises(
        SizeError,
        match=f"{replicas} replicas are not simulated: give 2, which is one for each pool, to 10,000",
    ):
        scaled(policy(), replicas)


def test_bounds_are_told_in_words() -> None:
    """Of both pools."""
    assert "speculative 1 to 6, plain 2 to 7" == size_words(policy())
