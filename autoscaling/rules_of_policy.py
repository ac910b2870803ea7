"""A policy and a profile as the rules that ingresses obey, and the limits that the two give; pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

from autoscaling.decisions import PolicyInForce, PoolRules
from autoscaling.policy import CapacityPolicy, TierObjective
from autoscaling.policy_in_force import pool_objective
from autoscaling.policy_routing import TierWaiting
from autoscaling.profile import MEAN, Profile
from autoscaling.profile_match import Served, measured, prior
from autoscaling.routing_rules import LimitsFrom, PoolSpeed, RoutingRules, TierRules
from autoscaling.step_cost import largest_batch
from autoscaling.types import Role, Tier

NO_GAINS: Mapping[str, float] = MappingProxyType({})
LARGEST_BATCH = 100_000  # as many as the policy's own limits go up to


def routing_rules(
    policy: CapacityPolicy,
    profile: Profile | None,
    served: Served,
    speeds: Mapping[Role, PoolSpeed],
    gains: Mapping[str, float] = NO_GAINS,
) -> RoutingRules:
    """What the ingresses obey under a policy.

    A profile of anything but what is `served` tells no costs and no gains.  `gains` are tokens per step by
    class of the last hour, which win over the profile's.
    """
    spec, found = policy.spec, measured(profile, served)
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


def with_measured_limits(policy: PolicyInForce, profile: Profile | None, served: Served) -> PolicyInForce:
    """The policy with the limits of a profile of what is served; as it is without one.

    A profile of something else lowers the soft limits where its own would be lower, and raises none.
    """
    if (found := measured(profile, served)) is not None:
        return _with_pools(policy, found, _measured)
    if (found := prior(profile, served)) is not None:
        return _with_pools(policy, found, _lowered)
    return policy


def limits_from(policy: PolicyInForce) -> dict[Role, LimitsFrom]:
    """What the limit of each pool rests on, in a policy that `with_measured_limits` has made."""
    return {
        role: LimitsFrom.UNMEASURED if rules.measured_limit is None else LimitsFrom.PROFILE
        for role, rules in policy.pools.items()
    }


def measured_limit(role: Role, tpot_s: float | None, profile: Profile | None) -> int | None:
    """The largest batch of a pool that keeps an objective and whose context fits; None when unmeasured.

    None as well when not even one sequence keeps it: a promise that is broken anyway must not take the room
    of everybody, which would break the other promises too.
    """
    cost = None if profile is None else profile.costs.get(role)
    if profile is None or cost is None or tpot_s is None:
        return None
    tokens = profile.tokens_per_step.get(MEAN) if cost.draft_length > 0 else 1.0
    if tokens is None:
        return None
    most, fit = LARGEST_BATCH, profile.kv_cache_tokens.get(role)
    if fit is not None and profile.context_tokens > 0:
        most = max(1, min(most, int(fit / profile.context_tokens)))
    return largest_batch(cost, tpot_s, profile.context_tokens, tokens, most) or None


def _with_pools(
    policy: PolicyInForce, profile: Profile, change: Callable[[Role, PoolRules, Profile], PoolRules]
) -> PolicyInForce:
    return replace(policy, pools={role: change(role, policy.pools[role], profile) for role in Role})


def _measured(role: Role, rules: PoolRules, profile: Profile) -> PoolRules:
    return replace(rules, measured_limit=measured_limit(role, rules.tpot_s, profile))


def _lowered(role: Role, rules: PoolRules, profile: Profile) -> PoolRules:
    limits = (rules.soft_limit, measured_limit(role, rules.tpot_s, profile))
    return replace(rules, soft_limit=min((limit for limit in limits if limit is not None), default=None))


def _tier(objective: TierObjective, waiting: TierWaiting) -> TierRules:
    return TierRules(
        ttft_s=objective.ttft_seconds,
        tpot_s=objective.tpot_seconds,
        deadline_s=waiting.deadline_seconds,
        max_waiting=waiting.max_waiting,
    )
