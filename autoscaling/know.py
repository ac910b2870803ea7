"""Whether enough is known to decide, and which targets a decision starts from.

No data is neither zero nor a reason to shrink: it is a hold.
"""

from __future__ import annotations

from autoscaling.bounds import impossible
from autoscaling.decisions import Hold, HoldBy, Memory, Mode, Observation, PolicyInForce, Reason, Sizes, Step
from autoscaling.signals import enough_reports
from autoscaling.types import Role

NAME = "know"


def know(seen: Observation, policy: PolicyInForce, memory: Memory) -> tuple[Step, Hold | None]:
    """The targets to start from, None when nobody knows any, and the hold that keeps them.

    A new application gets its bootstrap sizes whatever else is unknown: replicas must be asked for before
    anything can report.  Targets that were ever decided and are held by somebody stay, even then.
    """
    asked = _asked(seen, policy, memory)
    if seen.fresh and (memory.targets is None or asked is None):
        return Step(NAME, Reason.BOOTSTRAP, dict(policy.bootstrap), "no replica has been running yet"), asked
    targets = _serves(seen) if memory.targets is None else memory.targets
    hold = asked or _cause(seen, policy, memory)
    if hold is not None:
        return Step(NAME, Reason.HELD, targets, hold.reason), hold
    return Step(
        NAME, Reason.STEADY, targets, "" if memory.targets else "Ray Serve's targets are taken over"
    ), None


def _asked(seen: Observation, policy: PolicyInForce, memory: Memory) -> Hold | None:
    if policy.hold is not None:
        return policy.hold
    if policy.mode is Mode.HOLD:
        return _hold(HoldBy.POLICY, "the policy's mode is hold", seen, memory)
    return None


def _cause(seen: Observation, policy: PolicyInForce, memory: Memory) -> Hold | None:
    if seen.young:
        reason = "the controller has just started and has not heard from every replica"
        return _hold(HoldBy.START, reason, seen, memory)
    for role in Role:
        if seen.pools[role].running is None or seen.pools[role].target is None:
            reason = f"Ray Serve's replica states of {role} are unknown"
            return _hold(HoldBy.SERVE, reason, seen, memory)
    for role in Role:
        pool = seen.pools[role]
        if not enough_reports(pool, policy):
            reason = f"{pool.reporting} of {pool.running} running replicas of {role} report"
            return _hold(HoldBy.METRICS, reason, seen, memory)
    reason = impossible(policy)
    return _hold(HoldBy.POLICY, reason, seen, memory) if reason else None


def _hold(by: HoldBy, reason: str, seen: Observation, memory: Memory) -> Hold:
    """A hold of our own; it goes on from the last decision when that was held by the same cause."""
    before = memory.hold
    return Hold(by, reason, since=before.since if before is not None and before.by is by else seen.wall)


def _serves(seen: Observation) -> Sizes | None:
    targets = {role: target for role in Role if (target := seen.pools[role].target) is not None}
    return targets if len(targets) == len(Role) else None
