"""When a wanted change may begin: windows, cool-down, one move at a time, and HPA's limits on change.

Repairs of bounds and budget do not come here; they never wait.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import ceil

from autoscaling.allocate import grown
from autoscaling.decisions import Change, Memory, Observation, PolicyInForce, Reason, ScaleRule, Sizes, Step
from autoscaling.moves import growing, in_flight, shrinking
from autoscaling.signals import Signals, short, spare
from autoscaling.types import Role

NAME = "stabilize"


def watch(memory: Memory, signals: Signals, policy: PolicyInForce, now: float) -> Memory:
    """Memory that knows since when each pool is short or spare without a break; unknown is a break."""
    return replace(
        memory,
        short_since={r: memory.short_since.get(r, now) for r in signals if short(signals[r], policy)},
        spare_since={r: memory.spare_since.get(r, now) for r in signals if spare(signals[r], policy)},
    )


def stabilize(wanted: Step, targets: Sizes, seen: Observation, policy: PolicyInForce, memory: Memory) -> Step:
    """The part of a wanted change that may begin now; unchanged targets say with their reason why not."""
    after = wanted.targets or targets
    gains, gives = growing(targets, after), shrinking(targets, after)
    if not gains and not gives:
        return Step(NAME, wanted.reason, targets)
    if memory.move is not None and in_flight(memory.move):
        return Step(NAME, Reason.IN_FLIGHT, targets, f"{memory.move.id} waits for {memory.move.waiting_for}")
    if wanted.reason is Reason.UNASSIGNED:
        return Step(NAME, wanted.reason, after)
    wait = _wait(gains, gives, targets, seen, policy, memory)
    if wait is not None:
        return Step(NAME, wait[0], targets, wait[1])
    part = _cut(after, targets, seen.now, policy, memory)
    if part == targets:
        return Step(NAME, Reason.BEHAVIOR, targets, "behavior allows no further change of replicas yet")
    return Step(NAME, wanted.reason, part)


def allowed(
    rule: ScaleRule, changes: tuple[Change, ...], pool: Role, sign: int, size: int, now: float
) -> int | None:
    """Replicas by which a pool may still change in one direction (sign 1 or -1); None: any number."""
    if rule.select == "Disabled":
        return 0
    if not rule.limits:
        return None
    left = []
    for limit in rule.limits:
        recent = [change for change in changes if change.pool is pool and change.at > now - limit.period_s]
        most = limit.value
        if limit.percent:
            start = recent[0].size if recent else size
            most = max(1, ceil(start * limit.value / 100))
        left.append(max(0, most - sum(abs(c.delta) for c in recent if c.delta * sign > 0)))
    return min(left) if rule.select == "Min" else max(left)


def changed(
    changes: tuple[Change, ...], before: Sizes, after: Sizes, policy: PolicyInForce, now: float
) -> tuple[Change, ...]:
    """The past changes that a limit may still ask for, and the new one."""
    limits = (*policy.scale_up.limits, *policy.scale_down.limits)
    longest = max((limit.period_s for limit in limits), default=0.0)
    new = (Change(now, r, after[r] - before[r], before[r]) for r in Role if after[r] != before[r])
    return (*(change for change in changes if change.at > now - longest), *new)


def _wait(
    gains: tuple[Role, ...],
    gives: tuple[Role, ...],
    targets: Sizes,
    seen: Observation,
    policy: PolicyInForce,
    memory: Memory,
) -> tuple[Reason, str] | None:
    if memory.cooling_until is not None and seen.now < memory.cooling_until:
        return Reason.COOLDOWN, f"the cool-down lasts {memory.cooling_until - seen.now:.0f} s more"
    for role in gains:
        pool = seen.pools[role]
        if pool.running is None or pool.starting != 0 or pool.running < targets[role]:
            return Reason.STARTING, f"{pool.running} of {targets[role]} replicas of {role} are running"
    return _window("short", gains, memory.short_since, policy.scale_up.window_s, seen.now) or _window(
        "spare", gives, memory.spare_since, policy.scale_down.window_s, seen.now
    )


def _window(
    word: str, roles: tuple[Role, ...], since: Mapping[Role, float], window_s: float, now: float
) -> tuple[Reason, str] | None:
    for role in roles:
        lasted = now - since.get(role, now)
        if role not in since or lasted < window_s:
            return Reason.WINDOW, f"{role} has been {word} for {lasted:.0f} of {window_s:.0f} s"
    return None


def _cut(after: Sizes, targets: Sizes, now: float, policy: PolicyInForce, memory: Memory) -> Sizes:
    """The wanted change, smaller by one replica at a time until both directions' limits allow it."""
    while not _within(after, targets, now, policy, memory):
        gains = growing(targets, after)
        if not gains:
            return targets
        after = grown(targets, gains[0], after[gains[0]] - targets[gains[0]] - 1, policy)
    return after


def _within(after: Sizes, targets: Sizes, now: float, policy: PolicyInForce, memory: Memory) -> bool:
    for role in Role:
        delta = after[role] - targets[role]
        if delta:
            rule, sign = (policy.scale_up, 1) if delta > 0 else (policy.scale_down, -1)
            most = allowed(rule, memory.changes, role, sign, targets[role], now)
            if most is not None and abs(delta) > most:
                return False
    return True
