"""The fluid model: nobody lost, closed forms, moves, overload, and the same result as the event model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from app.simulation.fleet import Delays
from app.simulation.fluid.load import day_of, load_of
from app.simulation.fluid.model import simulate_fluid
from app.simulation.fluid.setup import FluidSetup, fluid_of
from app.simulation.replica import Limits
from app.simulation.score import scores
from app.simulation.scores import Scores
from app.simulation.service import simulate
from app.simulation.traces.compose import set_tiers
from app.simulation.traces.generated import Kind, generate
from autoscaling.types import Role, Tier
from tests.app.simulation.services import ENGINES, policy, setup, steady, together

BOTH = together(steady(Tier.INTERACTIVE, 20, 60), steady(Tier.BATCH, 20, 60))


def fluid(**changes: object) -> FluidSetup:
    return fluid_of(setup(**changes))  # type: ignore[arg-type]


def assert_nobody_is_lost(found: Scores) -> None:
    for one in found.tiers.values():
        ended = one.in_time + one.late + one.refused + one.failed
        assert one.arrived == pytest.approx(ended, rel=1e-6)
        assert min(one.in_time, one.late, one.refused, one.failed) >= 0.0


def test_every_request_is_answered_under_light_load() -> None:
    """All in time, with all their tokens but those of the last second."""
    found = simulate_fluid(fluid(), load_of(BOTH))

    assert {Tier.INTERACTIVE, Tier.BATCH} == set(found.tiers)
    assert_nobody_is_lost(found)
    assert [1.0, 1.0] == pytest.approx([one.attainment for one in found.tiers.values()])
    assert 1200 * 200 * 0.96 < found.tiers[Tier.BATCH].tokens <= 1200 * 200
    assert 60.0 == found.seconds
    assert 4 * 60 / 3600 == pytest.approx(found.accelerator_hours)
    assert () == found.moves


def test_times_are_those_of_the_cost_model() -> None:
    """One plain request a second on two replicas: hardly two at a time, so that a step is that of one."""
    found = simulate_fluid(fluid(), load_of(steady(Tier.BATCH, 0.2, 100)))
    cost, one = ENGINES.costs[Role.PLAIN], found.tiers[Tier.BATCH]
    step_s = cost.base_s + cost.per_token_s + cost.per_context_s * 600

    assert step_s == pytest.approx(one.tpot_p50_s, rel=0.03)
    assert one.ttft_p50_s is not None
    assert cost.base_s + 500 * cost.per_token_s < one.ttft_p50_s < 2 * cost.base_s + 600 * cost.per_token_s


def test_the_same_arguments_give_the_same_scores() -> None:
    """To the last digit."""
    load = load_of(BOTH)

    assert simulate_fluid(fluid(), load) == simulate_fluid(fluid(), load)


def test_who_finds_no_room_waits_and_is_refused() -> None:
    """Far more than both pools take: 64 wait up to 5 s, the others are refused; nobody is lost."""
    limits = dict.fromkeys(Role, Limits(4, 8))
    load = load_of(steady(Tier.INTERACTIVE, 60, 30, answer=800))
    found = simulate_fluid(fluid(slots=2, limits=limits), load)
    one = found.tiers[Tier.INTERACTIVE]

    assert_nobody_is_lost(found)
    assert 0.5 < one.refused / one.arrived < 0.99
    assert one.ttft_p95_s is not None
    assert 4.0 < one.ttft_p95_s < 6.5
    assert all(moment.demand[Role.SPECULATIVE] < 64 + 8 + 61 for moment in found.series)


def test_capacity_follows_demand() -> None:
    """A move drains, starts and takes start_s at least; the pools have their new sizes then."""
    rules = policy(4, window_s=10, cooldown_s=10)
    trace = together(steady(Tier.INTERACTIVE, 40, 180, answer=400), steady(Tier.BATCH, 1, 180, answer=1500))
    found = simulate_fluid(fluid(rules=rules, limits=dict.fromkeys(Role, Limits(8, 64))), load_of(trace))
    sizes = [(one.running[Role.SPECULATIVE], one.running[Role.PLAIN]) for one in found.series]

    assert ((2, 2), (3, 1)) == (sizes[0], sizes[-1])
    assert any(one.draining[Role.PLAIN] for one in found.series)
    assert any(one.starting[Role.SPECULATIVE] for one in found.series)
    assert all(sum(one.running.values()) + sum(one.starting.values()) <= 4 for one in found.series)
    move = found.moves[0]
    assert (Role.PLAIN, Role.SPECULATIVE, 1, "done") == (move.source, move.receiver, move.count, move.state)
    assert move.took_s is not None
    assert 33.0 <= move.took_s
    assert 0.0 < found.switching_hours < found.accelerator_hours
    assert_nobody_is_lost(found)


def test_a_drain_that_takes_too_long_breaks_off() -> None:
    """What is open after the limit has failed, and is counted once."""
    rules = policy(4, window_s=10, cooldown_s=10)
    trace = together(steady(Tier.INTERACTIVE, 40, 120, answer=400), steady(Tier.BATCH, 1, 120, answer=8000))
    hasty = replace(
        fluid(rules=rules, limits=dict.fromkeys(Role, Limits(8, 64))), delays=Delays(5.0, 1.0, 2.0)
    )
    found = simulate_fluid(hasty, load_of(trace))

    assert 0.0 < found.tiers[Tier.BATCH].failed
    assert_nobody_is_lost(found)


def test_a_larger_fleet_under_a_larger_load_does_as_well() -> None:
    """Ten times the replicas and ten times the requests: the same shares."""
    load = load_of(together(steady(Tier.INTERACTIVE, 120, 60), steady(Tier.BATCH, 60, 60)))
    shares = []
    for slots in (10, 100):
        larger = replace(load, arrivals=load.arrivals * slots / 10)
        found = simulate_fluid(fluid(slots=slots, rules=policy(slots)), larger)
        assert_nobody_is_lost(found)
        shares.append(found.tiers[Tier.INTERACTIVE].attainment)

    assert shares[0] == pytest.approx(shares[1], abs=0.02)


def test_a_day_is_simulated_in_long_ticks() -> None:
    """An hour of a fleet of a thousand, in ticks of 10 s."""
    day = day_of(load_of(BOTH), np.random.default_rng(1), hours=1.0, scale=100.0, tick_s=10.0)
    found = simulate_fluid(fluid(slots=1000, rules=policy(1000)), day)

    assert_nobody_is_lost(found)
    assert 360 == len(found.series)
    assert 0.0 < found.series[60].demand[Role.SPECULATIVE]


def test_progress_is_told_once_a_minute() -> None:
    """The time of the load, and the requests that have ended."""
    told: list[tuple[float, int]] = []
    simulate_fluid(
        fluid(), load_of(steady(Tier.BATCH, 5, 130)), lambda at_s, ended: told.append((at_s, ended))
    )

    assert [0.0, 60.0, 120.0] == [at for at, _ in told]
    assert 0 == told[0][1] < told[1][1] <= 300 < told[2][1] <= 600


def test_another_routing_is_refused() -> None:
    """The fluid model has twinpool's own only."""
    with pytest.raises(ValueError, match="use the event model"):
        fluid_of(replace(setup(), changes_roles=True, lies=dict.fromkeys(Role, setup().lies[Role.PLAIN])))


def test_the_event_model_agrees() -> None:
    """Eight replicas under a load that makes some interactive requests late: attainment and batch tokens."""
    rng = np.random.default_rng(1)
    trace = set_tiers(
        generate(Kind.CONVERSATION, rng, hours=30 / 3600, rate=14),
        {Tier.INTERACTIVE: 0.5, Tier.BATCH: 0.5},
        rng,
    )
    made = setup(slots=8, limits={Role.SPECULATIVE: Limits(8, 256), Role.PLAIN: Limits(32, 256)})
    load = load_of(trace)
    event = scores(simulate(made, trace), made, load.seconds)
    found = simulate_fluid(fluid_of(made), load)

    one, other = event.tiers[Tier.INTERACTIVE].attainment, found.tiers[Tier.INTERACTIVE].attainment
    assert one is not None
    assert one == pytest.approx(other, abs=0.05)
    assert event.tiers[Tier.BATCH].tokens == pytest.approx(found.tiers[Tier.BATCH].tokens, rel=0.05)
