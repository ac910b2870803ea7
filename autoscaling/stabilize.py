"""When a wanted change may begin: windows, cool-down, one move at a time, and HPA's limits on change.

Repairs of bounds and budget do not come here; they never wait.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from autoscaling.decisions import Memory, Observation, PolicyInForce, PoolObservation, Reason, Sizes, Step
from autoscaling.limits import cut, refused
from autoscaling.moves import growing, in_flight, shrinking
from autoscaling.signals import Signals, short, spare
from autoscaling.types import Role

NAME = "stabilize"
NTH = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")


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
    part = cut(after, targets, seen.now, policy, memory)
    if part == targets:
        detail, waits_for = refused(after, targets, seen.now, policy, memory)
        return Step(NAME, Reason.BEHAVIOR, targets, detail, waits_for)
    return Step(NAME, wanted.reason, part)


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
            plan = targets[role] if memory.plan is None else memory.plan[role]
            return Reason.STARTING, _missing(role, pool, targets[role], plan)
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


def _missing(role: Role, pool: PoolObservation, target: int, plan: int) -> str:
    """Which replicas of a pool that should receive are not up yet, and what they wait for."""
    if pool.running is None or pool.starting != 0:
        return f"{pool.running} of {target} replicas of {role} are running"
    left = target - pool.running
    which = f"{left} replicas" if left > 1 else f"the {_nth(target)}"
    if plan < target:
        wait = f"wait{'' if left > 1 else 's'} for an accelerator"
    else:
        wait = f"{'have' if left > 1 else 'has'} not begun to start"
    return f"{pool.running} of {target} replicas of {role} run; {which} {wait}"


def _nth(number: int) -> str:
    return NTH[number - 1] if number <= len(NTH) else f"number {number}"
