"""What a former life left, by this life's clocks: the saved state and the audit lines behind it, checked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from autoscaling.decisions import Hold, Memory
from autoscaling.memory import shifted
from autoscaling.overrides import Override
from deployments.kept_checks import (
    check_hold,
    check_memory,
    check_override,
    check_state,
    readable_moves,
)
from deployments.kept_state import State
from deployments.record_reader import Record

LONGEST_AWAY_S = 7 * 86_400.0  # a wall clock that jumped further says nothing; no cool-down is longer

# Whatever stands in a file that is JSON: wrong types, wrong sizes, numbers beyond a float, lists in lists.
UNUSABLE = (ValueError, TypeError, OverflowError, RecursionError)


@dataclass(frozen=True, slots=True)
class Left:
    """What a former life left; nothing when `state` is None."""

    state: State | None = None
    memory: Memory = field(default_factory=Memory)
    shadow_memory: Memory | None = None
    hold: Hold | None = None
    overrides: tuple[Override, ...] = ()
    problem: str | None = None


def revived(state: State, now: float, wall: float) -> Left:
    """The state by clocks that show `now` (monotonic) and `wall`; raises one of UNUSABLE."""
    check_state(state)
    state = replace(state, move_log=readable_moves(state.move_log))
    msgspec.json.encode(state)  # what cannot be written again must not be acted on
    away = min(max(0.0, wall - state.saved_wall), LONGEST_AWAY_S)
    delta = now - state.saved_now - away

    def memory(plain: dict[str, Any] | None) -> Memory | None:
        if plain is None:
            return None
        found = shifted(msgspec.convert(plain, Memory), delta, now)
        check_memory(found, now, LONGEST_AWAY_S)
        return found

    holds = msgspec.convert(state.holds, tuple[Hold, ...])
    overrides = msgspec.convert(state.overrides, tuple[Override, ...])
    for hold in holds:
        check_hold(hold)
    for override in overrides:
        check_override(override)
    return Left(
        state=state,
        memory=memory(state.memory) or Memory(),
        shadow_memory=memory(state.shadow_memory),
        hold=holds[0] if holds else None,
        overrides=overrides,
    )


def laid_over(
    state: State | None, lines: Iterable[Record], now: float, wall: float
) -> tuple[State | None, str | None]:
    """The state after younger audit lines, and which of them could not be used.

    A line that carries what cannot be true is left out, and those around it count.
    """
    lines = tuple(lines)
    try:
        together = _after(state, lines)
        if together is not None:
            revived(together, now, wall)
    except UNUSABLE:
        pass
    else:
        return together, None
    problems = []
    for line in lines:
        try:
            after = _after(state, (line,))
            assert after is not None
            revived(after, now, wall)
        except UNUSABLE as error:
            problems.append(f"line {line['seq']} of the audit cannot be used ({words(error)})")
            after = replace(state or State(), audit_seq=line["seq"])
        state = after
    more = f", and {len(problems) - 1} more" if len(problems) > 1 else ""
    return state, f"{problems[0]}{more}" if problems else None


def _after(state: State | None, lines: tuple[Record, ...]) -> State | None:
    if not lines:
        return state
    state = state or State()
    known: dict[str, Any] = {}
    for line in lines:
        part = line.get("state") or {}
        if not isinstance(part, dict):
            raise TypeError(f"state is {type(part).__name__}")
        # The times of the state's memory are by the clock that was saved with that memory.
        clock = () if "memory" in part else ("saved_now", "saved_wall")
        known |= {
            name: part[name] for name in part if name in State.__dataclass_fields__ and name not in clock
        }
    fresh = msgspec.convert(msgspec.to_builtins(state) | known, State)
    return replace(fresh, audit_seq=lines[-1]["seq"])


def words(error: Exception) -> str:
    """An error of UNUSABLE in one line."""
    return f"{type(error).__name__}: {error}"[:300]
