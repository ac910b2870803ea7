"""What in a kept state cannot be true although it could be read; the words name the place and the value."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from autoscaling.decisions import Hold, Memory, Move, Sizes
from autoscaling.overrides import Override
from autoscaling.types import Role
from deployments.kept_state import State

MOST_REPLICAS = 10_000
LARGEST = 2**53
LAST_WALL = 253_402_300_799.0  # 9999-12-31T23:59:59Z, the last second that RFC 3339 can say


class UnusableError(ValueError):
    """A kept state, or a part of one, that must not be acted on."""


def check_state(state: State) -> None:
    """Numbers and times of the document itself; UnusableError."""
    _wall("saved_wall", state.saved_wall)
    if abs(state.saved_now) > LARGEST:
        raise UnusableError(f"saved_now is {state.saved_now}")
    _counts("audit_seq", [state.audit_seq], LARGEST)
    known = 0
    for record in state.revisions:
        if not known < record.revision <= LARGEST:
            raise UnusableError(f"revision {record.revision} stands after revision {known}")
        _wall(f"at of revision {record.revision}", record.at)
        known = record.revision


def check_memory(memory: Memory, now: float, longest_s: float) -> None:
    """Sizes of both pools, counters, and no cool-down longer than any; UnusableError."""
    for name, sizes in (("targets", memory.targets), ("plan", memory.plan)):
        if sizes is not None:
            _sizes(name, sizes)
    _counts("moves", [memory.moves, memory.decisions], LARGEST)
    for change in memory.changes:
        _counts("a change", (abs(change.delta), change.size), MOST_REPLICAS)
    if memory.cooling_until is not None and memory.cooling_until - now > longest_s:
        raise UnusableError(f"cooling_until is {memory.cooling_until - now:g} s ahead")
    if memory.move is not None:
        check_move(memory.move)
    if memory.hold is not None:
        check_hold(memory.hold)


def check_move(move: Move) -> None:
    """Sizes and times of a move; UnusableError."""
    _sizes("before", move.before)
    _sizes("after", move.after)
    _counts(f"count of {move.id}", [move.count], MOST_REPLICAS)
    _counts(f"revision of {move.id}", [move.revision], LARGEST)
    _wall(f"wall of {move.id}", move.wall)


def check_hold(hold: Hold) -> None:
    """Times that can be shown; UnusableError."""
    for value in (hold.since, hold.expires):
        _wall("a time of a hold", value)


def check_override(one: Override) -> None:
    """Sizes and times of an operator's override; UnusableError."""
    given = [value for value in (one.replicas, one.minimum, one.maximum) if value is not None]
    _counts(f"override {one.id}", given, MOST_REPLICAS)
    for value in (one.since, one.until):
        _wall(f"a time of override {one.id}", value)


def readable_moves(log: Iterable[dict[str, Any]]) -> tuple[dict[str, Any], ...]:
    """The moves of a log that can be shown; the others are history and stop nothing."""
    return tuple(one for one in log if _is_move(one))


def _is_move(plain: dict[str, Any]) -> bool:
    try:
        check_move(msgspec.convert(plain, Move))
    except ValueError:
        return False
    return True


def _sizes(name: str, sizes: Sizes) -> None:
    if set(sizes) != set(Role):
        raise UnusableError(f"{name} names {', '.join(sorted(sizes)) or 'no pool'}, not both pools")
    _counts(name, sizes.values(), MOST_REPLICAS)


def _counts(name: str, values: Iterable[int], most: int) -> None:
    for value in values:
        if not 0 <= value <= most:
            raise UnusableError(f"{name}: {str(value)[:40]} is not in 0..{most}")


def _wall(name: str, value: float | None) -> None:
    if value is not None and not 0.0 <= value <= LAST_WALL:
        raise UnusableError(f"{name} is {value:g}")
