"""Recorded decisions and moves in plain words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from autoscaling.decisions import (
    Decision,
    Hold,
    HoldBy,
    Move,
    MoveState,
    Reason,
    Signal,
    Step,
)
from autoscaling.types import Role
from autoscaling.why import explain_decision, explain_move
from autoscaling.why_words import HOLD_ENDS, HOLDERS, MOVES, REASONS

WALL = 1_800_000_000.0  # 2027-01-15T08:00:00Z
SPECULATIVE, PLAIN = Role.SPECULATIVE, Role.PLAIN
BEFORE, AFTER = {SPECULATIVE: 4, PLAIN: 4}, {SPECULATIVE: 5, PLAIN: 3}
MOVE = Move(
    id="m3",
    at=1000.0,
    wall=WALL,
    source=PLAIN,
    receiver=SPECULATIVE,
    count=1,
    reason=Reason.SHORTFALL,
    before=BEFORE,
    after=AFTER,
    state=MoveState.DRAINING,
    revision=7,
    waiting_for="1 replica of plain to finish 3 answers",
)
DECISION = Decision(
    number=42,
    wall=WALL,
    reason=Reason.SHORTFALL,
    summary="1 replica moves from plain to speculative",
    targets=AFTER,
    plan={SPECULATIVE: 4, PLAIN: 3},
    budget=8,
    steps=(
        Step("know", Reason.STEADY, BEFORE),
        Step("want", Reason.SHORTFALL, AFTER, "speculative has 1.12 of 0.85"),
    ),
    signals={
        SPECULATIVE: Signal(36.0, 32.0, 1.125, 4),
        PLAIN: Signal(None, None, None, 4),
    },
    revision=7,
    move=MOVE,
    begun=True,
)


def record(value: Decision | Move) -> dict[str, Any]:
    """As it is recorded and read back."""
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(value))
    return found


def test_a_decision_with_a_move() -> None:
    """What was seen, each step and why, what was decided, what it waits for."""
    expected = """\
decision 42 at 2027-01-15T08:00:00Z, policy revision 7: 1 replica moves from plain to speculative
seen:
  speculative: target 4; demand 36 of 32 sequences that so many replicas serve inside their limits; \
utilization 1.12
  plain: target 4; demand unknown of unknown sequences that so many replicas serve inside their limits; \
utilization unknown
steps:
  know: enough is known (steady); then speculative 4, plain 4
  want: a pool is above utilization.above (shortfall) (speculative has 1.12 of 0.85); then \
speculative 5, plain 3
decided: speculative 5, plain 3, because a pool is above utilization.above (shortfall)
published until the rest may follow: speculative 4, plain 3
budget: 8 accelerators
move m3 begins: 1 replica from plain to speculative, draining: \
the replicas that go finish the answers that they have
waits for: 1 replica of plain to finish 3 answers
"""
    assert expected == explain_decision(record(DECISION))


def test_builtins_read_like_json() -> None:
    """Tuples and enum members instead of lists and texts make no difference."""
    assert explain_decision(record(DECISION)) == explain_decision(msgspec.to_builtins(DECISION))
    assert explain_move(record(MOVE)) == explain_move(msgspec.to_builtins(MOVE))


def test_a_steady_decision_waits_for_nothing() -> None:
    """No plan line when the plan is the targets, no move, no hold."""
    steady = replace(
        DECISION,
        reason=Reason.STEADY,
        targets=BEFORE,
        plan=BEFORE,
        steps=(
            Step("know", Reason.STEADY, BEFORE, "Ray Serve's targets are taken over"),
            Step("bounds", Reason.STEADY, BEFORE),
            Step("want", Reason.STEADY, BEFORE, "no pool is short"),
            Step("stabilize", Reason.STEADY, BEFORE),
        ),
        signals={SPECULATIVE: Signal(8.0, 32.0, 0.25, 4), PLAIN: Signal(0.0, 32.0, 0.0, 4)},
        move=None,
        begun=False,
    )
    text = explain_decision(record(steady)).splitlines()
    assert text[4:] == [
        "steps:",
        "  know: enough is known (steady) (Ray Serve's targets are taken over); then speculative 4, plain 4",
        "  bounds: both pools are inside their bounds and the budget (steady); then speculative 4, plain 4",
        "  want: no pool is short (steady); then speculative 4, plain 4",
        "  stabilize: no pool is short (steady); then speculative 4, plain 4",
        "decided: speculative 4, plain 4, because no pool is short (steady)",
        "budget: 8 accelerators",
        "waits for: nothing; the next tick decides anew",
    ]


def test_a_hold_says_who_and_until_when() -> None:
    """An operator's hold with its end; a hold of the controller's own without one."""
    hold = Hold(HoldBy.OPERATOR, "incident 12", WALL - 60, WALL + 3600, "ann")
    text = explain_decision(record(replace(DECISION, reason=Reason.HELD, hold=hold)))
    assert (
        "held: an operator holds the targets; since 2027-01-15T07:59:00Z, ann: incident 12, "
        "ends at 2027-01-15T09:00:00Z\n" in text
    )
    assert text.endswith("waits for: `twinpool release`, or the end of the hold if it has one\n")
    text = explain_decision(record(replace(DECISION, hold=Hold(HoldBy.METRICS, "1 of 4 report", WALL))))
    assert "held: too few replicas report; since 2027-01-15T08:00:00Z: 1 of 4 report\n" in text
    assert text.endswith("waits for: fresh reports of enough replicas\n")


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        (Reason.WINDOW, "the end of the stabilization window"),
        (Reason.COOLDOWN, "the end of the cooldown"),
        (Reason.BEHAVIOR, "room under the policy's scaleUp and scaleDown"),
        (Reason.IN_FLIGHT, "the end of the move that is on its way"),
        (Reason.STARTING, "the replicas that are missing"),
        (Reason.NO_DONOR, "the other pool to need fewer replicas, or a higher budget.max"),
        (Reason.STEADY, "nothing; the next tick decides anew"),
    ],
)
def test_what_a_decision_without_a_move_waits_for(reason: Reason, expected: str) -> None:
    """An ended move is not waited for."""
    ended = replace(MOVE, state=MoveState.DONE, waiting_for="")
    decision = replace(DECISION, reason=reason, move=ended, begun=False)
    text = explain_decision(record(decision))
    assert text.endswith(f"waits for: {expected}\n")
    assert "move m3 was the last one: 1 replica from plain to speculative, done: complete\n" in text


def test_a_step_says_what_it_waits_for() -> None:
    """Its own words count before those of the reason."""
    step = Step("want", Reason.AT_MAXIMUM, BEFORE, "", "a higher maximum of speculative (in force by pools)")
    waiting = replace(DECISION, reason=Reason.AT_MAXIMUM, steps=(step,), move=None, begun=False)
    text = explain_decision(record(waiting))
    assert text.endswith("waits for: a higher maximum of speculative (in force by pools)\n")


def test_what_is_unknown_is_not_called_enough() -> None:
    """With a pool whose utilization is unknown nobody knows that no pool is short."""
    said = "no pool is known to be short: the demand of plain is unknown"
    steps = (Step("want", Reason.STEADY, BEFORE, said), Step("stabilize", Reason.STEADY, BEFORE))
    steady = replace(DECISION, reason=Reason.STEADY, targets=BEFORE, steps=steps, move=None, begun=False)
    text = explain_decision(record(steady))
    assert f"  want: {said} (steady); then speculative 4, plain 4\n" in text
    assert "  stabilize: no pool is known to be short (steady); then speculative 4, plain 4\n" in text
    assert "because no pool is known to be short (steady)\n" in text


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ((1, 4), (2, 2), "speculative 1 -> 2, plain 4 -> 2"),
        ((4, 4), (5, 5), "speculative 4 -> 5, plain 4 -> 5"),
        ((4, 4), (5, 3), "1 replica from plain to speculative"),
    ],
)
def test_a_move_of_unequal_counts_has_its_sizes(
    before: tuple[int, int], after: tuple[int, int], expected: str
) -> None:
    """One count says it only where one pool gives what the other gets; speculative comes first."""
    sizes = [{PLAIN: plain, SPECULATIVE: speculative} for speculative, plain in (before, after)]
    move = replace(MOVE, before=sizes[0], after=sizes[1])
    assert explain_move(record(move)).startswith(f"move m3: {expected}\n")
    assert f"before: speculative {before[0]}, plain {before[1]}\n" in explain_move(record(move))


def test_a_move_on_its_way() -> None:
    """Why, from what to what, how far it is and what it waits for."""
    expected = """\
move m3: 1 replica from plain to speculative
begun at 2027-01-15T08:00:00Z under policy revision 7
why: a pool is above utilization.above (shortfall)
before: speculative 4, plain 4
after: speculative 5, plain 3
  41 s after its begin the replicas that go had drained
  42 s after its begin the replicas that come were allowed to start
state: starting: the replicas that come are starting
waits for: the replicas that come
"""
    starting = replace(MOVE, state=MoveState.STARTING, drained_at=1041.0, started_at=1042.0, waiting_for="")
    assert expected == explain_move(record(starting))


@pytest.mark.parametrize("state", [MoveState.DONE, MoveState.TIMED_OUT, MoveState.REPLACED])
def test_an_ended_move_waits_for_nothing(state: MoveState) -> None:
    """Its end is given."""
    text = explain_move(record(replace(MOVE, state=state, ended_at=1065.4, waiting_for="")))
    assert "  65 s after its begin it ended\n" in text
    assert text.endswith(f"state: {state}: {MOVES[state]}\n")


def test_a_move_that_was_given_up_says_where_to_look() -> None:
    """What it waited for is kept."""
    given_up = replace(MOVE, state=MoveState.TIMED_OUT, ended_at=1900.0)
    text = explain_move(record(given_up))
    assert text.endswith("it waited for: 1 replica of plain to finish 3 answers\n")


@pytest.mark.parametrize(
    ("source", "receiver", "expected"),
    [
        (None, PLAIN, "move m3: 2 replicas from the free budget to plain\n"),
        (PLAIN, None, "move m3: 2 replicas from plain to the free budget\n"),
    ],
)
def test_a_move_from_or_to_the_free_budget(source: Role | None, receiver: Role | None, expected: str) -> None:
    """Capacity may come from nobody and go to nobody."""
    assert explain_move(record(replace(MOVE, source=source, receiver=receiver, count=2))).startswith(expected)


@pytest.mark.parametrize("state", MoveState)
@pytest.mark.parametrize("reason", Reason)
def test_every_word_can_be_explained(reason: Reason, state: MoveState) -> None:
    """The tables are total, so that no record is without a sentence."""
    move = replace(MOVE, reason=reason, state=state, waiting_for="")
    assert f"why: {REASONS[reason]} ({reason})\n" in explain_move(record(move))
    signals = {SPECULATIVE: Signal(36.0, 32.0, 1.125, 4)}
    text = explain_decision(record(replace(DECISION, reason=reason, move=move, signals=signals)))
    assert f"because {REASONS[reason]} ({reason})\n" in text
    assert f"{state}: {MOVES[state]}" in text


def test_the_tables_are_total() -> None:
    """Over reasons, holders and states of a move; a sentence each, none twice."""
    for table, words in ((REASONS, Reason), (HOLDERS, HoldBy), (HOLD_ENDS, HoldBy), (MOVES, MoveState)):
        assert set(table) == set(words)
        assert len(set(table.values())) == len(words)


def test_what_is_unknown_is_said_to_be() -> None:
    """A decision before anything is known, and records of another version."""
    nothing = replace(DECISION, targets=None, plan=None, signals={}, steps=(), move=None, reason=Reason.HELD)
    text = explain_decision(record(nothing))
    assert "  nothing was known about the pools\n" in text
    assert "decided: targets unknown, because the targets are held (held)\n" in text
    assert text.endswith("waits for: knowledge of the replicas\n")
    newer = record(DECISION) | {"reason": "moonphase", "move": None, "hold": {"by": "moon"}}
    assert "because moonphase\n" in explain_decision(newer)
    assert "held: moon; since an unknown time: unknown\n" in explain_decision(newer)
    assert "waits for: the end of the hold\n" in explain_decision(newer)
    assert explain_decision({}).startswith(
        "decision unknown at an unknown time, policy revision unknown: unknown\n"
    )
    assert explain_move({}).startswith(
        "move unknown: unknown replicas from the free budget to the free budget\n"
    )
    assert "state: orbiting\n" in explain_move(record(MOVE) | {"state": "orbiting"})
