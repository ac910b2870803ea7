"""The policy as it stands at one moment: hold > override > schedule > pools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from autoscaling import overrides as overrides_
from autoscaling import schedules as schedules_
from autoscaling.claims import Bounds, Claim, most, pool_of, resolve
from autoscaling.decisions import Hold, HoldBy, Limit, Mode, PolicyInForce, PoolRules, ScaleRule, Sizes
from autoscaling.overrides import Override
from autoscaling.policy import CapacityPolicy, Direction, ScalingPolicyType, TierObjective
from autoscaling.types import Role

PRECEDENCE = "hold > override > schedule > pools"


def in_force(
    policy: CapacityPolicy,
    revision: int,
    sha: str,
    *,
    overrides: Sequence[Override],
    hold: Hold | None,
    wall: float,
    active_since: float | None = None,
) -> PolicyInForce:
    """What the controller obeys at `wall` (Unix seconds).

    `overrides` are the operators'; the file's own are added here and are weaker.  `hold` is an
    operator's, and wins over the policy's mode `hold` until it ends.  `active_since`: when this revision
    became the active one (Unix seconds), for the `since` of such a policy's hold.
    """
    spec = policy.spec
    every = (*overrides_.from_policy(policy), *overrides)
    bounds = resolve(policy, (*_scheduled(policy, wall), *overrides_.claims(every, wall)))
    behavior = spec.behavior
    return PolicyInForce(
        revision=revision,
        sha=sha,
        mode=spec.mode,
        budget_min=spec.budget.min if spec.budget.min is not None else spec.budget.max,
        budget_max=spec.budget.max,
        bootstrap=_bootstrap(policy, bounds),
        pools={role: _rules(policy, role, bounds[role]) for role in Role},
        scale_up=_rule(behavior.scale_up),
        scale_down=_rule(behavior.scale_down),
        utilization_above=behavior.utilization.above,
        utilization_below=behavior.utilization.below,
        cooldown_s=behavior.cooldown_seconds,
        surge=spec.surge_slots,
        max_step=spec.guardrails.max_step_replicas,
        move_timeout_s=spec.guardrails.move_timeout_seconds,
        metrics_after_s=spec.on_metrics_loss.after_seconds,
        min_fresh_share=spec.on_metrics_loss.min_fresh_share,
        hold=_hold(spec.mode, hold, wall, active_since),
    )


def precedence_words(in_force: PolicyInForce) -> str:
    """One line for status: what wins over what, and what acts now."""
    held = [] if in_force.hold is None else [f"hold by {in_force.hold.by}"]
    pools = [f"{role} by {in_force.pools[role].bound_by}" for role in Role]
    return f"{PRECEDENCE}; now {'; '.join(held + pools)}"


def pool_objective(policy: CapacityPolicy, role: Role) -> TierObjective:
    """What a pool is held to: the promise to the tier that it serves first."""
    tiers = policy.spec.objectives
    if role is Role.SPECULATIVE:
        return tiers.interactive
    return TierObjective(
        ttftSeconds=_first(tiers.standard.ttft_seconds, tiers.batch.ttft_seconds),
        tpotSeconds=_first(tiers.standard.tpot_seconds, tiers.batch.tpot_seconds),
    )


def _scheduled(policy: CapacityPolicy, wall: float) -> tuple[Claim, ...]:
    """What the active schedules ask, weakest first: a later one of the file wins."""
    return tuple(
        Claim(role, f"schedule {schedule.name}", bounds.min_replicas, bounds.max_replicas)
        for schedule in schedules_.active(policy.spec.schedules, wall)
        for role, bounds in (
            (Role.SPECULATIVE, schedule.pools.speculative),
            (Role.PLAIN, schedule.pools.plain),
        )
        if bounds is not None
    )


def _bootstrap(policy: CapacityPolicy, bounds: Mapping[Role, Bounds]) -> Sizes:
    """The file's sizes, or half of the budget for each pool; inside the bounds and the budget.

    Half of the budget is rounded down to whole replicas of the speculative pool.  The plain pool gets
    what is left, and what it may not have goes back to the speculative pool.
    """
    budget = policy.spec.budget.max
    speculative, plain = bounds[Role.SPECULATIVE], bounds[Role.PLAIN]
    cost = {role: pool_of(policy, role).accelerators_per_replica for role in Role}
    given = policy.spec.bootstrap
    first = given.speculative if given else budget // 2 // cost[Role.SPECULATIVE]
    first = _inside(first, speculative, most(policy, bounds, Role.SPECULATIVE))
    left = (budget - first * cost[Role.SPECULATIVE]) // cost[Role.PLAIN]
    second = _inside(given.plain if given else left, plain, left)
    if given is None:
        left = (budget - second * cost[Role.PLAIN]) // cost[Role.SPECULATIVE]
        first = _inside(left, speculative, left)
    return {Role.SPECULATIVE: first, Role.PLAIN: second}


def _inside(wanted: int, bounds: Bounds, room: int) -> int:
    """`wanted` clamped; the minimums fit the budget, so `room` is never below the minimum."""
    return max(bounds.minimum, min(wanted, bounds.maximum, room))


def _rules(policy: CapacityPolicy, role: Role, bounds: Bounds) -> PoolRules:
    pool = pool_of(policy, role)
    objective = pool_objective(policy, role)
    return PoolRules(
        minimum=bounds.minimum,
        maximum=bounds.maximum,
        accelerators=pool.accelerators_per_replica,
        soft_limit=pool.limits.soft_inflight,
        hard_limit=pool.limits.hard_inflight,
        drain_timeout_s=pool.drain_timeout_seconds,
        ttft_s=objective.ttft_seconds,
        tpot_s=objective.tpot_seconds,
        bound_by=bounds.bound_by,
        forced=bounds.forced,
    )


def _first(standard: float | None, batch: float | None) -> float | None:
    return batch if standard is None else standard


def _rule(direction: Direction) -> ScaleRule:
    return ScaleRule(
        window_s=direction.stabilization_window_seconds,
        limits=tuple(
            Limit(item.value, item.period_seconds, percent=item.type is ScalingPolicyType.PERCENT)
            for item in direction.policies
        ),
        select=direction.select_policy,
    )


def _hold(mode: Mode, hold: Hold | None, wall: float, active_since: float | None) -> Hold | None:
    if hold is not None and (hold.expires is None or wall < hold.expires):
        return hold
    if mode is not Mode.HOLD:
        return None
    since = wall if active_since is None else active_since
    return Hold(HoldBy.POLICY, "spec.mode of the policy is hold", since)
