"""The decision that follows from the steps, and the memory that the next tick needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from autoscaling import moves
from autoscaling.decisions import (
    Decision,
    Hold,
    Memory,
    Move,
    Observation,
    PolicyInForce,
    Reason,
    Sizes,
    Step,
)
from autoscaling.limits import changed
from autoscaling.signals import Signals
from autoscaling.types import Role

SAID = ("bounds", "want", "stabilize")  # the steps whose details are the summary


def record(
    steps: Sequence[Step],
    *,
    known: Step,
    chosen: Step,
    staged: Step,
    hold: Hold | None,
    signals: Signals,
    ended: Move | None,
    seen: Observation,
    policy: PolicyInForce,
    memory: Memory,
) -> tuple[Decision, Memory]:
    """Decision and memory; of the steps `known` has the start, `chosen` the targets, `staged` the plan."""
    before, after, move, changes = known.targets, chosen.targets, memory.move, memory.changes
    begun = before is not None and after is not None and before != after
    if move is not None and moves.in_flight(move) and (begun or known.reason is Reason.BOOTSTRAP):
        move = ended = moves.replaced(move, seen.now)
    if before is not None and after is not None and begun:
        move = moves.begin(memory.moves + 1, before, after, chosen.reason, seen, policy)
        changes = changed(changes, before, after, policy, seen.now)
    if move is not None and staged.targets is not None:
        move = moves.staged(move, staged.targets, seen.now)
    decision = Decision(
        number=memory.decisions + 1,
        wall=seen.wall,
        reason=chosen.reason,
        summary=_summary(steps, known, chosen, hold, move, begun),
        targets=after,
        plan=staged.targets,
        budget=policy.budget_max,
        steps=tuple(steps),
        signals=signals,
        revision=policy.revision,
        hold=hold,
        move=move,
        begun=begun,
        ended=ended,
    )
    remembered = replace(
        memory,
        targets=after,
        plan=staged.targets,
        changes=changes,
        move=move,
        moves=memory.moves + begun,
        decisions=decision.number,
        hold=hold,
    )
    return decision, remembered


def _summary(
    steps: Sequence[Step], known: Step, chosen: Step, hold: Hold | None, move: Move | None, begun: bool
) -> str:
    if known.reason is Reason.BOOTSTRAP and known.targets is not None:
        return f"{known.detail}: bootstrap with {_sizes(known.targets)}"
    if hold is not None:
        kept = "there are no targets to keep" if known.targets is None else f"{_sizes(known.targets)} stay"
        return f"{hold.reason}: {kept}"
    said = ", but ".join(step.detail for step in steps if step.detail and step.name in SAID)
    if move is None or chosen.reason is Reason.IN_FLIGHT:
        return said
    if begun:
        return f"{said}: {moves.words(move.before, move.after)}"
    return f"{said}; {move.id} waits for {move.waiting_for}" if moves.in_flight(move) else said


def _sizes(sizes: Sizes) -> str:
    return ", ".join(f"{role} {sizes[role]}" for role in Role)
