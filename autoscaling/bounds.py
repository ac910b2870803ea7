"""Targets back inside the policy's bounds and budget, at once: floors, ceilings and accelerators.

Sizes are replicas; the budget is accelerators.  Where a choice is left, the pool that needs a replica
more keeps or gets it.
"""

from __future__ import annotations

from autoscaling.decisions import PolicyInForce, Reason, Sizes, Step
from autoscaling.signals import Signals, load
from autoscaling.types import Role

NAME = "bounds"


def assigned(sizes: Sizes, policy: PolicyInForce) -> int:
    """Accelerators of so many replicas of both pools."""
    return sum(sizes[role] * policy.pools[role].accelerators for role in Role)


def impossible(policy: PolicyInForce) -> str:
    """Why no targets can satisfy the policy, empty when some can; overrides and schedules may do that."""
    for role in Role:
        rules = policy.pools[role]
        if rules.minimum > rules.maximum:
            return (
                f"{role} has the minimum {rules.minimum} and the maximum {rules.maximum} ({rules.bound_by})"
            )
    least = {role: policy.pools[role].minimum for role in Role}
    needs = assigned(least, policy)
    if needs <= policy.budget_max:
        return ""
    whose = ", ".join(f"{role} {least[role]} by {policy.pools[role].bound_by}" for role in Role)
    return f"the minimums need {needs} accelerators and the budget is {policy.budget_max} ({whose})"


def bounds(targets: Sizes, signals: Signals, policy: PolicyInForce) -> Step:
    """The targets that a possible policy allows; the same ones where they are allowed already."""
    sizes = {role: _clamped(targets[role], role, policy) for role in Role}
    if sizes == targets and assigned(sizes, policy) <= policy.budget_max:
        return Step(NAME, Reason.STEADY, targets)
    reason, detail = _cause(targets, policy)
    return Step(NAME, reason, fill(_cut(sizes, signals, policy), signals, policy), detail)


def fill(sizes: Sizes, signals: Signals, policy: PolicyInForce) -> Sizes:
    """Sizes with whole replicas added, one by one to the needier pool, up to budget_min accelerators."""
    filled = dict(sizes)
    while (used := assigned(filled, policy)) < policy.budget_min:
        fitting = [
            role
            for role in Role
            if filled[role] < policy.pools[role].maximum
            and used + policy.pools[role].accelerators <= policy.budget_max
        ]
        if not fitting:
            break
        needier = _needier(filled, signals, policy)
        filled[needier if needier in fitting else fitting[0]] += 1
    return filled


def _cut(sizes: Sizes, signals: Signals, policy: PolicyInForce) -> Sizes:
    cut = dict(sizes)
    while assigned(cut, policy) > policy.budget_max:
        giving = [role for role in Role if cut[role] > policy.pools[role].minimum]
        less = {role: max(0, cut[role] - 1) for role in Role}
        gives = _needier(less, signals, policy).other
        cut[gives if gives in giving else giving[0]] -= 1
    return cut


def _needier(sizes: Sizes, signals: Signals, policy: PolicyInForce) -> Role:
    """The pool under more load at these sizes; where that is unknown, further below its bootstrap share."""
    speculative, plain = (load(signals[role], sizes[role]) for role in Role)
    if speculative is not None and plain is not None and speculative != plain:
        return Role.SPECULATIVE if speculative > plain else Role.PLAIN
    share = policy.bootstrap
    above = sizes[Role.SPECULATIVE] * share[Role.PLAIN] - sizes[Role.PLAIN] * share[Role.SPECULATIVE]
    return Role.PLAIN if above > 0 else Role.SPECULATIVE


def _clamped(size: int, role: Role, policy: PolicyInForce) -> int:
    rules = policy.pools[role]
    return min(max(size, rules.minimum), rules.maximum)


def _cause(targets: Sizes, policy: PolicyInForce) -> tuple[Reason, str]:
    """The strongest layer that one of the targets violates, in the order of precedence."""
    outside = [role for role in Role if targets[role] != _clamped(targets[role], role, policy)]
    for reason, prefix in ((Reason.OVERRIDE, "override"), (Reason.SCHEDULE, "schedule"), (Reason.BOUNDS, "")):
        for role in outside:
            rules = policy.pools[role]
            if rules.bound_by.startswith(prefix) or (rules.forced and reason is Reason.OVERRIDE):
                limits = f"{rules.minimum} to {rules.maximum} by {rules.bound_by}"
                return reason, f"{role} has {targets[role]} replicas and may have {limits}"
    used = assigned(targets, policy)
    return Reason.OVER_BUDGET, f"the targets need {used} accelerators and the budget is {policy.budget_max}"
