"""What two replicas sell, and whether a second pool pays."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoscaling.profiling.findings import PoolAnswer
from autoscaling.profiling.gains import NO_DRAFTS, Gain
from autoscaling.profiling.homes import SPREAD, Engine, batch_tokens_per_s, home, plain_engine
from autoscaling.profiling.load import Load
from autoscaling.profiling.two_pools import (
    predict,
    predict_grid,
    ways,
)
from autoscaling.routing_rules import StepCost

PLAIN = StepCost(base_s=0.020, per_token_s=0.001, per_prefill_s=0.0001)
# 50 answers' tokens per second, two at once or so; 12 batch streams.
LOAD = Load(
    interactive_per_s=1.0,
    interactive_answer_tokens=50,
    interactive_prompt_tokens=100,
    batch_streams=12,
    batch_answer_tokens=100,
    batch_prompt_tokens=100,
)
FLAT = StepCost(base_s=0.020, per_token_s=0.0, per_prefill_s=0.0)  # every step takes 20 ms
GAINS = {0: NO_DRAFTS, 4: Gain(2.5, 4.0)}


def speculative(k0_tax_s: float) -> Engine:
    """Drafts that gain at few sequences; the engine is slower by so much even when it drafts nothing."""
    cost = replace(PLAIN, base_s=PLAIN.base_s + k0_tax_s, draft_s=0.002, draft_length=4)
    return Engine(cost, GAINS, GAINS)


def interactive_goodput(engine: Engine, load: Load, tpot_s: float, spread: float = SPREAD) -> float:
    """Of a home without guests."""
    return home(engine, load).interactive_goodput(tpot_s, spread)


def open_answers(engine: Engine, load: Load) -> float:
    """At a home without guests."""
    return home(engine, load).open_


def test_open_answers_follow_from_littles_law() -> None:
    """1 per second of 50 tokens of 20 ms each: one is open on average."""
    assert pytest.approx(1.0) == open_answers(plain_engine(FLAT), LOAD)
    assert pytest.approx(0.0, abs=1e-6) == open_answers(
        plain_engine(FLAT), replace(LOAD, interactive_per_s=0)
    )


def test_open_answers_slow_each_other() -> None:
    """B = 50 x (0.020 + 0.001 x (1 + B)): 1.05 / 0.95 of them, without prompts."""
    alone = replace(PLAIN, per_prefill_s=0.0)

    assert pytest.approx(1.05 / 0.95) == open_answers(plain_engine(alone), LOAD)


def test_prompts_of_others_slow_an_answer() -> None:
    """B = 50 x (0.021 + 0.001 B + 0.0001 x 100 / 50 B): 1.05 / 0.94."""
    assert pytest.approx(1.05 / 0.94) == open_answers(plain_engine(PLAIN), LOAD)


@pytest.mark.parametrize(("sigmas", "share"), [(0.0, 0.5), (1.0, 0.8413), (-1.0, 0.1587), (20.0, 1.0)])
def test_answers_spread_about_their_time(sigmas: float, share: float) -> None:
    """20 ms per token and an objective so many spreads away: 4 x 50 tokens/s times the share in time."""
    tpot_s = 0.020 * math.exp(0.15 * sigmas)

    assert pytest.approx(200 * share, rel=2e-3) == interactive_goodput(plain_engine(FLAT), LOAD, tpot_s)


def test_without_spread_the_objective_is_a_step() -> None:
    """A spread of 0.1 % of the time."""
    engine = plain_engine(FLAT)

    assert pytest.approx(200, rel=2e-3) == interactive_goodput(engine, LOAD, 0.0201, spread=0.001)
    assert pytest.approx(0.0, abs=0.1) == interactive_goodput(engine, LOAD, 0.0199, spread=0.001)


def test_others_come_at_random() -> None:
    """23.5 ms lies between 2 and 3 beside: only Poisson(1.05 / 0.95) of 0 to 2 others is in time."""
    alone = plain_engine(replace(PLAIN, per_prefill_s=0.0))
    mean = 1.05 / 0.95
    share = math.exp(-mean) * (1 + mean + mean**2 / 2)

    assert pytest.approx(200 * share, rel=1e-3) == interactive_goodput(alone, LOAD, 0.0235, spread=0.001)


def test_a_late_first_token_is_worth_nothing() -> None:
    """100 tokens of a prompt take 21 ms or so and 10 more; the promise is 20 ms, then 1 s."""
    engine = plain_engine(PLAIN)

    assert 0.0 == interactive_goodput(engine, replace(LOAD, ttft_s=0.020), 1.0)
    assert pytest.approx(200, rel=2e-3) == interactive_goodput(engine, replace(LOAD, ttft_s=1.0), 1.0)


def test_a_home_that_cannot_keep_up_sells_nothing() -> None:
    """100 answers of 50 tokens per second are more than it makes at any batch: a number, and almost 0."""
    found = interactive_goodput(plain_engine(PLAIN), replace(LOAD, interactive_per_s=100), 0.05)

    assert pytest.approx(0.0, abs=1e-3) == found


def test_batch_throughput_in_numbers() -> None:
    """10 streams of 30 ms per token and 9 x 0.1 ms for the others' prompts, after a step of 30 ms."""
    load = replace(LOAD, batch_streams=10)
    whole_s = 0.020 + 0.0001 * 100 + 100 * (0.030 + 9 * 0.0001 * 100 / 100)

    assert pytest.approx(10 * 100 / whole_s) == batch_tokens_per_s(plain_engine(PLAIN), load)


def test_batch_is_bounded_by_what_the_engine_runs_at_once() -> None:
    """10 of 12 streams, and nothing of none."""
    ten = batch_tokens_per_s(plain_engine(PLAIN), replace(LOAD, batch_streams=10))

    assert ten == batch_tokens_per_s(plain_engine(PLAIN, most=10), LOAD)
    assert 0.0 == batch_tokens_per_s(plain_engine(PLAIN), replace(LOAD, batch_streams=0))


def test_batch_has_the_best_length_of_its_engine() -> None:
    """At 40 streams drafting does not pay: K = 0 is taken, at what it costs this engine."""
    load = replace(LOAD, batch_streams=40)
    off = Engine(speculative(0.005).cost, {0: NO_DRAFTS}, {0: NO_DRAFTS})

    assert batch_tokens_per_s(off, load) == batch_tokens_per_s(speculative(0.005), load)
    assert batch_tokens_per_s(off, load) < batch_tokens_per_s(plain_engine(PLAIN), load)


def test_two_pools_win_where_drafting_nothing_costs() -> None:
    """The batch home would lose a fifth of its tokens to an engine that drafts nothing, slowly."""
    found = predict(plain_engine(PLAIN), speculative(0.015), LOAD, 0.020)

    assert PoolAnswer.TWO_POOLS == found.answer
    assert found.margin > 1.05
    assert found.goodput[PoolAnswer.TWO_POOLS] == max(found.goodput.values())
    others = [value for kind, value in found.goodput.items() if kind is not PoolAnswer.TWO_POOLS]
    assert pytest.approx(found.goodput[PoolAnswer.TWO_POOLS] / max(others)) == found.margin


def test_one_speculative_pool_is_enough_where_drafting_nothing_is_free() -> None:
    """The same engines without the tax: the K table does all that a second pool would."""
    found = predict(plain_engine(PLAIN), speculative(0.0), LOAD, 0.016)

    assert PoolAnswer.ONE_SPECULATIVE == found.answer
    assert pytest.approx(1.0, abs=0.05) == found.goodput[PoolAnswer.TWO_POOLS] / found.goodput[found.answer]


def test_one_plain_pool_is_enough_where_drafts_bring_nothing() -> None:
    """No draft is ever accepted."""
    nothing = {0: NO_DRAFTS, 4: Gain(1.0, 4.0)}
    useless = Engine(speculative(0.002).cost, nothing, nothing)

    assert {PoolAnswer.ONE_PLAIN} == {one.answer for one in predict_grid(plain_engine(PLAIN), useless, LOAD)}


def test_a_tie_goes_to_the_simplest() -> None:
    """All sell the same: plain comes first; so it does without any sale, and then has no margin."""
    plain = plain_engine(PLAIN)
    assert (PoolAnswer.ONE_PLAIN, 1.0) == (
        (found := predict(plain, plain, LOAD, 0.05)).answer,
        found.margin,
    )
    nobody = replace(LOAD, interactive_per_s=0, batch_streams=0)
    assert (PoolAnswer.ONE_PLAIN, math.inf) == (
        (found := predict(plain, plain, nobody, 0.05)).answer,
        found.margin,
    )


@settings(deadline=None, max_examples=40)  # each looks for the best number of guests thrice
@given(st.floats(0.0, 0.02), st.floats(0.1, 4.0), st.integers(0, 64), st.floats(0.01, 0.2))
def test_a_second_pool_has_to_bring_5_percent(tax_s: float, rate: float, streams: int, tpot_s: float) -> None:
    """Two pools only where no single one comes within 5 %; every answer is within 5 % of the best."""
    load = replace(LOAD, interactive_per_s=rate, batch_streams=streams)
    plain, drafts = plain_engine(PLAIN), speculative(tax_s)
    found = predict(plain, drafts, load, tpot_s)
    single = max(found.goodput[PoolAnswer.ONE_PLAIN], found.goodput[PoolAnswer.ONE_SPECULATIVE])

    assert 1.05 * found.goodput[found.answer] >= max(found.goodput.values())
    assert (found.answer is PoolAnswer.TWO_POOLS) == (found.goodput[PoolAnswer.TWO_POOLS] > 1.05 * single)
    assert found.goodput[PoolAnswer.TWO_POOLS] >= (
        interactive_goodput(drafts, load, tpot_s) + batch_tokens_per_s(plain, load)
    )


def test_the_best_number_of_guests_counts() -> None:
    """Each of none to 12 beside the interactive ones; here neither none nor all."""
    plain, drafts = plain_engine(PLAIN), speculative(0.005)
    sold = []
    for guests in range(13):
        first = home(drafts, LOAD, guests)
        at_first = first.interactive_goodput(0.025) + first.guest_tokens_per_s()
        sold.append(at_first + batch_tokens_per_s(plain, LOAD, 12 - guests))

    assert max(sold) == predict(plain, drafts, LOAD, 0.025).goodput[PoolAnswer.TWO_POOLS]
    assert sold.index(max(sold)) not in (0, 12)


def test_guests_in_numbers() -> None:
    """Steps of 20 ms whatever is in them, and prompts for nothing: 50 tokens/s each, after a first step."""
    found = home(plain_engine(FLAT), LOAD, 3)

    assert pytest.approx(3 * 100 / (0.020 + 100 * 0.020)) == found.guest_tokens_per_s()
    assert pytest.approx(1.0) == found.open_
    assert 0.0 == home(plain_engine(FLAT), LOAD).guest_tokens_per_s()


def test_guests_slow_interactive_answers() -> None:
    """B = 50 x (0.021 + 0.001 (B + 3) + the prompts of B others at 0.2 ms and of 3 guests at 0.1 ms each)."""
    found = home(plain_engine(PLAIN), LOAD, 3)

    assert pytest.approx(50 * (0.021 + 0.003 + 0.0003) / (1 - 50 * 0.0012)) == found.open_
    assert found.interactive_goodput(0.025) < home(plain_engine(PLAIN), LOAD).interactive_goodput(0.025)


def test_an_engine_takes_no_more_guests_than_it_runs() -> None:
    """At most 4 at once: 0 to 4 are tried; with 200 streams in steps of an eighth from 16 on."""
    four = [one.first.guests for one in ways(plain_engine(PLAIN, most=4), plain_engine(PLAIN), LOAD)]
    many = [
        one.first.guests
        for one in ways(plain_engine(PLAIN), plain_engine(PLAIN), replace(LOAD, batch_streams=200))
    ]

    assert [0, 1, 2, 3, 4] == four
    assert [*range(17), 18, 20, 22, 24, 27] == many[:22]
    assert len(many) < 50


def test_more_time_never_sells_less() -> None:
    """Over the grid of objectives, for each configuration."""
    grid = predict_grid(plain_engine(PLAIN), speculative(0.005), LOAD)

    assert [0.02, 0.025, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.15, 0.2] == [one.tpot_s for one in grid]
    for kind in PoolAnswer:
        sold = [one.goodput[kind] for one in grid]
        assert sorted(sold) == sold
