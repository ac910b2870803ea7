"""What a policy and a profile tell the ingresses, and the limits that they give."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaling.policy_in_force import in_force
from autoscaling.routing_rules import LimitsFrom, PoolSpeed, RoutingRules, TierRules
from autoscaling.rules_of_policy import measured_limit, routing_rules, with_measured_limits
from autoscaling.step_cost import tpot_s
from autoscaling.types import Role, Tier
from tests.autoscaling.good_policy import policy
from tests.autoscaling.profiles import profile

SPEC, PLAIN = Role.SPECULATIVE, Role.PLAIN
PROMISED = {"interactive": {"ttftSeconds": 1.0, "tpotSeconds": 0.05}, "standard": {"tpotSeconds": 0.1}}


def test_the_defaults_of_policy_and_rules_are_the_same() -> None:
    """An older controller, which sends no rules, and a policy that says nothing mean the same."""
    assert RoutingRules() == routing_rules(policy(), None, None, {})


def test_every_value_of_the_policy_arrives() -> None:
    """Objectives, waiting, backfill and workload under their own names."""
    found = routing_rules(
        policy(
            {
                "spec.objectives": PROMISED,
                "spec.workload": {"classify": False},
                "spec.backfill": {"enabled": False, "reserve": 0, "maxResidenceSeconds": 7},
                "spec.admission": {
                    "interactive": {"deadlineSeconds": 1, "maxWaiting": 10},
                    "standard": {"deadlineSeconds": 2},
                    "batch": {"maxWaiting": 0},
                    "batchShare": 0.25,
                },
            }
        ),
        None,
        "f",
        {SPEC: PoolSpeed(ttft_p95_s=0.5)},
    )
    assert found == RoutingRules(
        tiers={
            Tier.INTERACTIVE: TierRules(1.0, 0.05, 1.0, 10),
            Tier.STANDARD: TierRules(None, 0.1, 2.0, 256),
            Tier.BATCH: TierRules(None, None, 300.0, 0),
        },
        reserve=0,
        backfill=False,
        backfill_residence_s=7.0,
        classify=False,
        batch_share=0.25,
        limits_from=LimitsFrom.UNMEASURED,
        speeds={SPEC: PoolSpeed(ttft_p95_s=0.5)},
    )


def test_a_profile_of_the_served_model_tells_costs() -> None:
    """And the limits rest on it."""
    found = routing_rules(policy({"spec.objectives": PROMISED}), profile(), "f", {})
    assert (profile().costs, profile().tokens_per_step) == (found.costs, found.tokens_per_step)
    assert "profile" == found.limits_from


@pytest.mark.parametrize("fingerprint", ["other", None])
def test_a_profile_of_another_model_tells_nothing(fingerprint: str | None) -> None:
    """Its rules are those without one, also while no model is known."""
    promised = policy({"spec.objectives": PROMISED})
    assert routing_rules(promised, None, None, {}) == routing_rules(promised, profile(), fingerprint, {})


def test_without_an_objective_the_limits_are_not_measured() -> None:
    """The costs are known all the same."""
    found = routing_rules(policy({"spec.objectives": {"batch": {"ttftSeconds": 60}}}), profile(), "f", {})
    assert ("unmeasured", profile().costs) == (found.limits_from, found.costs)


@pytest.mark.parametrize(
    ("role", "tpot", "expected"),
    [
        # A step of B sequences: 0.016 + B x (0.0005 x 5 + 0.000001 x 500) over 2 tokens, so 28 at 0.0501 s.
        (SPEC, 0.0501, 28),
        (SPEC, 0.0202, 8),
        (SPEC, 0.001, 1),
        # 0.015 + B x 0.0005 for one token.
        (PLAIN, 0.0501, 70),
        (PLAIN, 100.0, 100_000),
        (PLAIN, None, None),
    ],
)
def test_the_limit_is_the_largest_batch_in_time(role: Role, tpot: float | None, expected: int | None) -> None:
    """By the mean tokens per step where something is drafted; at least one sequence."""
    assert expected == measured_limit(role, tpot, profile())


def test_no_measurement_no_limit() -> None:
    """Without a profile, and for a pool that it does not have."""
    only_plain = profile(pools={"plain": {"baseSeconds": 0.015, "perTokenSeconds": 0.0005}})
    assert [None, None, 70] == [
        measured_limit(SPEC, 0.0501, None),
        measured_limit(SPEC, 0.0501, only_plain),
        measured_limit(PLAIN, 0.0501, only_plain),
    ]


@pytest.mark.parametrize(
    ("objectives", "expected"),
    [
        ({}, (None, None)),
        ({"interactive": {"tpotSeconds": 0.0501}}, (28, None)),
        ({"standard": {"tpotSeconds": 0.0501}}, (None, 70)),
        ({"batch": {"tpotSeconds": 0.0501}}, (None, 70)),
        ({"interactive": {"tpotSeconds": 0.0202}, "standard": {"tpotSeconds": 0.0501}}, (8, 70)),
    ],
)
def test_each_pool_has_the_limit_of_its_own_tier(
    objectives: dict[str, Any], expected: tuple[int | None, int | None]
) -> None:
    """The speculative pool that of interactive; the plain one that of standard, else of batch."""
    found = in_force(
        policy({"spec.objectives": objectives}), 1, "", overrides=(), hold=None, wall=1_800_000_000.0
    )
    measured = with_measured_limits(found, profile())
    assert expected == (measured.pools[SPEC].measured_limit, measured.pools[PLAIN].measured_limit)
    assert found == with_measured_limits(found, None)


@given(st.floats(0.001, 1.0), st.floats(1.0, 5.0), st.integers(0, 4000))
def test_a_measured_limit_keeps_the_objective(tpot: float, tokens: float, context: int) -> None:
    """Unless not even one sequence does."""
    found = profile(contextTokens=context, tokensPerStep={"mean": tokens})
    limit = measured_limit(SPEC, tpot, found)
    assert limit is not None
    cost = found.costs[SPEC]
    assert limit == 1 or tpot_s(cost, limit, context, tokens) <= tpot
    assert tpot < tpot_s(cost, limit + 1, context, tokens)
