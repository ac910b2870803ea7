"""One control tick: its steps, its summary and what it remembers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from autoscaling.decide import decide
from autoscaling.decisions import Decision, Hold, HoldBy, Memory, MoveState, PoolObservation, Reason
from tests.autoscaling.worlds import (
    AT_ONCE,
    PLAIN,
    SPEC,
    both,
    long_since,
    policy,
    pool,
    remembered,
    rules,
    seen,
)

HELD = Hold(HoldBy.OPERATOR, "release 12", since=5.0, who="ana")
READY = {"short_since": long_since(SPEC), "spare_since": long_since(PLAIN)}
BUSY = seen(speculative=pool(1, inflight=14), plain=pool(7, inflight=8))


def reasons(decision: Decision) -> list[tuple[str, str]]:
    return [(step.name, step.reason.value) for step in decision.steps]


def test_a_move_begins_with_all_its_steps() -> None:
    """Each step is there with its reason; targets change at once, the plan shrinks the donor first."""
    decision, memory = decide(BUSY, policy(), remembered(1, 7, **READY, decisions=41, moves=2))
    assert [
        ("know", "steady"),
        ("bounds", "steady"),
        ("signals", "shortfall"),
        ("want", "shortfall"),
        ("stabilize", "shortfall"),
        ("stage", "shortfall"),
    ] == reasons(decision)
    assert "speculative is short (demand 14, limit 8 x 1): 1 replica moves from plain" == decision.summary
    assert (42, both(2, 6), both(1, 6), 8, True, 1) == (
        decision.number,
        decision.targets,
        decision.plan,
        decision.budget,
        decision.begun,
        decision.revision,
    )
    assert ("m3", "plain", "speculative", 1) == (
        decision.move.id,
        decision.move.source,
        decision.move.receiver,
        decision.move.count,
    )
    assert (both(2, 6), both(1, 6), 42, 3, decision.move) == (
        memory.targets,
        memory.plan,
        memory.decisions,
        memory.moves,
        memory.move,
    )
    assert [(SPEC, 1, 1), (PLAIN, -1, 7)] == [(c.pool, c.delta, c.size) for c in memory.changes]


def test_the_same_observation_twice_decides_once() -> None:
    """The second decision has the next number and nothing else that is new."""
    first, memory = decide(BUSY, policy(), remembered(1, 7, **READY))
    second, after = decide(BUSY, policy(), memory)
    assert (first.targets, first.plan, first.move, False) == (
        second.targets,
        second.plan,
        second.move,
        second.begun,
    )
    assert replace(memory, decisions=2, short_since={}) == replace(after, short_since={})


def test_a_steady_tick() -> None:
    """Nothing to do is said in one clause."""
    decision, _ = decide(seen(), policy(), remembered())
    assert (Reason.STEADY, "no pool is short", None, False) == (
        decision.reason,
        decision.summary,
        decision.move,
        decision.begun,
    )


def test_a_change_that_waits_says_for_what() -> None:
    """The summary joins what is wanted with what it waits for."""
    decision, memory = decide(BUSY, policy(), remembered(1, 7, short_since={SPEC: 988.0}, spare_since={}))
    assert (Reason.WINDOW, both(1, 7)) == (decision.reason, decision.targets)
    assert (
        "speculative is short (demand 14, limit 8 x 1), but speculative has been short for 12 of 30 s"
        == decision.summary
    )
    assert ({SPEC: 988.0}, {PLAIN: 1000.0}) == (memory.short_since, memory.spare_since)


def test_a_move_on_its_way_is_in_the_summary() -> None:
    """A steady tick during a move names it."""
    decision, memory = decide(BUSY, policy(), remembered(1, 7, **READY))
    later = seen(1010.0, speculative=pool(1, inflight=3), plain=pool(6, draining=1, inflight=4))
    decision, _ = decide(later, policy(), memory)
    assert "no pool is short; m1 waits for 1 replica of plain to drain" == decision.summary


@pytest.mark.parametrize(
    ("given_policy", "observation", "by"),
    [
        (policy(hold=HELD), BUSY, "operator"),
        (policy(), replace(BUSY, young=True), "controller_start"),
        (policy(speculative=rules(9, 9)), BUSY, "policy"),
        (policy(), seen(speculative=pool(1, reporting=0)), "metrics_loss"),
        (policy(), seen(speculative=PoolObservation()), "serve_unknown"),
    ],
)
def test_a_hold_changes_nothing(given_policy: object, observation: object, by: str) -> None:
    """Targets stay, and no move begins."""
    memory = remembered(1, 7, **READY)
    decision, after = decide(observation, given_policy, memory)
    assert (Reason.HELD, by, both(1, 7), both(1, 7), False) == (
        decision.reason,
        decision.hold.by,
        decision.targets,
        decision.plan,
        decision.begun,
    )
    assert [("know", "held"), ("stage", "held")] == reasons(decision)
    assert decision.summary.endswith(": speculative 1, plain 7 stay")
    assert (memory.targets, memory.plan, decision.hold) == (after.targets, after.plan, after.hold)


def test_a_move_that_has_begun_ends_under_a_hold() -> None:
    """The targets are held, not the way to them: else the donor's accelerator would lie idle."""
    _, memory = decide(BUSY, policy(), remembered(1, 7, **READY))
    assert both(1, 6) == memory.plan
    drained = seen(1010.0, speculative=pool(1, inflight=14), plain=pool(6, inflight=4))
    decision, memory = decide(drained, policy(hold=HELD), memory)
    assert (Reason.HELD, both(2, 6), both(2, 6)) == (decision.reason, decision.targets, decision.plan)
    up = seen(1020.0, speculative=pool(2, inflight=14), plain=pool(6, inflight=4))
    decision, _ = decide(up, policy(hold=HELD), memory)
    assert decision.move is not None
    assert (MoveState.DONE, both(2, 6)) == (decision.move.state, decision.targets)


def test_no_data_is_no_decision() -> None:
    """Case D1: without any data there are no targets, no plan and no numbers, and nothing is published."""
    nothing = PoolObservation()
    decision, memory = decide(seen(speculative=nothing, plain=nothing), policy(), Memory())
    assert (None, None, {}, False) == (decision.targets, decision.plan, decision.signals, decision.begun)
    assert (
        "Ray Serve's replica states of speculative are unknown: there are no targets to keep"
        == decision.summary
    )
    assert (None, None, 1) == (memory.targets, memory.plan, memory.decisions)


def test_unknown_demand_moves_nothing() -> None:
    """Case D1: replicas that report no demand are neither idle nor short: nothing moves or goes back."""
    silent = pool(inflight=None)
    decision, memory = decide(
        seen(speculative=silent, plain=silent),
        policy(budget_min=2, scale_down=AT_ONCE),
        remembered(spare_since=long_since(SPEC, PLAIN)),
    )
    assert (Reason.STEADY, both(4, 4)) == (decision.reason, decision.targets)
    assert [None, None] == [decision.signals[role].utilization for role in (SPEC, PLAIN)]
    assert {} == memory.spare_since


def test_the_bootstrap_is_published_whole() -> None:
    """Before the first replica runs the bootstrap sizes are targets and plan; that is no move."""
    nothing = PoolObservation()
    decision, memory = decide(
        seen(speculative=nothing, plain=nothing, fresh=True, young=True),
        policy(bootstrap=both(5, 3)),
        Memory(),
    )
    assert (Reason.BOOTSTRAP, both(5, 3), both(5, 3), None, None) == (
        decision.reason,
        decision.targets,
        decision.plan,
        decision.hold,
        decision.move,
    )
    assert "no replica has been running yet: bootstrap with speculative 5, plain 3" == decision.summary
    assert (both(5, 3), both(5, 3), ()) == (memory.targets, memory.plan, memory.changes)


def test_a_bootstrap_ends_the_move_of_an_earlier_life() -> None:
    """A new application has nothing on its way; demand that waits for it moves nothing."""
    _, memory = decide(BUSY, policy(), remembered(1, 7, **READY))
    decision, memory = decide(replace(BUSY, now=1010.0, fresh=True), policy(), memory)
    assert (both(4, 4), both(4, 4), "replaced") == (decision.targets, decision.plan, decision.ended.state)
    decision, _ = decide(replace(BUSY, now=1020.0, fresh=True), policy(), memory)
    assert (both(4, 4), None) == (decision.targets, decision.ended)


def test_a_repair_skips_everything_that_waits() -> None:
    """A raised minimum acts at once: no window, no cool-down, no limit of change."""
    memory = remembered(cooling_until=5000.0)
    decision, _ = decide(seen(), policy(speculative=rules(6)), memory)
    assert (Reason.BOUNDS, both(6, 2), both(4, 2), True) == (
        decision.reason,
        decision.targets,
        decision.plan,
        decision.begun,
    )
    assert [("know", "steady"), ("bounds", "bounds"), ("stage", "bounds")] == reasons(decision)
    assert (
        "speculative has 4 replicas and may have 6 to 7 by pools: 2 replicas move from plain"
        == decision.summary
    )


def test_the_end_of_a_move_is_reported_once() -> None:
    """The decision in which a move ended carries it; the next one does not."""
    _, memory = decide(BUSY, policy(), remembered(1, 7, **READY))
    there = seen(1090.0, speculative=pool(2, inflight=10), plain=pool(6, inflight=8))
    decision, memory = decide(there, policy(), memory)
    assert ("m1", "done") == (decision.ended.id, decision.ended.state)
    decision, memory = decide(replace(there, now=1091.0), policy(), memory)
    assert (None, "m1") == (decision.ended, decision.move.id)
    assert 1150.0 == memory.cooling_until
