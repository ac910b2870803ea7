"""HPA's limits on change: how much of a wanted change they allow now, and what would allow the rest.

No limit is below one whole exchange, or a pool whose replicas are smaller than the other's could never give.
"""

from __future__ import annotations

from math import ceil, inf

from autoscaling.allocate import grown
from autoscaling.decisions import Change, Limit, Memory, PolicyInForce, ScaleRule, Sizes
from autoscaling.moves import growing
from autoscaling.types import Role


def allowed(
    rule: ScaleRule,
    changes: tuple[Change, ...],
    pool: Role,
    sign: int,
    size: int,
    now: float,
    exchange: int = 1,
) -> int | None:
    """Replicas by which a pool may still change in one direction (sign 1 or -1); None: any number.

    `exchange` is what the pool changes by in the smallest whole exchange; no limit is below it, or a pool
    whose replicas are smaller than the other's could never give.
    """
    if rule.select == "Disabled":
        return 0
    if not rule.limits:
        return None
    mine = tuple(change for change in changes if change.pool is pool)
    left = [_left(limit, mine, sign, size, now, exchange) for limit in rule.limits]
    return min(left) if rule.select == "Min" else max(left)


def changed(
    changes: tuple[Change, ...], before: Sizes, after: Sizes, policy: PolicyInForce, now: float
) -> tuple[Change, ...]:
    """The past changes that a limit may still ask for, and the new one."""
    limits = (*policy.scale_up.limits, *policy.scale_down.limits)
    longest = max((limit.period_s for limit in limits), default=0.0)
    new = (Change(now, r, after[r] - before[r], before[r]) for r in Role if after[r] != before[r])
    return (*(change for change in changes if change.at > now - longest), *new)


def cut(after: Sizes, targets: Sizes, now: float, policy: PolicyInForce, memory: Memory) -> Sizes:
    """The wanted change, smaller by one replica at a time until both directions' limits allow it."""
    while not _within(after, targets, now, policy, memory):
        gains = growing(targets, after)
        if not gains:
            return targets
        after = grown(targets, gains[0], after[gains[0]] - targets[gains[0]] - 1, policy)
    return after


def refused(
    after: Sizes, targets: Sizes, now: float, policy: PolicyInForce, memory: Memory
) -> tuple[str, str]:
    """Which rule allows not even the smallest part of a change, and what would."""
    gains = growing(targets, after)
    least = grown(targets, gains[0], 1, policy) if gains else after
    found = []
    for role in Role:
        need = abs(least[role] - targets[role])
        if _most(role, least, targets, now, policy, memory) >= need:
            continue
        gives = least[role] < targets[role]
        name, rule = ("scaleDown", policy.scale_down) if gives else ("scaleUp", policy.scale_up)
        if rule.select == "Disabled":
            never = f"{name} is Disabled: {role} never {'gives' if gives else 'receives'} for demand"
            return never, "an edit of the policy"
        exchange = _exchange(role, least, targets, policy)
        changes = tuple(change for change in memory.changes if change.pool is role)
        sign = -1 if gives else 1
        waits = [
            (_free_in(limit, changes, sign, targets[role], now, exchange, need), limit)
            for limit in rule.limits
        ]
        wait_s, limit = (max if rule.select == "Min" else min)(waits, key=lambda one: one[0])
        recent = [change.size for change in changes if change.at > now - limit.period_s]
        most = _value(limit, recent[0] if recent else targets[role], exchange)
        words = f"{name} allows {role} {most} replica{'' if most == 1 else 's'} in {limit.period_s:g} s"
        following = "the next one" if need == 1 else f"the next {need}"
        found.append((wait_s, f"{words}; {following} in {wait_s:.0f} s", f"room under {name} for {role}"))
    _, detail, waits_for = max(found)
    return detail, waits_for


def _within(after: Sizes, targets: Sizes, now: float, policy: PolicyInForce, memory: Memory) -> bool:
    return not any(
        _most(role, after, targets, now, policy, memory) < abs(after[role] - targets[role]) for role in Role
    )


def _most(
    role: Role, after: Sizes, targets: Sizes, now: float, policy: PolicyInForce, memory: Memory
) -> float:
    """Replicas by which the pool may change now in the direction of `after`."""
    if after[role] == targets[role]:
        return inf
    rule, sign = (policy.scale_up, 1) if after[role] > targets[role] else (policy.scale_down, -1)
    exchange = _exchange(role, after, targets, policy)
    most = allowed(rule, memory.changes, role, sign, targets[role], now, exchange)
    return inf if most is None else most


def _exchange(role: Role, after: Sizes, targets: Sizes, policy: PolicyInForce) -> int:
    """Replicas by which a pool changes in the smallest whole exchange of a kind with this change."""
    gives = after[role] < targets[role] and after[role.other] > targets[role.other]
    return ceil(policy.pools[role.other].accelerators / policy.pools[role].accelerators) if gives else 1


def _left(limit: Limit, changes: tuple[Change, ...], sign: int, size: int, now: float, exchange: int) -> int:
    """Replicas that one limit still allows after these changes of its pool."""
    recent = [change for change in changes if change.at > now - limit.period_s]
    most = _value(limit, recent[0].size if recent else size, exchange)
    return max(0, most - sum(abs(change.delta) for change in recent if change.delta * sign > 0))


def _value(limit: Limit, size: int, exchange: int) -> int:
    return max(exchange, ceil(size * limit.value / 100) if limit.percent else limit.value)


def _free_in(
    limit: Limit, changes: tuple[Change, ...], sign: int, size: int, now: float, exchange: int, need: int
) -> float:
    """Seconds until a limit allows so many replicas: until enough of the past changes are forgotten."""
    for at in (now, *sorted(change.at + limit.period_s for change in changes)):
        # A little later: adding and taking away the period may not give the same number.
        if at >= now and _left(limit, changes, sign, size, at + 1e-6, exchange) >= need:
            return at - now
    return inf
