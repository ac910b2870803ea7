"""What may be published now on the way to the targets: shrink first, grow into what is really free.

An accelerator is free when no running, starting or draining replica holds it and no published size asks
for it.  The same observation twice gives the same plan.
"""

from __future__ import annotations

from autoscaling.decisions import Memory, Observation, PolicyInForce, Reason, Sizes, Step
from autoscaling.types import Role

NAME = "stage"


def stage(chosen: Step, plan: Sizes, seen: Observation, policy: PolicyInForce) -> Step:
    """The next plan after `plan` on the way to the chosen targets.

    It stays as it is while Ray Serve's replica states are unknown.  Otherwise no pool is above its target,
    so the plan costs no more accelerators than the targets do.
    """
    targets = chosen.targets or plan
    draining, held = _draining(seen), _held(seen)
    if draining is None or held is None:
        return Step(NAME, chosen.reason, plan, "Ray Serve's replica states are unknown")
    staged = {role: min(targets[role], plan[role]) for role in Role}
    free = policy.budget_max + policy.surge
    for role in Role:
        free -= policy.pools[role].accelerators * (max(held[role], staged[role]) + draining[role])
    for role in Role:
        # With more replicas than published Ray Serve has not obeyed yet; a second look at the same
        # counts would grant the same accelerators again.
        if held[role] <= staged[role]:
            cost = policy.pools[role].accelerators
            more = min(targets[role] - staged[role], max(0, free) // cost)
            staged[role] += more
            free -= more * cost
    return Step(NAME, chosen.reason, staged, _waits(targets, staged))


def keep(known: Step, memory: Memory) -> Step:
    """The plan of a tick that starts from no targets of its own: the bootstrap sizes, else the last plan."""
    kept = known.targets if known.reason is Reason.BOOTSTRAP or memory.plan is None else memory.plan
    return Step(NAME, known.reason, kept)


def _waits(targets: Sizes, staged: Sizes) -> str:
    waiting = [f"{targets[role] - staged[role]} of {role}" for role in Role if staged[role] < targets[role]]
    return f"waits for free accelerators: {', '.join(waiting)}" if waiting else ""


def _draining(seen: Observation) -> Sizes | None:
    known = {role: count for role in Role if (count := seen.pools[role].draining) is not None}
    return known if len(known) == len(Role) else None


def _held(seen: Observation) -> Sizes | None:
    """Replicas that hold an accelerator, or are about to: what Ray Serve misses of its target it starts."""
    known = {}
    for role in Role:
        pool = seen.pools[role]
        if pool.running is None or pool.starting is None:
            return None
        known[role] = max(pool.running + pool.starting, pool.target or 0)
    return known
