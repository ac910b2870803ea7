"""Whole stories in virtual time, as an SRE would tell them: eight accelerators, a limit of 8 per replica."""

from __future__ import annotations

from dataclasses import replace

import pytest

from autoscaling.decide import decide
from autoscaling.decisions import Limit, MoveState, Reason, ScaleRule
from autoscaling.memory import shifted
from tests.autoscaling.worlds import AT_ONCE, EAGER, PLAIN, SPEC, World, both, policy, remembered, rules


def test_a_burst_moves_replicas_one_by_one() -> None:
    """A pool that stays short gets a replica after its window, the next only after move and cool-down."""
    world = World(policy(scale_down=AT_ONCE))
    first, second = world.run(300, speculative=40, plain=4)
    assert "speculative is short (demand 40, limit 8 x 4): 1 replica moves from plain" == first.summary
    assert 30.0 == first.move.at - 1000.0
    # 20 s of draining, 40 s of starting, a tick to see each, and 60 s of cool-down.
    assert 120.0 <= second.move.at - first.move.at <= 135.0
    assert both(6, 2) == world.running()


def test_a_short_burst_moves_nothing() -> None:
    """A burst that ends before the window does is no reason to move."""
    world = World(policy(scale_down=AT_ONCE))
    assert [] == world.run(25, speculative=60, plain=4)
    assert [] == world.run(600, speculative=10, plain=4)


def test_idle_after_load_steps_down() -> None:
    """Case C1: after load exactly zero requests is a number: a pool steps down to the budget's floor."""
    world = World(policy(budget_min=4, cooldown_s=0.0))
    world.run(600, speculative=20, plain=20)
    assert both(4, 4) == world.running()
    moves = world.run(3000)
    assert {Reason.SURPLUS} == {decision.reason for decision in moves}
    assert 4 == sum(world.memory.targets.values())
    assert 4 == world.used()


def test_one_silent_replica_blocks_nothing() -> None:
    """Case C1: a replica that never reports is left out, and the pools step down without its word."""
    world = World(policy(budget_min=4, cooldown_s=0.0))
    world.silent[PLAIN] = 1
    moves = world.run(900)
    assert {Reason.SURPLUS} == {decision.reason for decision in moves}
    assert world.used() < 8


def test_replicas_that_start_ask_for_no_more() -> None:
    """Case C3: ten ticks of a cold start without traffic leave the target where it is."""
    world = World(policy(speculative=rules(2), plain=rules(2), budget_min=2, **EAGER), 0, 0, start_s=1000.0)
    world.memory = remembered(2, 2)
    assert [] == world.run(50, speculative=0, plain=None)
    assert both(2, 2) == world.memory.targets
    assert both(0, 0) == world.running()


def test_replicas_that_start_under_load_are_waited_for() -> None:
    """Case C3: while the replicas that were asked for start, a short pool gets no further ones."""
    world = World(policy(budget_min=2, **EAGER), 1, 1, start_s=400.0)
    (move,) = world.run(300, speculative=100)
    assert both(2, 1) == move.targets
    assert world.decisions[-1].reason in (Reason.IN_FLIGHT, Reason.STARTING)


@pytest.mark.parametrize("demand", range(0, 65, 2))
def test_constant_load_settles(demand: int) -> None:
    """Case C4: under constant load, near any threshold, with every delay off, targets stop changing."""
    world = World(policy(budget_min=2, max_step=2, **EAGER))
    world.run(3000, speculative=demand, plain=max(0, 40 - demand))
    assert [] == world.run(1500, speculative=demand, plain=max(0, 40 - demand))


def test_a_short_delay_does_not_flap() -> None:
    """Case C4: a window of one second under load that flickers at the threshold moves once per direction."""
    world = World(policy(scale_up=ScaleRule(1.0), scale_down=ScaleRule(1.0)), tick_s=1.0)
    for index in range(600):
        world.tick(speculative=27 + index % 2, plain=8)
    assert sum(decision.begun for decision in world.decisions) <= 1


def test_a_slow_donor_is_waited_for() -> None:
    """The receiver starts only when the donor's accelerator is free, however long its streams take."""
    world = World(policy(scale_down=AT_ONCE), drain_s=250.0)
    world.run(200, speculative=30, plain=4)
    assert both(5, 3) == world.memory.targets
    assert both(4, 3) == world.plan
    assert "1 replica of plain to drain" == world.memory.move.waiting_for
    assert 8 == world.used()
    world.run(100, speculative=30, plain=4)
    assert both(5, 3) == world.plan
    assert "1 replica of speculative to start" == world.memory.move.waiting_for
    world.run(50, speculative=30, plain=4)
    assert MoveState.DONE is world.memory.move.state
    assert both(5, 3) == world.running()


def test_surge_starts_before_the_donor_is_gone() -> None:
    """With an accelerator above the budget the receiver starts while the donor drains."""
    world = World(policy(scale_down=AT_ONCE, surge=1), drain_s=250.0)
    world.run(45, speculative=30, plain=4)
    assert both(5, 3) == world.plan
    assert 9 == world.used()


def test_lost_reports_hold_everything() -> None:
    """While too few replicas report, targets stay; a move that has begun goes on by Ray Serve's word."""
    world = World(policy(scale_down=AT_ONCE))
    world.run(35, speculative=30, plain=4)
    world.silent = {SPEC: 3, PLAIN: 0}
    assert [] == world.run(600, speculative=None, plain=None)
    last = world.decisions[-1]
    assert (Reason.HELD, "metrics_loss", both(5, 3), both(5, 3)) == (
        last.reason,
        last.hold.by,
        last.targets,
        last.plan,
    )
    assert "2 of 5 running replicas of speculative report: speculative 5, plain 3 stay" == last.summary
    assert 1035.0 == last.hold.since - 1_800_000_000.0
    world.silent = {SPEC: 0, PLAIN: 0}
    world.run(60, speculative=30, plain=4)
    assert both(5, 3) == world.running()


def test_a_crash_in_the_middle_of_a_move() -> None:
    """Ray Serve replaces what crashed inside the plan; the receiver does not take its accelerator."""
    world = World(policy(scale_down=AT_ONCE), drain_s=100.0)
    world.run(50, speculative=30, plain=4)
    world.crash(PLAIN)
    for _ in range(60):
        world.tick(speculative=30, plain=4)
        assert world.used() <= 8
    assert both(5, 3) == world.running()


def test_the_budget_is_raised_and_lowered() -> None:
    """A raised budget is used at once by the pool with more load; a lowered one is obeyed at once."""
    world = World(policy())
    world.tick(speculative=24, plain=8)
    world.policy = policy(budget=10)
    raised = world.tick(speculative=24, plain=8)
    assert (Reason.UNASSIGNED, both(6, 4)) == (raised.reason, raised.targets)
    assert "8 accelerators are assigned and the budget keeps 10" == raised.summary.partition(": ")[0]
    assert "2 replicas of speculative added from free budget" == raised.summary.partition(": ")[2]
    world.run(100, speculative=24, plain=8)
    world.policy = policy(budget=6)
    lowered = world.tick(speculative=24, plain=8)
    assert (Reason.OVER_BUDGET, both(4, 2), both(4, 2)) == (lowered.reason, lowered.targets, lowered.plan)
    world.run(100, speculative=24, plain=8)
    assert 6 == world.used()


def test_two_plain_replicas_for_one_speculative_of_two() -> None:
    """A replica of two accelerators costs two of one, and starts when both are free."""
    world = World(
        policy(
            speculative=rules(maximum=4, accelerators=2),
            bootstrap=both(2, 4),
            scale_down=AT_ONCE,
            scale_up=AT_ONCE,
        ),
        2,
        4,
    )
    (there,) = world.run(100, speculative=16, plain=4)
    assert "speculative is short (demand 16, limit 8 x 2): speculative 2 -> 3, plain 4 -> 2" == there.summary
    assert both(3, 2) == world.running()
    back, rest = world.run(200, speculative=2, plain=16)
    assert "plain is short (demand 16, limit 8 x 2): 1 replica moves from speculative" == back.summary
    # The second accelerator of that replica fits one more of plain.
    assert (Reason.UNASSIGNED, both(2, 4)) == (rest.reason, rest.targets)
    world.run(100, speculative=2, plain=16)
    assert both(2, 4) == world.running()


@pytest.mark.parametrize("after_s", [35, 60, 95, 200])
def test_a_controller_restart_in_a_move(after_s: int) -> None:
    """Case C6: a new controller with the old memory goes on: same targets, plan, move and cool-down."""
    world = World(policy(scale_down=AT_ONCE))
    world.run(after_s, speculative=30, plain=4)
    before = world.memory
    # The new process's clock starts near zero; 20 s passed between the two lives.
    delta = 5.0 - (world.now + 20.0)
    world.memory = shifted(before, delta, 5.0)
    for role in (SPEC, PLAIN):
        for replica in world.replicas[role]:
            replica.until += delta
    world.now = 5.0
    young, world.memory = decide(replace(world.observe(30, 4), young=True), world.policy, world.memory)
    assert ("controller_start", before.targets, before.plan) == (young.hold.by, young.targets, young.plan)
    assert [] == world.run(95 if after_s < 95 else 20, speculative=30, plain=4)
    world.run(100, speculative=30, plain=4)
    assert "m1" == world.memory.move.id
    assert both(5, 3) == world.running()


def test_a_controller_without_memory_takes_over_what_runs() -> None:
    """Case C6: a controller that lost its memory publishes Ray Serve's own targets, not the bootstrap."""
    world = World(policy(), 6, 2)
    world.memory = type(world.memory)()
    first = world.tick(speculative=10, plain=4)
    assert (both(6, 2), both(6, 2), False) == (first.targets, first.plan, first.begun)
    assert [] == world.run(200, speculative=10, plain=4)


def test_a_receiver_that_never_starts() -> None:
    """A move is given up after its time limit and says what it waited for; targets stay, nobody is added."""
    world = World(policy(scale_down=AT_ONCE, move_timeout_s=600.0), start_s=1e9)
    world.run(700, speculative=40, plain=4)
    move = world.memory.move
    assert ("m1", "timed_out", "1 replica of speculative to start") == (
        move.id,
        move.state,
        move.waiting_for,
    )
    assert 600.0 == move.ended_at - move.at
    assert ["m1"] == [decision.ended.id for decision in world.decisions if decision.ended]
    assert [] == world.run(2000, speculative=40, plain=4)
    assert both(5, 3) == world.memory.targets
    assert Reason.STARTING is world.decisions[-1].reason


def test_an_override_replaces_a_move() -> None:
    """A forced size acts at once: the move on its way is replaced, and nothing waits for a cool-down."""
    world = World(policy(scale_down=AT_ONCE))
    world.run(40, speculative=30, plain=4)
    world.policy = policy(plain=rules(6, 6, forced=True, bound_by="override launch"))
    forced = world.tick(speculative=30, plain=4)
    assert (Reason.OVERRIDE, both(2, 6)) == (forced.reason, forced.targets)
    assert ("m1", "replaced", "m2") == (forced.ended.id, forced.ended.state, forced.move.id)
    world.run(200, speculative=30, plain=4)
    assert both(2, 6) == world.running()


@pytest.mark.parametrize(
    ("changes", "delay_s"),
    [
        ({}, 60.0),
        ({"scale_up": ScaleRule(5.0), "scale_down": ScaleRule(5.0), "cooldown_s": 60.0}, 60.0),
        ({"scale_up": ScaleRule(0.0), "scale_down": ScaleRule(60.0), "cooldown_s": 0.0}, 60.0),
        ({"cooldown_s": 150.0, "scale_up": AT_ONCE, "scale_down": AT_ONCE}, 150.0),
    ],
)
def test_a_square_wave_moves_at_most_once_per_period(changes: dict[str, object], delay_s: float) -> None:
    """Demand swaps pools every move delay: one move per period at most, if window or cool-down lasts it."""
    world = World(policy(**changes), drain_s=delay_s / 3, start_s=delay_s * 2 / 3)
    for _ in range(20):
        moves = world.run(delay_s, speculative=31, plain=2) + world.run(delay_s, speculative=2, plain=31)
        assert len(moves) <= 1


def test_a_limit_of_change_spreads_a_large_step() -> None:
    """The receiver's limit cuts a step that the step limit would allow."""
    world = World(
        policy(scale_down=AT_ONCE, scale_up=ScaleRule(0.0, (Limit(1, 300.0),)), max_step=3, cooldown_s=0.0)
    )
    first, second = world.run(500, speculative=44, plain=4)
    assert both(5, 3) == first.targets
    assert both(6, 2) == second.targets
    assert 300.0 == second.move.at - first.move.at


def test_a_limit_below_a_whole_exchange_lets_one_move_per_period() -> None:
    """A limit of one replica of plain frees nothing for a speculative one of two: two go in a period."""
    world = World(
        policy(
            speculative=rules(maximum=5, accelerators=2),
            plain=rules(maximum=8),
            budget=10,
            bootstrap=both(1, 8),
            scale_up=AT_ONCE,
            scale_down=ScaleRule(0.0, (Limit(1, 200.0),)),
            cooldown_s=0.0,
        ),
        1,
        8,
    )
    first, second = world.run(350, speculative=30, plain=2)
    assert (both(2, 6), both(3, 4)) == (first.targets, second.targets)
    assert 200.0 == second.move.at - first.move.at
    waiting = [decision for decision in world.decisions if decision.reason is Reason.BEHAVIOR]
    assert [] != waiting
    assert waiting[0].summary.startswith(
        "speculative is short (demand 30, limit 8 x 2), but "
        "scaleDown allows plain 2 replicas in 200 s; the next 2 in "
    )
