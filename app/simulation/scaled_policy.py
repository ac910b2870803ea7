"""A policy at another size: everything in it that counts replicas or accelerators, in proportion."""

from __future__ import annotations

import json
import math
from typing import Any

from autoscaling.policy import MOST_REPLICAS, CapacityPolicy, ScalingPolicyType
from autoscaling.policy_checks import contradictions
from autoscaling.policy_readable import all_of
from autoscaling.types import Role


class SizeError(ValueError):
    """A policy cannot be simulated at a size; the message says where and what to do."""


def replicas_of(policy: CapacityPolicy) -> int:
    """How many replicas of both pools the budget holds; raises SizeError where that is no one number."""
    pools, budget = policy.spec.pools, policy.spec.budget.max
    each, other = pools.speculative.accelerators_per_replica, pools.plain.accelerators_per_replica
    if each != other:
        raise SizeError(
            f"spec.pools: a replica takes {each} accelerators in speculative and {other} in plain: "
            "give acceleratorsPerReplica the same value in both, as a simulation needs"
        )
    if budget % each:
        raise SizeError(
            f"spec.budget.max is {budget}, which is no whole number of replicas of {each} accelerators: "
            f"write {budget - budget % each or each}"
        )
    replicas = budget // each
    if replicas < len(Role):
        raise SizeError(
            f"spec.budget.max is {budget}, which is less than a replica of {each} accelerators for each of "
            "two "
            f"pools: write {len(Role) * each} or more"
        )
    return replicas


def scaled(policy: CapacityPolicy, replicas: int, wall: float | None = None) -> CapacityPolicy:
    """The same policy for so many replicas of both pools together; raises SizeError.

    Budget, bounds of pools, schedules and overrides, first sizes, surge and steps grow or shrink together.
    A minimum is rounded down and stays at least 1, a maximum is rounded up.  Limits per replica, queues,
    windows and objectives stay.  With `wall`, Unix seconds, an override that has expired refuses nothing.
    """
    before = replicas_of(policy)
    if not len(Role) <= replicas <= MOST_REPLICAS:
        raise SizeError(
            f"{replicas} replicas are not simulated: give {len(Role)}, which is one for each pool, to "
            f"{MOST_REPLICAS:,}"
        )
    tree = policy.model_dump(mode="json", by_alias=True, exclude_none=True)
    _scale(tree["spec"], replicas / before, replicas)
    made = CapacityPolicy.model_validate_json(json.dumps(tree))
    found = contradictions(all_of(made), wall)
    if found:
        raise SizeError(
            f"{found[0].field} {found[0].message} at {replicas} replicas: write a policy of that size"
        )
    return made


def size_words(policy: CapacityPolicy) -> str:
    """Its bounds, for a person: `speculative 4 to 7, plain 1 to 4`."""
    pools = policy.spec.pools
    return ", ".join(
        f"{role} {pool.min_replicas} to {pool.max_replicas}"
        for role, pool in ((Role.SPECULATIVE, pools.speculative), (Role.PLAIN, pools.plain))
    )


def _scale(spec: dict[str, Any], factor: float, replicas: int) -> None:
    """Change the JSON values of a policy's spec in place."""
    each = spec["pools"]["plain"]["acceleratorsPerReplica"]
    budget = spec["budget"]
    budget["max"] = replicas * each
    if "min" in budget:
        budget["min"] = max(1, math.floor(budget["min"] * factor))
    spec["surgeSlots"] = round(spec["surgeSlots"] * factor)
    for role in Role:
        _bounds(spec["pools"][role.value], factor)
        for schedule in spec["schedules"]:
            _bounds(schedule["pools"].get(role.value, {}), factor)
    for override in spec["overrides"]:
        _bounds(override, factor)
    if "bootstrap" in spec:
        spec["bootstrap"] = _bootstrap(spec, factor, replicas)
    spec["guardrails"]["maxStepReplicas"] = max(1, round(spec["guardrails"]["maxStepReplicas"] * factor))
    for direction in ("scaleUp", "scaleDown"):
        for rule in spec["behavior"][direction]["policies"]:
            if rule["type"] == ScalingPolicyType.REPLICAS.value:
                rule["value"] = max(1, round(rule["value"] * factor))


def _bounds(found: dict[str, Any], factor: float) -> None:
    if "minReplicas" in found:
        found["minReplicas"] = _least(found["minReplicas"], factor)
    if "maxReplicas" in found:
        found["maxReplicas"] = max(1, found.get("minReplicas", 0), math.ceil(found["maxReplicas"] * factor))
    if "replicas" in found:
        found["replicas"] = _least(found["replicas"], factor)


def _least(minimum: int, factor: float) -> int:
    return max(1, math.floor(minimum * factor)) if minimum else 0


def _bootstrap(spec: dict[str, Any], factor: float, replicas: int) -> dict[str, int]:
    """First sizes inside the scaled bounds; the plain pool has what the speculative one leaves."""
    given, pools = spec["bootstrap"], spec["pools"]
    total = min(replicas, round((given["speculative"] + given["plain"]) * factor))

    def inside(wanted: int, role: Role) -> int:
        bounds = pools[role.value]
        return int(max(bounds["minReplicas"], min(bounds["maxReplicas"], wanted)))

    speculative = inside(round(given["speculative"] * factor), Role.SPECULATIVE)
    plain = inside(total - speculative, Role.PLAIN)
    return {"speculative": inside(min(speculative, replicas - plain), Role.SPECULATIVE), "plain": plain}
