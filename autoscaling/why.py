"""Plain words of a recorded decision or move: what was seen, each step, what was decided, what it waits for.

Records are JSON objects of an earlier moment, perhaps of another version: what is absent or null is
unknown and said to be, and a word that is not known here is shown as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from autoscaling.decisions import HoldBy, MoveState, Reason
from autoscaling.instants import rfc3339
from autoscaling.types import Role
from autoscaling.why_words import (
    HOLD_ENDS,
    HOLDERS,
    MOVE_WAITS,
    MOVES,
    NOT_KNOWN,
    NOTHING,
    REASONS,
    STEADY,
    WAITS,
)

Record = Mapping[str, Any]


def explain_decision(decision_record: Record) -> str:
    """Several lines of plain text on one recorded `Decision`."""
    return "".join(f"{line}\n" for line in _decision(decision_record))


def explain_move(move: Record) -> str:
    """Several lines of plain text on one recorded `Move`."""
    return "".join(f"{line}\n" for line in _move(move))


def _decision(record: Record) -> Iterator[str]:
    head = f"decision {_known(record.get('number'))} at {_time(record.get('wall'))}"
    yield f"{head}, policy revision {_known(record.get('revision'))}: {_known(record.get('summary'))}"
    yield "seen:"
    signals = record.get("signals") or {}
    if not signals:
        yield "  nothing was known about the pools"
    for pool, signal in signals.items():
        yield f"  {pool}: {_signal(signal)}"
    yield "steps:"
    for step in record.get("steps") or ():
        yield f"  {_step(step, signals)}"
    yield f"decided: {_sizes(record.get('targets'))}, because {_because(record.get('reason'), signals)}"
    if record.get("plan") != record.get("targets"):
        yield f"published until the rest may follow: {_sizes(record.get('plan'))}"
    yield f"budget: {_known(record.get('budget'))} accelerators"
    if hold := record.get("hold"):
        yield f"held: {_hold(hold)}"
    if move := record.get("move"):
        begun = "begins" if record.get("begun") else "is on its way" if _running(move) else "was the last one"
        yield f"move {_known(move.get('id'))} {begun}: {_what(move)}, {_state(move)}"
    yield f"waits for: {_waits(record)}"


def _move(move: Record) -> Iterator[str]:
    yield f"move {_known(move.get('id'))}: {_what(move)}"
    yield f"begun at {_time(move.get('wall'))} under policy revision {_known(move.get('revision'))}"
    yield f"why: {_reason(move.get('reason'))}"
    yield f"before: {_sizes(move.get('before'))}"
    yield f"after: {_sizes(move.get('after'))}"
    for name, words in (
        ("drained_at", "the replicas that go had drained"),
        ("started_at", "the replicas that come were allowed to start"),
        ("ended_at", "it ended"),
    ):
        if (at := move.get(name)) is not None and (begin := move.get("at")) is not None:
            yield f"  {at - begin:.0f} s after its begin {words}"
    yield f"state: {_state(move)}"
    if _running(move):
        yield f"waits for: {_move_waits(move)}"
    elif waited := move.get("waiting_for"):
        yield f"it waited for: {waited}"


def _signal(signal: Record) -> str:
    capacity, used = signal.get("capacity"), signal.get("utilization")
    return (
        f"target {_known(signal.get('replicas'))}; demand {_number(signal.get('demand'))} of "
        f"{_number(capacity)} sequences that so many replicas serve inside their limits; "
        f"utilization {'unknown' if used is None else f'{used:.2f}'}"
    )


def _step(step: Record, signals: Record) -> str:
    name, word, detail = _known(step.get("name")), step.get("reason"), step.get("detail")
    if word == Reason.STEADY and name in STEADY:
        reason = f"{STEADY[name]} ({word})"
    elif word == Reason.STEADY and name == "want" and detail:
        reason, detail = f"{detail} ({word})", None
    else:
        reason = _because(word, signals)
    said = f" ({detail})" if detail else ""
    return f"{name}: {reason}{said}; then {_sizes(step.get('targets'))}"


def _because(word: Any, signals: Record) -> str:
    """The reason in words; with a pool whose need is unknown "steady" claims no more than is known."""
    unknown = not signals or any(signal.get("utilization") is None for signal in signals.values())
    return f"{NOT_KNOWN} ({word})" if word == Reason.STEADY and unknown else _reason(word)


def _waits(record: Record) -> str:
    if hold := record.get("hold"):
        by = hold.get("by")
        return HOLD_ENDS[HoldBy(by)] if by in set(HoldBy) else "the end of the hold"
    if (move := record.get("move")) and _running(move):
        return _move_waits(move)
    if record.get("targets") is None:
        return "knowledge of the replicas"
    for step in reversed(record.get("steps") or ()):
        if waits_for := step.get("waits_for"):
            return str(waits_for)
    reason = record.get("reason")
    return WAITS.get(Reason(reason), NOTHING) if reason in set(Reason) else "unknown"


def _move_waits(move: Record) -> str:
    return str(move.get("waiting_for") or MOVE_WAITS[MoveState(move["state"])])


def _what(move: Record) -> str:
    before, after = move.get("before") or {}, move.get("after") or {}
    changes = [
        after[pool] - before[pool]
        for pool in _ordered(before)
        if after.get(pool, before[pool]) != before[pool]
    ]
    if len(changes) > 1 and sum(changes) != 0:
        return ", ".join(f"{pool} {before[pool]} -> {after.get(pool)}" for pool in _ordered(before))
    count = _count(move.get("count"), "replica")
    source, receiver = move.get("source"), move.get("receiver")
    return f"{count} from {source or 'the free budget'} to {receiver or 'the free budget'}"


def _state(move: Record) -> str:
    word = move.get("state")
    return f"{word}: {MOVES[MoveState(word)]}" if word in set(MoveState) else _known(word)


def _running(move: Record) -> bool:
    return move.get("state") in MOVE_WAITS


def _hold(hold: Record) -> str:
    by = hold.get("by")
    words = HOLDERS[HoldBy(by)] if by in set(HoldBy) else _known(by)
    who = f", {hold['who']}" if hold.get("who") else ""
    end = f", ends at {_time(hold['expires'])}" if hold.get("expires") is not None else ""
    return f"{words}; since {_time(hold.get('since'))}{who}: {_known(hold.get('reason'))}{end}"


def _reason(word: Any) -> str:
    return f"{REASONS[Reason(word)]} ({word})" if word in set(Reason) else _known(word)


def _sizes(sizes: Record | None) -> str:
    return ", ".join(f"{pool} {sizes[pool]}" for pool in _ordered(sizes)) if sizes else "targets unknown"


def _ordered(sizes: Record) -> list[str]:
    """The pools in the order of `Role`, then what another version may call a pool."""
    return [
        *(role.value for role in Role if role in sizes),
        *(pool for pool in sizes if pool not in set(Role)),
    ]


def _count(count: Any, noun: str) -> str:
    return f"{_known(count)} {noun}{'' if count == 1 else 's'}"


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:g}"


def _time(wall: float | None) -> str:
    return "an unknown time" if wall is None else rfc3339(wall)


def _known(value: Any) -> str:
    return "unknown" if value is None else str(value)
