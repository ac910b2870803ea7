"""Plain words of a recorded decision or move: what was seen, each step, what was decided, what it waits for.

Records are JSON objects of an earlier moment, perhaps of another version: what is absent or null is
unknown and said to be, and a word that is not known here is shown as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from autoscaling.decisions import HoldBy, MoveState, Reason
from autoscaling.types import Role
from autoscaling.why_values import Record, figure, known, mapping, moment, number, objects, one_of
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


def explain_decision(decision_record: Record) -> str:
    """Several lines of plain text on one recorded `Decision`."""
    return "".join(f"{line}\n" for line in _decision(decision_record))


def explain_move(move: Record) -> str:
    """Several lines of plain text on one recorded `Move`."""
    return "".join(f"{line}\n" for line in _move(move))


def _decision(record: Record) -> Iterator[str]:
    head = f"decision {known(record.get('number'))} at {moment(record.get('wall'))}"
    yield f"{head}, policy revision {known(record.get('revision'))}: {known(record.get('summary'))}"
    yield "seen:"
    signals = mapping(record.get("signals"))
    if not signals:
        yield "  nothing was known about the pools"
    for pool, signal in signals.items():
        yield f"  {pool}: {_signal(mapping(signal))}"
    yield "steps:"
    for step in objects(record.get("steps")):
        yield f"  {_step(step, signals)}"
    yield f"decided: {_sizes(record.get('targets'))}, because {_because(record.get('reason'), signals)}"
    if record.get("plan") != record.get("targets"):
        yield f"published until the rest may follow: {_sizes(record.get('plan'))}"
    yield f"budget: {known(record.get('budget'))} accelerators"
    if hold := mapping(record.get("hold")):
        yield f"held: {_hold(hold)}"
    if move := mapping(record.get("move")):
        begun = "begins" if record.get("begun") else "is on its way" if _running(move) else "was the last one"
        yield f"move {known(move.get('id'))} {begun}: {_what(move)}, {_state(move)}"
    yield f"waits for: {_waits(record)}"


def _move(move: Record) -> Iterator[str]:
    yield f"move {known(move.get('id'))}: {_what(move)}"
    yield f"begun at {moment(move.get('wall'))} under policy revision {known(move.get('revision'))}"
    yield f"why: {_reason(move.get('reason'))}"
    yield f"before: {_sizes(move.get('before'))}"
    yield f"after: {_sizes(move.get('after'))}"
    for name, words in (
        ("drained_at", "the replicas that go had drained"),
        ("started_at", "the replicas that come were allowed to start"),
        ("ended_at", "it ended"),
    ):
        at, begin = number(move.get(name)), number(move.get("at"))
        if at is not None and begin is not None:
            yield f"  {at - begin:.0f} s after its begin {words}"
    yield f"state: {_state(move)}"
    if _running(move):
        yield f"waits for: {_move_waits(move)}"
    elif waited := move.get("waiting_for"):
        yield f"it waited for: {waited}"


def _signal(signal: Record) -> str:
    return (
        f"target {known(signal.get('replicas'))}; demand {figure(signal.get('demand'), 'g')} of "
        f"{figure(signal.get('capacity'), 'g')} sequences that so many replicas serve inside their limits; "
        f"utilization {figure(signal.get('utilization'), '.2f')}"
    )


def _step(step: Record, signals: Record) -> str:
    name, word, detail = known(step.get("name")), step.get("reason"), step.get("detail")
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
    unknown = not signals or any(
        number(mapping(signal).get("utilization")) is None for signal in signals.values()
    )
    return f"{NOT_KNOWN} ({word})" if word == Reason.STEADY and unknown else _reason(word)


def _waits(record: Record) -> str:
    if hold := mapping(record.get("hold")):
        by = one_of(hold.get("by"), HoldBy)
        return "the end of the hold" if by is None else HOLD_ENDS[by]
    if (move := mapping(record.get("move"))) and _running(move):
        return _move_waits(move)
    if record.get("targets") is None:
        return "knowledge of the replicas"
    for step in reversed(objects(record.get("steps"))):
        if waits_for := step.get("waits_for"):
            return str(waits_for)
    reason = one_of(record.get("reason"), Reason)
    return "unknown" if reason is None else WAITS.get(reason, NOTHING)


def _move_waits(move: Record) -> str:
    return str(move.get("waiting_for") or MOVE_WAITS[MoveState(move["state"])])


def _what(move: Record) -> str:
    before, after = mapping(move.get("before")), mapping(move.get("after"))
    pairs = [(number(before[pool]), number(after.get(pool, before[pool]))) for pool in _ordered(before)]
    changes = [new - old for old, new in pairs if old is not None and new is not None and old != new]
    if len(changes) > 1 and sum(changes) != 0:
        return ", ".join(f"{pool} {before[pool]} -> {known(after.get(pool))}" for pool in _ordered(before))
    count = _count(move.get("count"), "replica")
    source, receiver = move.get("source"), move.get("receiver")
    return f"{count} from {source or 'the free budget'} to {receiver or 'the free budget'}"


def _state(move: Record) -> str:
    word = move.get("state")
    state = one_of(word, MoveState)
    return known(word) if state is None else f"{word}: {MOVES[state]}"


def _running(move: Record) -> bool:
    return one_of(move.get("state"), MoveState) in MOVE_WAITS


def _hold(hold: Record) -> str:
    by = one_of(hold.get("by"), HoldBy)
    words = known(hold.get("by")) if by is None else HOLDERS[by]
    who = f", {hold['who']}" if hold.get("who") else ""
    end = f", ends at {moment(hold['expires'])}" if hold.get("expires") is not None else ""
    return f"{words}; since {moment(hold.get('since'))}{who}: {known(hold.get('reason'))}{end}"


def _reason(word: Any) -> str:
    reason = one_of(word, Reason)
    return known(word) if reason is None else f"{REASONS[reason]} ({word})"


def _sizes(found: Any) -> str:
    sizes = mapping(found)
    return ", ".join(f"{pool} {sizes[pool]}" for pool in _ordered(sizes)) or "targets unknown"


def _ordered(sizes: Record) -> list[str]:
    """The pools in the order of `Role`, then what another version may call a pool."""
    return [
        *(role.value for role in Role if role in sizes),
        *(pool for pool in sizes if pool not in set(Role)),
    ]


def _count(count: Any, noun: str) -> str:
    return f"{known(count)} {noun}{'' if count == 1 else 's'}"
