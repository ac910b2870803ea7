"""The whole service on virtual time: real admission, routing and decisions over simulated engines."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from app.simulation.arrival import Arrival
from app.simulation.control import Control
from app.simulation.fleet import Delays
from app.simulation.ingress import Routing
from app.simulation.replica import Lies, Limits
from app.simulation.service import SETTLE_S, simulate
from autoscaling.decisions import Decision, Memory, Observation, PolicyInForce
from autoscaling.request_line import Outcome
from autoscaling.types import Role, Tier
from tests.app.simulation.services import ENGINES, policy, setup, steady, together


def test_every_request_is_answered_by_the_pool_of_its_tier() -> None:
    """Light load on two replicas of each pool: whole answers, in the order of the trace."""
    trace = together(steady(Tier.INTERACTIVE, 2, 20), steady(Tier.BATCH, 2, 20))
    found = simulate(setup(), trace)

    assert trace == [one.arrival for one in found.served]
    assert {(Outcome.OK, 200)} == {(one.outcome, one.tokens) for one in found.served}
    assert {
        (Tier.INTERACTIVE, Role.SPECULATIVE, "tier_interactive"): 40,
        (Tier.BATCH, Role.PLAIN, "tier_batch"): 40,
    } == Counter((one.arrival.tier, one.pool, one.reason) for one in found.served)


def test_times_are_those_of_the_cost_model() -> None:
    """One plain request at a time: a step of its prompt, then 199 of one token each."""
    found = simulate(setup(jitter=0.0), steady(Tier.BATCH, 0.2, 20))
    cost = ENGINES.costs[Role.PLAIN]
    least = cost.base_s + cost.per_token_s + cost.per_context_s * 500

    for one in found.served:
        assert one.tpot_s is not None
        assert one.ttft_s is not None
        assert least < one.tpot_s < least + cost.per_context_s * 200
        assert cost.base_s < one.ttft_s < cost.base_s + 600 * cost.per_token_s
        assert pytest.approx(one.arrival.at_s + one.ttft_s + 199 * one.tpot_s) == one.ended_at


def test_the_same_seed_gives_the_same_run() -> None:
    """To the last digit; another one does not."""
    trace = together(steady(Tier.INTERACTIVE, 10, 10), steady(Tier.BATCH, 10, 10))
    first, again, other = (simulate(setup(seed=seed), trace) for seed in (1, 1, 2))

    assert first == again
    assert first.served != other.served


def test_batch_work_can_end_with_the_trace() -> None:
    """Everybody else is answered to the end; of batch work what is open by then is cancelled, and no more.

    Answers that came before are those of a run to the end of all work.
    """
    trace = together(steady(Tier.INTERACTIVE, 5, 5), steady(Tier.BATCH, 20, 5, answer=300))
    whole, cut = simulate(setup(), trace), simulate(setup(), trace, until_s=5.0)
    ended_at = max(one.ended_at for one in cut.served)
    open_then = [one.arrival for one in whole.served if one.ended_at > ended_at]

    assert trace == [one.arrival for one in cut.served]
    assert 0 < len(open_then) < 100
    assert open_then == [one.arrival for one in cut.served if one.outcome is Outcome.CANCELLED]
    assert {Tier.BATCH} == {one.tier for one in open_then}
    assert {one for one in whole.served if one.ended_at <= ended_at} <= {*cut.served}


def test_capacity_follows_demand_and_no_request_is_lost_in_a_move() -> None:
    """Interactive requests fill all limits, batch little: the speculative pool grows to three of four.

    A drain waits for what is open.
    """
    rules = policy(4, window_s=10, cooldown_s=10)
    trace = together(steady(Tier.INTERACTIVE, 40, 180, answer=400), steady(Tier.BATCH, 1, 180, answer=1500))
    found = simulate(setup(rules=rules, limits=dict.fromkeys(Role, Limits(8, 64))), trace)

    assert (2, 2) == (found.pools[0].running[Role.SPECULATIVE], found.pools[0].running[Role.PLAIN])
    assert (3, 1) == (found.pools[-1].running[Role.SPECULATIVE], found.pools[-1].running[Role.PLAIN])
    assert any(one.draining[Role.PLAIN] for one in found.pools)
    assert any(one.starting[Role.SPECULATIVE] for one in found.pools)
    assert all(sum(one.running.values()) + sum(one.starting.values()) <= 4 for one in found.pools)
    batch = [one for one in found.served if one.arrival.tier is Tier.BATCH]
    assert {(Outcome.OK, 1500)} == {(one.outcome, one.tokens) for one in batch}
    move = found.moves[0]
    assert (Role.PLAIN, Role.SPECULATIVE, 1, "shortfall", "done") == (
        move.source,
        move.receiver,
        move.count,
        move.reason,
        move.state,
    )
    # To start takes 30 s and to stop 3 s; in between it drains.
    assert move.took_s is not None
    assert move.took_s > 33.0


def test_a_drain_that_takes_too_long_breaks_off() -> None:
    """What is open after the limit has failed, with the tokens that came."""
    rules = policy(4, window_s=10, cooldown_s=10)
    trace = together(steady(Tier.INTERACTIVE, 40, 120, answer=400), steady(Tier.BATCH, 1, 120, answer=8000))
    hasty = replace(
        setup(rules=rules, limits=dict.fromkeys(Role, Limits(8, 64))),
        delays=Delays(start_s=5.0, stop_s=1.0, drain_limit_s=2.0),
    )
    found = simulate(hasty, trace)

    broken = [one for one in found.served if one.outcome is Outcome.FAILED]
    assert {Tier.BATCH} <= {one.arrival.tier for one in broken}
    assert all(0 < one.tokens < one.arrival.answer_tokens for one in broken)


def test_who_finds_no_room_waits_and_is_refused_at_the_deadline() -> None:
    """Far more interactive requests than both pools take: some wait up to 5 s, others are refused or shed."""
    found = simulate(
        setup(slots=2, limits=dict.fromkeys(Role, Limits(4, 8))), steady(Tier.INTERACTIVE, 60, 20, answer=800)
    )
    outcomes = Counter(one.outcome for one in found.served)

    assert {Outcome.OK, Outcome.NO_CAPACITY, Outcome.SHED} == set(outcomes)
    assert 4.0 < max(one.waited_s for one in found.served) <= 5.1
    refused = [one for one in found.served if one.outcome is Outcome.NO_CAPACITY]
    assert all(5.0 <= one.ended_at - one.arrival.at_s <= 5.2 for one in refused)


def test_stale_snapshots_crowd_replicas() -> None:
    """Four ingresses that see loads three seconds late put more on one replica than its limit."""
    trace = steady(Tier.INTERACTIVE, 30, 20, answer=400)
    fresh, stale = (
        simulate(setup(slots=4, ingresses=4, snapshot_delay_s=delay), trace) for delay in (0.0, 3.0)
    )

    def slowest(found: object) -> float:
        return max(one.tpot_s or 0.0 for one in found.served)  # type: ignore[attr-defined]

    assert slowest(fresh) < slowest(stale)


def test_progress_is_told_once_a_second() -> None:
    """The time of the trace, and the requests that have ended."""
    told: list[tuple[float, int]] = []
    simulate(setup(), steady(Tier.BATCH, 5, 10), lambda at_s, ended: told.append((at_s, ended)))

    assert [pytest.approx(float(second), abs=1e-6) for second in range(len(told))] == [at for at, _ in told]
    assert 10 <= len(told)
    assert sorted(ended for _, ended in told) == [ended for _, ended in told]
    assert 0 < told[-1][1] <= 50


def test_pools_are_told_with_their_demand_and_what_they_hold() -> None:
    """Demand counts by the pool that a tier prefers, waiting requests too; capacity is that of what runs.

    Forty interactive requests at once, of which sixteen find room.
    """
    trace = together([*steady(Tier.INTERACTIVE, 1e6, 40e-6, answer=2000)], steady(Tier.BATCH, 1e6, 3e-6))
    found = simulate(setup(limits=dict.fromkeys(Role, Limits(4, 4))), trace)
    first, later = found.pools[0], found.pools[1]

    assert {Role.SPECULATIVE: 8, Role.PLAIN: 8} == first.capacity
    assert {Role.SPECULATIVE: 40, Role.PLAIN: 3} == later.demand


def test_least_loaded_spreads_over_all_replicas_whoever_asks() -> None:
    """Eight requests at once over four replicas of one kind: two on each, so four in each pool."""
    lies = {role: Lies(Role.PLAIN) for role in Role}
    trace = steady(Tier.BATCH, 1e6, 8e-6)
    found = simulate(setup(lies=lies, routing=Routing.LEAST_LOADED, jitter=0.0), trace)

    assert {(role, "least_loaded"): 4 for role in Role} == Counter(
        (one.pool, one.reason) for one in found.served
    )
    # The first and the second of each replica fare alike.
    assert 2 == len({round(one.tpot_s or 0.0, 6) for one in found.served})


def test_least_loaded_knows_the_hard_limit_alone() -> None:
    """Four fit on two replicas whatever the soft limit and the reserve say; the others wait for them."""
    trace = steady(Tier.INTERACTIVE, 1e6, 6e-6)
    found = simulate(
        setup(slots=2, limits=dict.fromkeys(Role, Limits(1, 2)), routing=Routing.LEAST_LOADED), trace
    )

    assert {Outcome.OK} == {one.outcome for one in found.served}
    assert 4 == sum(one.waited_s < 0.01 for one in found.served)
    assert 2 == sum(one.waited_s > 0.5 for one in found.served)


def test_a_pool_has_the_engines_that_lie_in_it() -> None:
    """A speculative engine in the plain pool answers batch requests as fast as one in its own."""
    trace = steady(Tier.BATCH, 0.5, 10)
    plain, drafting, undrafted = (
        simulate(setup(jitter=0.0, lies={Role.SPECULATIVE: Lies(Role.SPECULATIVE), Role.PLAIN: lies}), trace)
        for lies in (
            Lies(Role.PLAIN),
            Lies(Role.SPECULATIVE),
            Lies(Role.SPECULATIVE, (0,)),
        )
    )

    def mean(found: object) -> float:
        return sum(one.tpot_s or 0.0 for one in found.served) / len(trace)  # type: ignore[attr-defined]

    assert mean(drafting) < 0.8 * mean(plain)
    assert pytest.approx(ENGINES.k0_tax * mean(plain), rel=0.01) == mean(undrafted)


def test_a_move_of_roles_takes_no_time_and_no_capacity() -> None:
    """The same engine in both pools: the plain pool gives one, which goes on with all that is open on it."""
    rules = policy(4, window_s=5, cooldown_s=5)
    trace = together(steady(Tier.INTERACTIVE, 40, 40, answer=400), steady(Tier.BATCH, 1, 40, answer=1500))
    found = simulate(
        setup(
            rules=rules,
            limits=dict.fromkeys(Role, Limits(8, 64)),
            lies={role: Lies(Role.SPECULATIVE) for role in Role},
            changes_roles=True,
        ),
        trace,
    )

    assert 3 == max(one.running[Role.SPECULATIVE] for one in found.pools)
    assert all(4 == sum(one.running.values()) for one in found.pools)
    assert {Outcome.OK} == {one.outcome for one in found.served if one.arrival.tier is Tier.BATCH}
    first = found.moves[0]
    assert (Role.PLAIN, Role.SPECULATIVE, "done") == (first.source, first.receiver, first.state)
    assert first.took_s is not None
    assert first.took_s < 3.0


def test_roles_change_only_between_engines_of_one_kind() -> None:
    """A plain engine cannot become one that drafts."""
    with pytest.raises(ValueError, match=r"changes_roles: .*let the same engine lie in both pools"):
        setup(changes_roles=True)


def test_a_prompt_that_no_replica_takes_is_its_callers_mistake() -> None:
    """As the service answers it with 400; the next request is served."""
    trace = steady(Tier.BATCH, 1, 1, prompt=ENGINES.max_model_len) + [
        replace(one, at_s=1.0) for one in steady(Tier.BATCH, 1, 1)
    ]
    found = simulate(setup(), trace)

    assert [Outcome.CALLER, Outcome.OK] == [one.outcome for one in found.served]


def test_a_prompt_that_fits_the_model_and_not_the_memory_is_refused_too() -> None:
    """An engine whose cache holds less than one request is given less; the run goes on, in both pools."""
    small = replace(ENGINES, kv_tokens={Role.SPECULATIVE: 2003, Role.PLAIN: 3000})
    prompts = (1999, 2000, 2500, 3000)
    assert (3, 2000) == (small.costs[Role.SPECULATIVE].draft_length, small.longest)
    trace = [
        Arrival(float(at), tier, "chat", prompt, 50) for at, prompt in enumerate(prompts) for tier in Tier
    ]
    found = simulate(setup(engines=small), trace)

    assert {(1999, Outcome.OK)} | {(prompt, Outcome.CALLER) for prompt in prompts[1:]} == {
        (one.arrival.prompt_tokens, one.outcome) for one in found.served
    }


def test_the_clock_on_the_wall_is_that_of_the_trace() -> None:
    """A schedule acts at its second of the trace, though a service that settles comes before it."""
    looks: list[Observation] = []

    class Watched(Control):
        def decide(self, seen: Observation, policy: PolicyInForce, memory: Memory) -> tuple[Decision, Memory]:
            looks.append(seen)
            return super().decide(seen, policy, memory)

    made = setup(control=Watched)
    found = simulate(made, steady(Tier.BATCH, 1, 10))
    last = looks[-1].wall - made.believed.wall

    assert found.pools[-1].at_s == pytest.approx(last, abs=1.0)
    assert [-SETTLE_S] == [pytest.approx(looks[0].wall - made.believed.wall)]
