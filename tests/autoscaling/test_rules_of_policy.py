"""What a policy and a profile tell the ingresses, and the limits that they give."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaling.policy_in_force import in_force
from autoscaling.profile_match import Served
from autoscaling.routing_rules import LimitsFrom, PoolSpeed, RoutingRules, TierRules
from autoscaling.rules_of_policy import limits_from, measured_limit, routing_rules, with_measured_limits
from autoscaling.step_cost import tpot_s
from autoscaling.types import Role, Tier
from tests.autoscaling.good_policy import policy
from tests.autoscaling.profiles import OF_F, TREE, profile

SPEC, PLAIN = Role.SPECULATIVE, Role.PLAIN
PROMISED = {"interactive": {"ttftSeconds": 1.0, "tpotSeconds": 0.05}, "standard": {"tpotSeconds": 0.1}}


def test_the_defaults_of_policy_and_rules_are_the_same() -> None:
    """An older controller, which sends no rules, and a policy that says nothing mean the same."""
    assert RoutingRules() == routing_rules(policy(), None, Served(), {})


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
        OF_F,
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
    found = routing_rules(policy({"spec.objectives": PROMISED}), profile(), OF_F, {})
    assert (profile().costs, profile().tokens_per_step) == (found.costs, found.tokens_per_step)
    assert "profile" == found.limits_from


@pytest.mark.parametrize("fingerprint", ["other", None])
def test_a_profile_of_another_model_tells_nothing(fingerprint: str | None) -> None:
    """Its rules are those without one, also while no model is known."""
    promised = policy({"spec.objectives": PROMISED})
    assert routing_rules(promised, None, Served(), {}) == routing_rules(
        promised, profile(), Served(fingerprint), {}
    )


def test_without_an_objective_the_limits_are_not_measured() -> None:
    """The costs are known all the same."""
    found = routing_rules(policy({"spec.objectives": {"batch": {"ttftSeconds": 60}}}), profile(), OF_F, {})
    assert ("unmeasured", profile().costs) == (found.limits_from, found.costs)


@pytest.mark.parametrize(
    ("role", "tpot", "expected"),
    [
        # A step of B sequences: 0.016 + B x (0.0005 x 5 + 0.000001 x 500) over 2 tokens, so 28 at 0.0501 s.
        (SPEC, 0.0501, 28),
        (SPEC, 0.0202, 8),
        (SPEC, 0.001, None),
        # 0.015 + B x 0.0005 for one token.
        (PLAIN, 0.0501, 70),
        (PLAIN, 100.0, 100_000),
        (PLAIN, None, None),
    ],
)
def test_the_limit_is_the_largest_batch_in_time(role: Role, tpot: float | None, expected: int | None) -> None:
    """By the mean tokens per step where something is drafted; none where not even one sequence is in time."""
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
    measured = with_measured_limits(found, profile(), OF_F)
    assert expected == (measured.pools[SPEC].measured_limit, measured.pools[PLAIN].measured_limit)
    assert found == with_measured_limits(found, None, OF_F)


@given(st.floats(0.001, 1.0), st.floats(1.0, 5.0), st.integers(0, 4000))
def test_a_measured_limit_keeps_the_objective(tpot: float, tokens: float, context: int) -> None:
    """None where not even one sequence does."""
    found = profile(contextTokens=context, tokensPerStep={"mean": tokens})
    limit = measured_limit(SPEC, tpot, found)
    cost = found.costs[SPEC]
    assert limit is None or tpot_s(cost, limit, context, tokens) <= tpot
    assert tpot < tpot_s(cost, (limit or 0) + 1, context, tokens)


# --- memory, refused fits, prescribed acceptance, and what is only a prior


def pools(role: str, **changes: Any) -> dict[str, Any]:
    """The pools of the usual profile, one of them with these changes."""
    return TREE["pools"] | {role: TREE["pools"][role] | changes}


REFUSED = {"points": 9, "error": 0.4, "accepted": False, "refusedBecause": "hold-out error 40 %"}


@pytest.mark.parametrize(
    ("tokens", "context", "expected"),
    [(10_000, 500, 20), (10_499, 500, 20), (100_000, 500, 70), (400, 500, 1), (400, 0, 70)],
)
def test_the_context_of_the_batch_has_to_fit(tokens: int, context: float, expected: int) -> None:
    """As many sequences of typical context as the KV cache holds, where that is less than the objective's."""
    found = profile(pools=pools("plain", kvCacheTokens=tokens), contextTokens=context)
    assert expected == measured_limit(PLAIN, 0.0501, found)


def limited(objectives: dict[str, Any], served: Served, soft: int | None = None, **changes: Any) -> Any:
    """The policy with these objectives and the limits of a profile with these changes."""
    limits = {} if soft is None else {"spec.pools.plain.limits": {"softInflight": soft}}
    found = policy({"spec.objectives": objectives} | limits)
    now = in_force(found, 1, "", overrides=(), hold=None, wall=1_800_000_000.0)
    return with_measured_limits(now, profile(**changes), served)


BOTH = {"interactive": {"tpotSeconds": 0.0501}, "standard": {"tpotSeconds": 0.0501}}


def test_the_smaller_memory_counts() -> None:
    """That of the replicas, where they report less than was measured."""
    for reported, expected in ((5_000, 10), (50_000, 20)):
        found = limited(BOTH, Served("f", {}, {PLAIN: reported}), pools=pools("plain", kvCacheTokens=10_000))
        assert expected == found.pools[PLAIN].measured_limit


def test_a_refused_fit_limits_nothing() -> None:
    """Its pool has neither a measured limit nor a cost; the other pool has both."""
    refused = pools("plain", fit=REFUSED)
    found = limited(BOTH, OF_F, pools=refused)
    assert (28, None) == tuple(found.pools[role].measured_limit for role in Role)
    assert {SPEC: LimitsFrom.PROFILE, PLAIN: LimitsFrom.UNMEASURED} == limits_from(found)
    rules = routing_rules(policy({"spec.objectives": BOTH}), profile(pools=refused), OF_F, {})
    assert {SPEC} == set(rules.costs)


def test_prescribed_acceptance_gives_costs_only() -> None:
    """No limit of the pool that drafts, and no gains; the plain pool and both costs are as measured."""
    found = limited(BOTH, OF_F, syntheticAcceptance=True)
    assert (None, 70) == tuple(found.pools[role].measured_limit for role in Role)
    synthetic = profile(syntheticAcceptance=True)
    rules = routing_rules(policy({"spec.objectives": BOTH}), synthetic, OF_F, {}, {"code": 1.5})
    assert (synthetic.costs, {"code": 1.5}) == (rules.costs, rules.tokens_per_step)


@pytest.mark.parametrize(("soft", "expected"), [(None, 70), (100, 70), (8, 8)])
def test_a_stale_profile_only_lowers(soft: int | None, expected: int) -> None:
    """The soft limit is at most its own; no limit is measured, and nothing is predicted from it."""
    found = limited(BOTH, Served("other"), soft)
    assert (None, expected) == (found.pools[PLAIN].measured_limit, found.pools[PLAIN].soft_limit)
    assert 28 == found.pools[SPEC].soft_limit
    assert set(limits_from(found).values()) == {LimitsFrom.UNMEASURED}
    rules = routing_rules(policy({"spec.objectives": BOTH}), profile(), Served("other"), {})
    assert ({}, {}, "unmeasured") == (rules.costs, rules.tokens_per_step, rules.limits_from)


def test_a_doubtful_prior_lowers_nothing() -> None:
    """A refused fit and prescribed acceptance say nothing of another model either."""
    found = limited(BOTH, Served("other"), pools=pools("plain", fit=REFUSED), syntheticAcceptance=True)
    assert (None, None) == tuple(found.pools[role].soft_limit for role in Role)


def test_while_no_model_is_known_limits_stay() -> None:
    """Neither measured nor lowered."""
    found = limited(BOTH, Served())
    assert {(None, None)} == {(rules.measured_limit, rules.soft_limit) for rules in found.pools.values()}
