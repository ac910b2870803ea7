"""What the event model's result is worth, by hand-made results and literal numbers."""

from __future__ import annotations

import pytest

from app.simulation.arrival import Arrival
from app.simulation.ingress import Served
from app.simulation.score import in_time, objective_of, scores
from app.simulation.scores import MoveMade
from app.simulation.setup import PoolsAt, Simulated
from autoscaling.policy import TierObjective
from autoscaling.request_line import Outcome
from autoscaling.types import Role, Tier
from tests.app.simulation.engines import engine_profile
from tests.app.simulation.services import policy, setup

SPEC, PLAIN = Role.SPECULATIVE, Role.PLAIN
OBJECTIVE = TierObjective(ttftSeconds=1.0, tpotSeconds=0.1)


def answer(
    at_s: float,
    ttft_s: float,
    tpot_s: float,
    tokens: int = 11,
    tier: Tier = Tier.INTERACTIVE,
    outcome: Outcome = Outcome.OK,
) -> Served:
    first = at_s + ttft_s
    return Served(
        Arrival(at_s, tier, "chat", 100, 11),
        outcome,
        SPEC,
        "tier_interactive",
        0.0,
        first,
        first + tpot_s * (tokens - 1),
        tokens,
    )


def refused(at_s: float, outcome: Outcome, tier: Tier = Tier.INTERACTIVE) -> Served:
    return Served(Arrival(at_s, tier, "chat", 100, 11), outcome, ended_at=at_s + 5.0)


def pools(at_s: float, running: int = 2, starting: int = 0, draining: int = 0, demand: int = 0) -> PoolsAt:
    """Of the speculative pool; the plain one has one replica."""
    return PoolsAt(
        at_s,
        {SPEC: running, PLAIN: 1},
        {SPEC: starting, PLAIN: 0},
        {SPEC: draining, PLAIN: 0},
        {SPEC: demand, PLAIN: 0},
        {SPEC: 8 * running, PLAIN: 8},
    )


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (answer(0.0, 0.9, 0.09), True),
        (answer(0.0, 1.1, 0.09), False),
        (answer(0.0, 0.9, 0.11), False),
        (answer(0.0, 0.9, 0.0, tokens=1), True),  # no time per token to judge
        (answer(0.0, 0.5, 0.05, outcome=Outcome.FAILED), False),
        (refused(0.0, Outcome.SHED), False),
    ],
)
def test_in_time_is_whole_and_inside_every_objective(one: Served, expected: bool) -> None:
    """1 s to the first token, 100 ms for each further one."""
    assert expected is in_time(one, OBJECTIVE)


def test_without_an_objective_a_whole_answer_is_in_time() -> None:
    """However long it took."""
    assert in_time(answer(0.0, 100.0, 10.0), TierObjective())


def test_the_wait_counts_to_the_first_token() -> None:
    """From arrival, not from the seat."""
    waited = Served(
        Arrival(1.0, Tier.INTERACTIVE, "chat", 100, 1), Outcome.OK, SPEC, "spill", 0.8, 2.1, 2.1, 1
    )
    assert not in_time(waited, OBJECTIVE)


def test_each_tier_has_its_own_objective() -> None:
    """As the policy names them."""
    given = policy(4)
    assert [0.012, 0.03, None] == [objective_of(given, tier).tpot_seconds for tier in Tier]


def test_a_tier_is_the_sum_of_its_outcomes() -> None:
    """12 ms for a token: one in time, one late, one shed, one without room, one broken off, one too long."""
    served = (
        answer(0.0, 0.1, 0.010),
        answer(1.0, 0.3, 0.014),
        refused(2.0, Outcome.SHED),
        refused(3.0, Outcome.NO_CAPACITY),
        answer(4.0, 0.1, 0.010, tokens=5, outcome=Outcome.FAILED),
        Served(Arrival(5.0, Tier.INTERACTIVE, "chat", 100_000, 11), Outcome.CALLER, ended_at=5.0),
    )
    found = scores(Simulated(served, (pools(0.0),), ()), setup(), 10.0)
    tier = found.tiers[Tier.INTERACTIVE]

    assert [Tier.INTERACTIVE] == list(found.tiers)
    assert (5, 1, 1, 2, 1) == (tier.arrived, tier.in_time, tier.late, tier.refused, tier.failed)
    assert 0.2 == tier.attainment
    assert 22 == tier.tokens
    assert [pytest.approx(0.2), pytest.approx(0.29)] == [tier.ttft_p50_s, tier.ttft_p95_s]
    assert [pytest.approx(0.012), pytest.approx(0.0138)] == [tier.tpot_p50_s, tier.tpot_p95_s]


def test_an_answer_that_ends_after_the_trace_brings_no_tokens() -> None:
    """It is judged all the same."""
    served = (answer(9.8, 0.1, 0.001, tier=Tier.BATCH), answer(9.8, 0.5, 0.001, tier=Tier.BATCH))
    found = scores(Simulated(served, (pools(0.0),), ()), setup(), 10.0)

    assert (2, 11) == (found.tiers[Tier.BATCH].in_time, found.tiers[Tier.BATCH].tokens)
    assert 1.1 == found.tokens_per_s


def test_a_tier_that_nobody_answered_has_no_percentiles() -> None:
    """Unknown, not zero."""
    found = scores(Simulated((refused(0.0, Outcome.SHED),), (pools(0.0),), ()), setup(), 10.0)
    assert (None, None) == (
        found.tiers[Tier.INTERACTIVE].ttft_p50_s,
        found.tiers[Tier.INTERACTIVE].tpot_p95_s,
    )


def test_hours_are_replicas_times_accelerators_to_the_end_of_the_trace() -> None:
    """Engines of two accelerators; the last look stands to the end, and what lies behind it is left out."""
    looks = (
        pools(0.0),  # 3 replicas
        pools(1.0, running=1, draining=1),  # 3, 1 of them in a move
        pools(2.0, running=1, starting=1),
        pools(4.0, running=3),  # 4
        pools(11.0, running=7),
    )
    found = scores(
        Simulated((answer(0.0, 0.1, 0.01),), looks, ()), setup(engines=engine_profile(accelerators=2)), 10.0
    )

    assert pytest.approx(2 * (3 + 3 + 3 * 2 + 4 * 6) / 3600) == found.accelerator_hours
    assert pytest.approx(2 * (1 + 1 * 2) / 3600) == found.switching_hours


def test_moves_that_begin_after_the_trace_are_left_out() -> None:
    """Nothing of the trace has caused them."""
    moves = tuple(MoveMade(at_s, PLAIN, SPEC, 1, "shortfall", "done", 40.0) for at_s in (5.0, 10.0))
    found = scores(Simulated((answer(0.0, 0.1, 0.01),), (pools(0.0),), moves), setup(), 10.0)
    assert moves[:1] == found.moves


def test_the_series_has_pools_and_attainment_by_interval() -> None:
    """By arrival; the look nearest to the interval's beginning, whatever rounding does to its time."""
    served = (answer(0.0, 0.1, 0.010), answer(4.9, 0.1, 0.014), answer(11.0, 0.1, 0.011))
    looks = (
        pools(0.0),
        pools(4.9999999, demand=3),
        pools(9.0, demand=7),
        pools(10.0000001, running=3, demand=5),
    )
    found = scores(Simulated(served, looks, ()), setup(), 12.0, interval_s=5.0)

    assert (5.0, [0.0, 5.0, 10.0]) == (found.interval_s, [one.at_s for one in found.series])
    assert [0, 3, 5] == [one.demand[SPEC] for one in found.series]
    assert [16, 16, 24] == [one.capacity[SPEC] for one in found.series]
    assert [0.5, None, 1.0] == [one.attainment[Tier.INTERACTIVE] for one in found.series]
    assert [pytest.approx(0.0138), None, pytest.approx(0.011)] == [
        one.tpot_p95_s[Tier.INTERACTIVE] for one in found.series
    ]
