"""A memory that outlives its controller: the same facts by another clock."""

from __future__ import annotations

from dataclasses import replace

from autoscaling.decisions import Memory, Move


def shifted(memory: Memory, delta_s: float, now: float) -> Memory:
    """Memory by a clock that shows `delta_s` more than the one it was written by.

    Wall clocks jump, so what has happened is never later than `now`; a cool-down keeps its distance from
    the end of its move.
    """

    def by(at: float) -> float:
        return min(at + delta_s, now)

    cooling = memory.cooling_until
    if cooling is not None:
        ended = memory.move.ended_at if memory.move is not None else None
        cooling = cooling + delta_s if ended is None else by(ended) + (cooling - ended)
    return replace(
        memory,
        short_since={role: by(at) for role, at in memory.short_since.items()},
        spare_since={role: by(at) for role, at in memory.spare_since.items()},
        changes=tuple(replace(change, at=by(change.at)) for change in memory.changes),
        move=None if memory.move is None else _move(memory.move, delta_s, now),
        cooling_until=cooling,
    )


def _move(move: Move, delta_s: float, now: float) -> Move:
    def by(at: float | None) -> float | None:
        return None if at is None else min(at + delta_s, now)

    return replace(
        move,
        at=min(move.at + delta_s, now),
        drained_at=by(move.drained_at),
        started_at=by(move.started_at),
        ended_at=by(move.ended_at),
    )
