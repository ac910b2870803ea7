"""Which way to fill two replicas is the answer, and what the answer depends on."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoscaling.profiling.findings import PoolAnswer
from autoscaling.profiling.gains import NO_DRAFTS, Gain
from autoscaling.profiling.homes import SPREAD, Engine, batch_tokens_per_s, home, plain_engine
from autoscaling.profiling.load import Load
from autoscaling.profiling.two_pools import (
    GRID_S,
    predict,
    predict_grid,
)
from autoscaling.routing_rules import StepCost

TWO, ONE_PLAIN, ONE_SPECULATIVE = (
    PoolAnswer.TWO_POOLS,
    PoolAnswer.ONE_PLAIN,
    PoolAnswer.ONE_SPECULATIVE,
)
COST = StepCost(base_s=0.020, per_token_s=0.001, per_prefill_s=0.0001)
GOOD = {0: NO_DRAFTS, 4: Gain(3.0, 4.0)}
PLAIN = plain_engine(COST)
# 3 tokens of 22 + 5 B ms, against one of 20 + B: K = 4 is the better one up to 19 sequences.
FREE = Engine(replace(COST, draft_s=0.002, draft_length=4), GOOD, GOOD)
# Drafting nothing takes 1.2 times as long as the plain engine.
TAXED = Engine(replace(FREE.cost, base_s=0.024, per_token_s=0.0012), GOOD, GOOD)
LOAD = Load(
    interactive_per_s=1.5,
    interactive_answer_tokens=64,
    interactive_prompt_tokens=100,
    batch_streams=32,
    batch_answer_tokens=64,
    batch_prompt_tokens=100,
)

gains_of_any = st.dictionaries(st.integers(1, 8), st.floats(0.0, 1.0), max_size=3).map(
    lambda rates: {0: NO_DRAFTS, **{k: Gain(1 + rate * k, float(k)) for k, rate in rates.items()}}
)
loads = st.builds(
    Load,
    interactive_per_s=st.floats(0.0, 20.0, allow_subnormal=False),
    interactive_answer_tokens=st.floats(8, 512),
    interactive_prompt_tokens=st.floats(1, 2000),
    batch_streams=st.integers(0, 64),
    batch_answer_tokens=st.floats(8, 512),
    batch_prompt_tokens=st.floats(1, 2000),
    interactive_weight=st.floats(0.1, 16),
    ttft_s=st.none() | st.floats(0.05, 2.0),
)


def interactive_goodput(engine: Engine, load: Load, tpot_s: float, spread: float = SPREAD) -> float:
    """Of a home without guests."""
    return home(engine, load).interactive_goodput(tpot_s, spread)


def open_answers(engine: Engine, load: Load) -> float:
    """At a home without guests."""
    return home(engine, load).open_


def test_each_configuration_is_the_sum_of_its_homes() -> None:
    """Interactive at the first replica, batch at the second one; no guest fits beside interactive ones."""
    plain, drafts = replace(PLAIN, most=0), replace(TAXED, most=0)
    at_plain, at_drafts = (interactive_goodput(one, LOAD, 0.03) for one in (plain, drafts))

    assert {ONE_PLAIN: at_plain, ONE_SPECULATIVE: at_drafts, TWO: at_drafts} == (
        predict(plain, drafts, LOAD, 0.03).goodput
    )
    batch_plain, batch_drafts = (batch_tokens_per_s(one, LOAD) for one in (PLAIN, TAXED))
    alone = replace(LOAD, interactive_per_s=0.0, interactive_weight=0.0)
    assert [0.0, 0.0] == [interactive_goodput(one, alone, 0.03) for one in (PLAIN, TAXED)]
    assert batch_plain < predict(PLAIN, TAXED, alone, 0.03).goodput[ONE_PLAIN]
    assert batch_drafts < predict(PLAIN, TAXED, alone, 0.03).goodput[ONE_SPECULATIVE]


@pytest.mark.parametrize("tpot_s", [0.015, 0.02, 0.025])
def test_tight_objectives_want_two_pools_where_k_0_is_taxed(tpot_s: float) -> None:
    """K = 0 costs 20 %: batch is worth a plain home, and interactive is in time with drafts alone."""
    found = predict(PLAIN, TAXED, LOAD, tpot_s)

    assert TWO == found.answer
    assert found.margin > 1.05


def test_loose_objectives_want_one_plain_pool_where_k_0_is_taxed() -> None:
    """At 200 ms every answer is in time in either home, and batch decides."""
    assert ONE_PLAIN == predict(PLAIN, TAXED, LOAD, 0.2).answer


def test_batch_that_gains_by_drafts_wants_one_speculative_pool() -> None:
    """4 streams: a plain home of batch would be the slower one, tax or not."""
    found = predict(PLAIN, TAXED, replace(LOAD, batch_streams=4), 0.02)

    assert ONE_SPECULATIVE == found.answer
    assert found.margin > 1.05


@settings(deadline=None, max_examples=20)  # each looks for the best number of guests thrice
@given(
    gains_of_any,
    gains_of_any,
    loads,
    st.sampled_from(GRID_S),
    st.floats(0, 0.01),
    st.none() | st.integers(1, 64),
)
def test_two_pools_are_never_the_answer_where_k_0_is_free(
    interactive: dict[int, Gain],
    batch: dict[int, Gain],
    load: Load,
    tpot_s: float,
    draft_s: float,
    most: int | None,
) -> None:
    """One pool with a K table can do all that the plain engine does, whatever the load and the drafter."""
    drafts = Engine(replace(COST, draft_s=draft_s, draft_length=8), interactive, batch, most)
    found = predict(plain_engine(COST, most), drafts, load, tpot_s)

    assert TWO != found.answer
    assert found.goodput[TWO] <= found.goodput[ONE_SPECULATIVE]


def test_a_second_pool_for_less_than_5_percent_is_not_worth_it() -> None:
    """K = 0 costs 3 %, so that two pools sell most, though hardly more than one: the margin is below 1."""
    slightly = replace(FREE, cost=replace(FREE.cost, base_s=0.0206, per_token_s=0.00103))
    found = predict(PLAIN, slightly, LOAD, 0.02)

    assert ONE_SPECULATIVE == found.answer
    assert found.goodput[TWO] == max(found.goodput.values())
    assert 0.95 < found.margin < 1.0


@pytest.mark.parametrize("cost", [FREE.cost, TAXED.cost])
def test_drafts_that_bring_nothing_want_one_plain_pool(cost: StepCost) -> None:
    """One token per step at every K, with a tax of K = 0 and without: at no objective a reason to draft."""
    nothing = {0: NO_DRAFTS, 2: Gain(1.0, 2.0), 4: Gain(1.0, 4.0)}

    assert {ONE_PLAIN} == {one.answer for one in predict_grid(PLAIN, Engine(cost, nothing, nothing), LOAD)}


def test_an_interactive_token_in_time_counts_as_much_as_its_weight() -> None:
    """Four batch tokens unless said; at a tenth of one the plain home of both is the best."""
    once = replace(LOAD, interactive_weight=1.0)

    assert pytest.approx(4 * interactive_goodput(TAXED, once, 0.02)) == interactive_goodput(TAXED, LOAD, 0.02)
    assert batch_tokens_per_s(TAXED, once) == batch_tokens_per_s(TAXED, LOAD)
    assert ONE_PLAIN == predict(PLAIN, TAXED, replace(LOAD, interactive_weight=0.1), 0.02).answer
    assert TWO == predict(PLAIN, TAXED, LOAD, 0.02).answer


def test_an_objective_for_the_first_token_that_drafts_miss_wants_one_plain_pool() -> None:
    """A prompt takes a step of 31.1 ms plain and 44 ms with drafts; 40 ms are promised."""
    tight = replace(LOAD, interactive_per_s=0.01, ttft_s=0.040)
    slow = replace(TAXED, cost=replace(TAXED.cost, draft_s=0.012))

    assert interactive_goodput(PLAIN, tight, 0.05) > 0
    assert 0.0 == interactive_goodput(slow, tight, 0.05)
    assert interactive_goodput(slow, replace(tight, ttft_s=0.060), 0.05) > 0
    assert ONE_PLAIN == predict(PLAIN, slow, tight, 0.05).answer


def test_a_prompt_does_not_wait_for_drafts_that_nobody_makes() -> None:
    """Drafts bring nothing, so that K = 0 is in force: the first token is as fast as without a drafter."""
    idle = {0: NO_DRAFTS, 4: Gain(1.0, 4.0)}
    slow = Engine(replace(FREE.cost, draft_s=0.050), idle, idle)
    tight = replace(LOAD, ttft_s=0.040)

    assert interactive_goodput(PLAIN, tight, 0.05) == interactive_goodput(slow, tight, 0.05) > 0


def test_a_home_that_cannot_keep_up_has_a_thousand_open() -> None:
    """100 answers per second of 64 tokens: no batch makes as many, and it is said with a number."""
    flooded = replace(LOAD, interactive_per_s=100)

    assert pytest.approx(1000) == open_answers(PLAIN, flooded)
    assert pytest.approx(0.0, abs=1e-6) == interactive_goodput(PLAIN, flooded, 0.2)


def test_the_grid_goes_from_20_to_200_ms() -> None:
    """One prediction at each objective, in that order, and the same as if asked for alone."""
    found = predict_grid(PLAIN, TAXED, LOAD)

    assert (0.02, 0.2) == (found[0].tpot_s, found[-1].tpot_s)
    assert [predict(PLAIN, TAXED, LOAD, tpot_s) for tpot_s in GRID_S] == list(found)
