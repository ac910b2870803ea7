"""Plain words of a recorded decision or move: what was seen, each step, what was decided, what it waits for.

Records are JSON objects of an earlier moment, perhaps of another version: what is absent or null is
unknown and said to be, and a word that is not known here is shown as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from autoscaling.decisions import HoldBy, MoveState, Reason
from autoscaling.instants import rfc3339

REASONS: Mapping[Reason, str] = {
    Reason.STEADY: "no pool is short",
    Reason.BOOTSTRAP: "the application is new and starts with the policy's bootstrap sizes",
    Reason.SHORTFALL: "the demand of a pool stayed above what it can serve",
    Reason.UNASSIGNED: "accelerators below budget.min belonged to no pool",
    Reason.SURPLUS: "accelerators above budget.min are needed by no pool and are given back",
    Reason.OVER_BUDGET: "the pools together had more accelerators than budget.max",
    Reason.BOUNDS: "a pool was outside its minReplicas or maxReplicas",
    Reason.SCHEDULE: "a schedule asks for other bounds now",
    Reason.OVERRIDE: "an override forces a pool",
    Reason.WINDOW: "the cause has not lasted for the stabilization window yet",
    Reason.COOLDOWN: "the last move ended less than cooldownSeconds ago",
    Reason.BEHAVIOR: "the policy's scaleUp or scaleDown allows no more change now",
    Reason.IN_FLIGHT: "another move is still on its way",
    Reason.NO_DONOR: "the other pool would no longer serve its own demand with fewer replicas",
    Reason.AT_MINIMUM: "the pool that should give is at its minimum",
    Reason.AT_MAXIMUM: "the pool that is short is at its maximum",
    Reason.STARTING: "the short pool has replicas that are still starting",
    Reason.HELD: "the targets are held",
}
HOLDERS: Mapping[HoldBy, str] = {
    HoldBy.OPERATOR: "an operator holds the targets",
    HoldBy.POLICY: "the policy's mode is hold",
    HoldBy.METRICS: "too few replicas report",
    HoldBy.SERVE: "Ray Serve's replica states are unknown",
    HoldBy.START: "the controller has just started and has not heard from every replica",
    HoldBy.NO_POLICY: "no valid policy was ever read",
}
HOLD_ENDS: Mapping[HoldBy, str] = {
    HoldBy.OPERATOR: "`twinpool release`, or the end of the hold if it has one",
    HoldBy.POLICY: "another mode in the policy file",
    HoldBy.METRICS: "fresh reports of enough replicas",
    HoldBy.SERVE: "an answer of Ray Serve",
    HoldBy.START: "the first reports of the replicas",
    HoldBy.NO_POLICY: "a policy file without errors",
}
MOVES: Mapping[MoveState, str] = {
    MoveState.DRAINING: "the replicas that go finish the answers that they have",
    MoveState.STARTING: "the replicas that come are starting",
    MoveState.DONE: "complete",
    MoveState.TIMED_OUT: "given up after guardrails.moveTimeoutSeconds; the targets stay as they are",
    MoveState.REPLACED: "another change of the targets came before its end",
}
MOVE_WAITS: Mapping[MoveState, str] = {
    MoveState.DRAINING: "the last answers of the replicas that go",
    MoveState.STARTING: "the replicas that come",
}
# Reasons after which the same observation may decide otherwise a little later.
WAITS: Mapping[Reason, str] = {
    Reason.WINDOW: "the end of the stabilization window",
    Reason.COOLDOWN: "the end of the cooldown",
    Reason.BEHAVIOR: "room under the policy's scaleUp and scaleDown",
    Reason.IN_FLIGHT: "the end of the move that is on its way",
    Reason.STARTING: "the replicas that are starting",
}
NOTHING = "nothing; the next tick decides anew"

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
        yield f"  {_step(step)}"
    yield f"decided: {_sizes(record.get('targets'))}, because {_reason(record.get('reason'))}"
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
        f"{_count(signal.get('replicas'), 'replica')}; demand {_number(signal.get('demand'))} of "
        f"{_number(capacity)} sequences that they serve inside their limits; "
        f"utilization {'unknown' if used is None else f'{used:.2f}'}"
    )


def _step(step: Record) -> str:
    detail = f" ({step['detail']})" if step.get("detail") else ""
    reason = f"{_reason(step.get('reason'))}{detail}"
    return f"{_known(step.get('name'))}: {reason}; then {_sizes(step.get('targets'))}"


def _waits(record: Record) -> str:
    if hold := record.get("hold"):
        by = hold.get("by")
        return HOLD_ENDS[HoldBy(by)] if by in set(HoldBy) else "the end of the hold"
    if (move := record.get("move")) and _running(move):
        return _move_waits(move)
    if record.get("targets") is None:
        return "knowledge of the replicas"
    reason = record.get("reason")
    return WAITS.get(Reason(reason), NOTHING) if reason in set(Reason) else "unknown"


def _move_waits(move: Record) -> str:
    return str(move.get("waiting_for") or MOVE_WAITS[MoveState(move["state"])])


def _what(move: Record) -> str:
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
    return ", ".join(f"{pool} {size}" for pool, size in sizes.items()) if sizes else "targets unknown"


def _count(count: Any, noun: str) -> str:
    return f"{_known(count)} {noun}{'' if count == 1 else 's'}"


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:g}"


def _time(wall: float | None) -> str:
    return "an unknown time" if wall is None else rfc3339(wall)


def _known(value: Any) -> str:
    return "unknown" if value is None else str(value)
