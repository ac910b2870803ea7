"""A policy and a profile as the rules that ingresses obey, and the limits that the two give; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from autoscaling.decisions import PolicyInForce, PoolRules
from autoscaling.policy import CapacityPolicy, TierObjective
from autoscaling.policy_in_force import pool_objective
from autoscaling.policy_routing import TierWaiting
from autoscaling.profile import MEAN, Profile, usable
from autoscaling.routing_rules import LimitsFrom, PoolSpeed, RoutingRules, TierRules
from autoscaling.step_cost import largest_batch
from autoscaling.types import Role, Tier

NO_GAINS: Mapping[str, float] = MappingProxyType({})
LARGEST_BATCH = 100_000  # as many as the policy's own limits go up to


def routing_rules(
    policy: CapacityPolicy,
    profile: Profile | None,
    fingerprint: str | None,
    speeds: Mapping[Role, PoolSpeed],
    gains: Mapping[str, float] = NO_GAINS,
) -> RoutingRules:
    """What the ingresses obey under a policy.

    `fingerprint` is of the served model: a profile of another one counts as none.  `gains` are tokens per
    step by class of the last hour, which win over the profile's.
    """
    spec, found = policy.spec, usable(profile, fingerprint)
    objectives, admission = spec.objectives, spec.admission
    limits = [measured_limit(role, pool_objective(policy, role).tpot_seconds, found) for role in Role]
    return RoutingRules(
        tiers={
            Tier.INTERACTIVE: _tier(objectives.interactive, admission.interactive),
            Tier.STANDARD: _tier(objectives.standard, admission.standard),
            Tier.BATCH: _tier(objectives.batch, admission.batch),
        },
        reserve=spec.backfill.reserve,
        backfill=spec.backfill.enabled,
        backfill_residence_s=spec.backfill.max_residence_seconds,
        classify=spec.workload.classify,
        batch_share=admission.batch_share,
        limits_from=LimitsFrom.PROFILE if any(limits) else LimitsFrom.UNMEASURED,
        costs={} if found is None else found.costs,
        tokens_per_step={**({} if found is None else found.tokens_per_step), **gains},
        speeds=speeds,
    )


def with_measured_limits(policy: PolicyInForce, profile: Profile | None) -> PolicyInForce:
    """The policy with the limits of a profile of the served model; as it is without one."""
    if profile is None:
        return policy
    return replace(policy, pools={role: _measured(role, policy.pools[role], profile) for role in Role})


def measured_limit(role: Role, tpot_s: float | None, profile: Profile | None) -> int | None:
    """The largest batch of a pool that keeps an objective; None without objective or measurement.

    Never below 1: a pool that misses its objective with one sequence still has to serve.
    """
    cost = None if profile is None else profile.costs.get(role)
    if profile is None or cost is None or tpot_s is None:
        return None
    tokens = profile.tokens_per_step[MEAN] if cost.draft_length > 0 else 1.0
    return max(1, largest_batch(cost, tpot_s, profile.context_tokens, tokens, LARGEST_BATCH))


def _measured(role: Role, rules: PoolRules, profile: Profile) -> PoolRules:
    return replace(rules, measured_limit=measured_limit(role, rules.tpot_s, profile))


def _tier(objective: TierObjective, waiting: TierWaiting) -> TierRules:
    return TierRules(
        ttft_s=objective.ttft_seconds,
        tpot_s=objective.tpot_seconds,
        deadline_s=waiting.deadline_seconds,
        max_waiting=waiting.max_waiting,
    )
