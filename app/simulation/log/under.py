"""The record of a route with the rules of a policy in it, as it would have been made under that; pure."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from app.routing.replay import Record
from app.simulation.score import objective_of
from app.workload.acceptance import draftable
from autoscaling.policy import CapacityPolicy, TierObjective
from autoscaling.policy_in_force import pool_objective
from autoscaling.profile import Profile
from autoscaling.rules_of_policy import measured_limit
from autoscaling.types import Role, Tier

NO_LIMITS: Mapping[Role, int] = MappingProxyType({})


def measured_limits(policy: CapacityPolicy, profile: Profile | None) -> dict[Role, int]:
    """The limits per replica that a profile gives under a policy; without one they are absent."""
    found = {role: measured_limit(role, pool_objective(policy, role).tpot_seconds, profile) for role in Role}
    return {role: limit for role, limit in found.items() if limit is not None}


def under(
    record: Record,
    policy: CapacityPolicy,
    own: Mapping[Role, int] = NO_LIMITS,
    acting: Mapping[Role, int] = NO_LIMITS,
) -> dict[str, Any]:
    """The record of a decision with the rules of a policy in it; which replica it takes is left open.

    `own` are the measured limits under this policy, `acting` those under the policy that acted.  Raises
    KeyError, TypeError or ValueError for a record that holds too little.
    """
    spec, ask = policy.spec, record["ask"]
    if not record["rules"]["costs"]:
        own = acting = NO_LIMITS  # the service had no profile
    return {
        **record,
        "ask": {**ask, "draftable": spec.workload.classify and draftable(ask["tokens_per_step"])},
        "objective": _promise(objective_of(policy, Tier(ask["tier"]))),
        "rules": {
            **record["rules"],
            "reserve": spec.backfill.reserve,
            "backfill": spec.backfill.enabled,
            "backfill_residence_s": spec.backfill.max_residence_seconds,
            "interactive": _promise(spec.objectives.interactive),
        },
        "pools": {
            role.value: _pool(record["pools"][role.value], role, policy, own.get(role), acting.get(role))
            for role in Role
        },
        # The replicas that were compared are those of the pool that was taken then.
        "draw": None,
    }


def _promise(objective: TierObjective) -> dict[str, float | None]:
    return {"ttft_s": objective.ttft_seconds, "tpot_s": objective.tpot_seconds}


def _pool(
    found: Mapping[str, Any], role: Role, policy: CapacityPolicy, own: int | None, acting: int | None
) -> dict[str, Any]:
    pools = policy.spec.pools
    soft = (pools.speculative if role is Role.SPECULATIVE else pools.plain).limits.soft_inflight
    return {**found, "candidates": [_candidate(one, soft, own, acting) for one in found["candidates"]]}


def _candidate(
    found: Mapping[str, Any], soft: int | None, own: int | None, acting: int | None
) -> dict[str, Any]:
    """A replica at the limit that it would have; an ingress loses or gains its share of the difference."""
    limit: int = found["limit"]
    if own is not None and acting is not None:
        # Below the measured limit something else bounds the replica, and still would.
        limit = min(limit, own) if limit < acting else own
    limit = limit if soft is None else min(limit, soft)
    share = (limit - found["limit"]) // found["ingresses"]
    return {**found, "limit": limit, "own_free": found["own_free"] + share}
