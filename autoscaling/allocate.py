"""Who should have a replica more and who can give one, as if nothing had to be waited for.

A short pool takes free budget first, then from the other pool if that one stays well inside its limits.
Between budget.min and budget.max a pool that nobody needs goes back.
"""

from __future__ import annotations

from math import inf

from autoscaling.bounds import assigned, fill
from autoscaling.decisions import Observation, PolicyInForce, PoolRules, Reason, Signal, Sizes, Step
from autoscaling.signals import Signals, load, missing, short, words
from autoscaling.types import Role

NAME = "want"


def want(targets: Sizes, signals: Signals, seen: Observation, policy: PolicyInForce) -> Step:
    """The targets that the signals ask for; unchanged targets say with their reason why."""
    filled = fill(targets, signals, policy)
    if filled != targets:
        used = assigned(targets, policy)
        detail = f"{used} accelerators are assigned and the budget keeps {policy.budget_min}"
        return Step(NAME, Reason.UNASSIGNED, filled, detail)
    needy = [role for role in Role if short(signals[role], policy)]
    if not needy:
        return _give_back(targets, signals, seen, policy)
    needy.sort(key=lambda role: -(load(signals[role], targets[role]) or 0.0))
    steps = [_relieve(role, targets, signals, seen, policy) for role in needy]
    return next((step for step in steps if step.targets != targets), steps[0])


def grown(targets: Sizes, receiver: Role, count: int, policy: PolicyInForce) -> Sizes:
    """Targets with `count` replicas more in one pool; the other gives what free accelerators cannot."""
    free = policy.budget_max - assigned(targets, policy)
    needs = max(0, count * policy.pools[receiver].accelerators - free)
    gives = -(-needs // policy.pools[receiver.other].accelerators)
    return {role: targets[role] + (count if role is receiver else -gives) for role in Role}


def _relieve(role: Role, targets: Sizes, signals: Signals, seen: Observation, policy: PolicyInForce) -> Step:
    rules = policy.pools[role]
    cause = f"{role} is short ({words(signals[role])})"
    room = min(policy.max_step, rules.maximum - targets[role])
    if room <= 0:
        detail = f"{cause}, but has its maximum of {rules.maximum}{_bound_by(rules)}"
        waits_for = f"a higher maximum of {role} (in force by {rules.bound_by})"
        return Step(NAME, Reason.AT_MAXIMUM, targets, detail, waits_for)
    count = missing(signals[role], policy, room)
    free = (policy.budget_max - assigned(targets, policy)) // rules.accelerators
    if free > 0:
        return Step(NAME, Reason.SHORTFALL, grown(targets, role, min(count, free), policy), cause)
    refusal = Reason.NO_DONOR, ""
    for some in range(count, 0, -1):
        after = grown(targets, role, some, policy)
        no = _why_not(role.other, after[role.other], signals[role.other], seen, policy)
        if no is None:
            return Step(NAME, Reason.SHORTFALL, after, cause)
        refusal = no
    waits_for = f"{role.other} to need fewer replicas, or a higher budget.max"
    if refusal[0] is Reason.AT_MINIMUM:
        other = policy.pools[role.other]
        waits_for = (
            f"{role} to need fewer replicas, a higher budget.max, "
            f"or a lower minimum of {role.other} (in force by {other.bound_by})"
        )
    return Step(NAME, refusal[0], targets, f"{cause}, but {refusal[1]}", waits_for)


def _give_back(targets: Sizes, signals: Signals, seen: Observation, policy: PolicyInForce) -> Step:
    left = assigned(targets, policy)
    for role in sorted(Role, key=lambda role: _after(signals[role])):
        if left - policy.pools[role].accelerators < policy.budget_min or targets[role] == 0:
            continue
        if _why_not(role, targets[role] - 1, signals[role], seen, policy) is None:
            detail = f"{role} has room to spare ({words(signals[role])})"
            return Step(NAME, Reason.SURPLUS, {**targets, role: targets[role] - 1}, detail)
    unknown = [_unknown(role, signals[role]) for role in Role if load(signals[role], targets[role]) is None]
    if unknown:
        verb = "is" if len(unknown) == 1 else "are"
        return Step(
            NAME,
            Reason.STEADY,
            targets,
            f"no pool is known to be short: {' and '.join(unknown)} {verb} unknown",
        )
    return Step(NAME, Reason.STEADY, targets, "no pool is short")


def _unknown(role: Role, signal: Signal) -> str:
    return f"the {'demand' if signal.demand is None else 'limit'} of {role}"


def _bound_by(rules: PoolRules) -> str:
    return "" if rules.bound_by == "pools" else f" by {rules.bound_by}"


def _after(signal: Signal) -> float:
    then = load(signal, signal.replicas - 1)
    return inf if then is None else then


def _why_not(
    role: Role, left: int, signal: Signal, seen: Observation, policy: PolicyInForce
) -> tuple[Reason, str] | None:
    """Why a pool cannot do with `left` replicas; None when it can."""
    rules, pool = policy.pools[role], seen.pools[role]
    if left < rules.minimum:
        gives = "" if signal.replicas == rules.minimum else f", would give {signal.replicas - left}"
        minimum = f"its minimum is {rules.minimum}{_bound_by(rules)}"
        return Reason.AT_MINIMUM, f"{role} has {signal.replicas} replicas{gives} and {minimum}"
    if short(signal, policy):
        return Reason.NO_DONOR, f"{role} is short too ({words(signal)})"
    then = load(signal, left)
    if then is None:
        return Reason.NO_DONOR, f"what {role} needs is unknown ({words(signal)})"
    if then > policy.utilization_below:
        return Reason.NO_DONOR, f"{role} needs its replicas ({words(signal)})"
    times = signal.replicas / left if left else inf
    for name, value, objective in (
        ("TTFT", pool.ttft_p95_s, rules.ttft_s),
        ("TPOT", pool.tpot_p95_s, rules.tpot_s),
    ):
        # An objective that is missed already says nothing about one replica more or less.
        if value is not None and objective is not None and value <= objective < value * times:
            return (
                Reason.NO_DONOR,
                f"{role} would leave its objective: {name} is {value:g} s and would be about "
                f"{float(f'{value * times:.2g}'):g} s with {left} replica{'' if left == 1 else 's'}; "
                f"the objective is {objective:g} s",
            )
    return None
