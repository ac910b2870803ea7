"""A move from its beginning to its end, as the observations show it.

A move is whatever changes targets after the bootstrap; at most one is on its way.
"""

from __future__ import annotations

from dataclasses import replace

from autoscaling.decisions import (
    Memory,
    Move,
    MoveState,
    Observation,
    PolicyInForce,
    PoolObservation,
    Reason,
    Sizes,
)
from autoscaling.types import Role

LATE = " (late: longer than drainTimeoutSeconds)"


def growing(before: Sizes, after: Sizes) -> tuple[Role, ...]:
    """The pools that gain replicas."""
    return tuple(role for role in Role if after[role] > before[role])


def shrinking(before: Sizes, after: Sizes) -> tuple[Role, ...]:
    """The pools that lose replicas."""
    return tuple(role for role in Role if after[role] < before[role])


def in_flight(move: Move | None) -> bool:
    """Whether a move is still on its way."""
    return move is not None and move.state in (MoveState.DRAINING, MoveState.STARTING)


def begin(
    number: int, before: Sizes, after: Sizes, reason: Reason, seen: Observation, policy: PolicyInForce
) -> Move:
    """A new move; source and receiver are the pools that lose and gain most, None where there is none."""

    def most(roles: tuple[Role, ...]) -> Role | None:
        return max(roles, key=lambda role: abs(after[role] - before[role]), default=None)

    receiver, source = most(growing(before, after)), most(shrinking(before, after))
    counted = receiver or source
    move = Move(
        id=f"m{number}",
        at=seen.now,
        wall=seen.wall,
        source=source,
        receiver=receiver,
        count=abs(after[counted] - before[counted]) if counted is not None else 0,
        reason=reason,
        before=dict(before),
        after=dict(after),
        state=MoveState.DRAINING if source is not None else MoveState.STARTING,
        revision=policy.revision,
    )
    return replace(move, waiting_for=_waiting(move, seen) or "Ray Serve")


def follow(memory: Memory, seen: Observation, policy: PolicyInForce) -> tuple[Memory, Move | None]:
    """Memory with the move as it stands now, and that move if it ended with this observation.

    The same observation again changes nothing: a move ends later than it begins.
    """
    move = memory.move
    if move is None or not in_flight(move) or seen.now <= move.at:
        return memory, None
    if move.state is MoveState.DRAINING and _left(shrinking(move.before, move.after), move, seen) == 0:
        move = replace(move, state=MoveState.STARTING, drained_at=seen.now)
    if move.state is MoveState.STARTING and _left(growing(move.before, move.after), move, seen) == 0:
        move = _end(move, MoveState.DONE, seen.now)
    elif seen.now - move.at >= policy.move_timeout_s:
        move = _end(move, MoveState.TIMED_OUT, seen.now)
    if not in_flight(move):
        return replace(memory, move=move, cooling_until=seen.now + policy.cooldown_s), move
    waiting = _waiting(move, seen) or move.waiting_for.removesuffix(LATE)
    move = replace(move, waiting_for=waiting + (LATE if _late(move, seen, policy) else ""))
    return (memory if move == memory.move else replace(memory, move=move)), None


def replaced(move: Move, now: float) -> Move:
    """A move whose targets were changed again before its end."""
    return replace(move, state=MoveState.REPLACED, ended_at=now, waiting_for="")


def staged(move: Move, plan: Sizes, now: float) -> Move:
    """The move, with the time at which the plan first let a receiver grow."""
    if move.started_at is None and in_flight(move) and growing(move.before, plan):
        return replace(move, started_at=now)
    return move


def words(before: Sizes, after: Sizes) -> str:
    """A change of targets as the end of a sentence."""
    gains, gives = growing(before, after), shrinking(before, after)
    gained = sum(after[role] - before[role] for role in gains)
    given = sum(before[role] - after[role] for role in gives)
    if len(gains) > 1 or len(gives) > 1 or (gains and gives and gained != given):
        return ", ".join(f"{role} {before[role]} -> {after[role]}" for role in Role)
    if not gives:
        return f"{replicas(gained, gains[0])} added from free budget"
    if not gains:
        return f"{replicas(given, gives[0])} given back"
    verb = "moves" if gained == 1 else "move"
    return f"{gained} replica{'' if gained == 1 else 's'} {verb} from {gives[0]}"


def replicas(count: int, role: Role) -> str:
    """`1 replica of plain`, `2 replicas of plain`."""
    return f"{count} replica{'' if count == 1 else 's'} of {role}"


def _end(move: Move, state: MoveState, now: float) -> Move:
    # A move that was given up keeps what it waited for: that is where to look.
    return replace(
        move, state=state, ended_at=now, waiting_for="" if state is MoveState.DONE else move.waiting_for
    )


def _waiting(move: Move, seen: Observation) -> str:
    draining = move.state is MoveState.DRAINING
    roles = (shrinking if draining else growing)(move.before, move.after)
    counts = [(role, _left((role,), move, seen)) for role in roles]
    verb = "to drain" if draining else "to start"
    return ", ".join(f"{replicas(count, role)} {verb}" for role, count in counts if count)


def _late(move: Move, seen: Observation, policy: PolicyInForce) -> bool:
    """Whether the drain takes longer than its pools' drainTimeoutSeconds."""
    limits = [policy.pools[role].drain_timeout_s for role in shrinking(move.before, move.after)]
    return move.state is MoveState.DRAINING and bool(limits) and seen.now - move.at > max(limits)


def _left(roles: tuple[Role, ...], move: Move, seen: Observation) -> int | None:
    """Replicas of these pools that have not yet gone or come; None while Ray Serve's word is missing."""
    total = 0
    for role in roles:
        shrinks = move.after[role] < move.before[role]
        left = (_to_drain if shrinks else _to_start)(seen.pools[role], move.after[role])
        if left is None:
            return None
        total += left
    return total


def _to_drain(pool: PoolObservation, target: int) -> int | None:
    if pool.running is None or pool.starting is None or pool.draining is None:
        return None
    return max(0, pool.running + pool.starting - target) + pool.draining


def _to_start(pool: PoolObservation, target: int) -> int | None:
    # A replica that runs and has not reported yet serves nobody.
    return None if pool.running is None else max(0, target - min(pool.running, pool.reporting))
