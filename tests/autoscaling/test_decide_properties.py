"""What holds in every history of demand, crashes, silence, holds and changed policies."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from autoscaling.bounds import assigned, impossible
from autoscaling.decide import decide
from autoscaling.decisions import Decision, Hold, HoldBy, Limit, PolicyInForce, Reason, ScaleRule, Sizes
from autoscaling.types import Role
from tests.autoscaling.worlds import AT_ONCE, EAGER, World, both, policy, rules

REPAIRS = {Reason.OVERRIDE, Reason.SCHEDULE, Reason.BOUNDS, Reason.OVER_BUDGET}
HELD = Hold(HoldBy.OPERATOR, "release", since=0.0, who="ana")

scale_rules = st.builds(
    ScaleRule,
    window_s=st.sampled_from((0.0, 20.0, 60.0)),
    limits=st.lists(
        st.builds(Limit, st.integers(1, 3), st.sampled_from((30.0, 60.0)), st.booleans()),
        max_size=2,
    ).map(tuple),
    select=st.sampled_from(("Max", "Max", "Min", "Disabled")),
)


@st.composite
def policies(draw: st.DrawFn) -> PolicyInForce:
    """Policies that some targets satisfy, with replicas of one to three accelerators."""
    pools = {}
    for role in Role:
        minimum = draw(st.integers(0, 2))
        maximum = minimum if draw(st.integers(0, 9)) == 0 else draw(st.integers(minimum, 9))
        pools[role] = rules(
            minimum,
            maximum,
            accelerators=draw(st.sampled_from((1, 1, 2, 3))),
            soft_limit=draw(st.sampled_from((None, 4))),
            forced=minimum == maximum,
        )
    least = sum(rule.minimum * rule.accelerators for rule in pools.values())
    most = draw(st.integers(max(1, least), 14))
    return policy(
        speculative=pools[Role.SPECULATIVE],
        plain=pools[Role.PLAIN],
        budget=most,
        budget_min=draw(st.integers(0, most)),
        scale_up=draw(scale_rules),
        scale_down=draw(scale_rules),
        cooldown_s=draw(st.sampled_from((0.0, 30.0))),
        surge=draw(st.sampled_from((0, 0, 1, 3))),
        max_step=draw(st.integers(1, 3)),
        move_timeout_s=draw(st.sampled_from((60.0, 900.0))),
    )


demands = st.one_of(st.none(), st.integers(0, 12), st.integers(0, 90))
events = st.one_of(
    st.tuples(st.just("load"), st.tuples(demands, demands), st.integers(1, 12)),
    st.tuples(st.just("load"), st.tuples(demands, demands), st.integers(1, 12)),
    st.tuples(st.just("crash"), st.sampled_from(Role), st.just(1)),
    st.tuples(st.just("silent"), st.tuples(st.sampled_from(Role), st.integers(0, 4)), st.just(1)),
    st.tuples(st.just("serve"), st.booleans(), st.just(1)),
    st.tuples(st.just("hold"), st.booleans(), st.integers(1, 4)),
    st.tuples(st.just("policy"), policies(), st.just(1)),
)
histories = st.lists(events, max_size=14)


def feasible_start(given_policy: PolicyInForce) -> Sizes:
    """Sizes inside the policy's bounds and budget."""
    return {role: given_policy.pools[role].minimum for role in Role}


def play(world: World, history: list[tuple[str, Any, int]]) -> None:
    """A history through the virtual fleet, every tick checked."""
    demand: tuple[int | None, int | None] = (0, 0)
    bound = world.used()  # accelerators that may be held until replicas of a larger budget have drained
    for event, value, ticks in history:
        if event == "load":
            demand = value
        elif event == "crash":
            world.crash(value)
        elif event == "silent":
            world.silent[value[0]] = value[1]
        elif event == "serve":
            world.serve_known = value
        elif event == "hold":
            world.policy = replace(world.policy, hold=HELD if value else None)
        else:
            # Accelerators per replica never change in a life of the pools: they restart the replicas.
            pools = {
                role: replace(value.pools[role], accelerators=world.policy.pools[role].accelerators)
                for role in Role
            }
            world.policy = replace(value, pools=pools, hold=world.policy.hold)
        for _ in range(ticks):
            before, plan_before = world.memory, world.plan
            observation = world.observe(*demand)
            again, after_again = decide(
                observation, world.policy, decide(observation, world.policy, before)[1]
            )
            decision = world.tick(*demand)
            check(decision, world.policy, before.targets or {}, plan_before)
            # The same observation once more: nothing else is asked for, and no second move begins.
            assert (decision.targets, decision.plan, False) == (again.targets, again.plan, again.begun)
            assert after_again.moves == world.memory.moves
            allowed = world.policy.budget_max + world.policy.surge
            bound = allowed if world.used() <= allowed else bound
            assert world.used() <= max(bound, allowed)


def check(decision: Decision, given_policy: PolicyInForce, before: Sizes, plan_before: Sizes) -> None:
    """What every decision keeps."""
    targets, plan = decision.targets, decision.plan
    assert targets is not None
    assert plan is not None
    assert decision.summary
    assert all(
        value is None or math.isfinite(value)
        for signal in decision.signals.values()
        for value in (signal.demand, signal.capacity, signal.utilization)
    )
    if decision.hold is not None or impossible(given_policy):
        assert (Reason.HELD, before, False) == (decision.reason, targets, decision.begun)
        # A move that has begun ends; nothing goes further than the targets.
        assert all(
            min(plan_before[role], before[role]) <= plan[role] <= max(plan_before[role], before[role])
            for role in Role
        )
        return
    assert assigned(targets, given_policy) <= given_policy.budget_max
    assert assigned(plan, given_policy) <= given_policy.budget_max
    for role in Role:
        limits = given_policy.pools[role]
        assert limits.minimum <= targets[role] <= limits.maximum
        assert 0 <= plan[role] <= targets[role]
    if decision.begun and decision.reason not in REPAIRS | {Reason.UNASSIGNED}:
        gains = [role for role in Role if targets[role] > before[role]]
        assert sum(targets[role] - before[role] for role in gains) <= given_policy.max_step


@settings(max_examples=150, deadline=None)
@given(policies(), histories, st.sampled_from((10.0, 60.0, 200.0)), st.sampled_from((0.0, 10.0, 100.0)))
def test_every_history_keeps_the_budget_the_floors_and_its_word(
    given_policy: PolicyInForce, history: list[tuple[str, Any, int]], start_s: float, drain_s: float
) -> None:
    """Budget and floors hold for targets, plan and fleet; a hold keeps the targets; nothing happens twice."""
    start = feasible_start(given_policy)
    world = World(
        given_policy,
        start[Role.SPECULATIVE],
        start[Role.PLAIN],
        start_s=start_s,
        drain_s=drain_s,
        tick_s=10.0,
    )
    play(world, history)


@settings(max_examples=100, deadline=None)
@given(
    policies(),
    st.lists(
        st.tuples(demands, demands, st.integers(1, 12), st.sampled_from((None, None, *Role))), max_size=10
    ),
    st.sampled_from((0.0, 10.0, 100.0)),
    st.integers(1, 3),
)
def test_a_late_look_never_breaks_the_budget(
    given_policy: PolicyInForce,
    history: list[tuple[int | None, int | None, int, Role | None]],
    drain_s: float,
    lag: int,
) -> None:
    """The fleet stays inside the budget also when every observation is some ticks old."""
    start = feasible_start(given_policy)
    world = World(
        given_policy,
        start[Role.SPECULATIVE],
        start[Role.PLAIN],
        start_s=60.0,
        drain_s=drain_s,
        tick_s=10.0,
        lag=lag,
    )
    for speculative, plain, ticks, crashes in history:
        if crashes is not None:
            world.crash(crashes)
        for _ in range(ticks):
            world.tick(speculative, plain)
            assert world.used() <= given_policy.budget_max + given_policy.surge


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), min_size=1, max_size=80),
    st.sampled_from((0.0, 15.0, 40.0)),
    st.sampled_from((0.0, 25.0, 80.0)),
)
def test_no_move_without_its_window(demand: list[tuple[int, int]], up_s: float, down_s: float) -> None:
    """Before a move its receiver was short, and its donor spare, at every tick of the whole window."""
    world = World(policy(scale_up=ScaleRule(up_s), scale_down=ScaleRule(down_s), cooldown_s=0.0, max_step=2))
    for speculative, plain in demand:
        world.tick(speculative, plain)
    for index, decision in enumerate(world.decisions):
        move = decision.move
        if not decision.begun or move is None:
            continue
        assert move.receiver is not None
        assert move.source is not None
        for earlier in world.decisions[: index + 1]:
            age = decision.wall - earlier.wall
            if age <= up_s:
                assert earlier.signals[move.receiver].utilization > 0.85
            if age <= down_s:
                signal = earlier.signals[move.source]
                assert signal.demand <= 0.60 * 8 * (signal.replicas - 1)
        assert decision.wall - world.decisions[0].wall >= max(up_s, down_s)


@settings(max_examples=60, deadline=None)
@given(
    high=st.integers(0, 70),
    low=st.integers(0, 20),
    delay_s=st.sampled_from((30.0, 60.0, 120.0)),
    drain_share=st.sampled_from((0.0, 0.3, 0.8)),
    by_window=st.booleans(),
    max_step=st.integers(1, 3),
)
def test_a_square_wave_moves_at_most_once_per_period(
    high: int, low: int, delay_s: float, drain_share: float, by_window: bool, max_step: int
) -> None:
    """Demand swaps pools every move delay: one move per period at most, if window or cool-down lasts it."""
    lasting = {"scale_down": ScaleRule(delay_s), "cooldown_s": 0.0}
    cooling = {"scale_down": AT_ONCE, "cooldown_s": delay_s}
    world = World(
        policy(scale_up=AT_ONCE, max_step=max_step, **(lasting if by_window else cooling)),
        drain_s=delay_s * drain_share,
        start_s=delay_s * (1 - drain_share),
    )
    for _ in range(12):
        moves = world.run(delay_s, speculative=high, plain=low) + world.run(
            delay_s, speculative=low, plain=high
        )
        assert len(moves) <= 1


@settings(max_examples=100, deadline=None)
@given(policies(), st.integers(0, 9), st.integers(0, 9))
def test_any_targets_are_brought_inside_at_once(
    given_policy: PolicyInForce, speculative: int, plain: int
) -> None:
    """Whatever was decided under another policy, one tick later bounds and budget are kept."""
    world = World(given_policy, speculative, plain)
    decision = world.tick()
    check(decision, given_policy, both(speculative, plain), both(speculative, plain))
    assert (decision.reason in REPAIRS) == (
        assigned(both(speculative, plain), given_policy) > given_policy.budget_max
        or any(
            not given_policy.pools[role].minimum <= size <= given_policy.pools[role].maximum
            for role, size in both(speculative, plain).items()
        )
    )


@settings(max_examples=50, deadline=None)
@given(policies(), st.integers(0, 90), st.integers(0, 90))
def test_constant_load_settles_under_any_policy(
    given_policy: PolicyInForce, speculative: int, plain: int
) -> None:
    """Case C4: with every delay off and unequal accelerators too, constant load leaves targets at rest."""
    start = feasible_start(given_policy)
    world = World(
        replace(given_policy, **EAGER),
        start[Role.SPECULATIVE],
        start[Role.PLAIN],
        start_s=0.0,
        drain_s=0.0,
    )
    world.run(400, speculative, plain)
    assert [] == world.run(200, speculative, plain)
