"""Predicted times: by the cost model, by the last minute, or not at all."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.routing.ask import Ask
from app.routing.predict import Prediction, Source, predict, stay_s
from app.routing.verdicts import Verdict
from autoscaling.routing_rules import PoolSpeed, RoutingRules, StepCost, TierRules
from autoscaling.types import Role, Tier
from tests.app.routing.worlds import COSTS, FAST, MEASURED, PROFILED, SLOW, UNMEASURED

ASK = Ask(Tier.INTERACTIVE, prompt_tokens=100)


def test_nothing_measured_predicts_nothing() -> None:
    """Then only the limits speak."""
    assert predict(Role.PLAIN, 5, ASK, UNMEASURED) == Prediction(None, None, Source.UNMEASURED)


def test_the_last_minute_predicts_its_95th_percentiles() -> None:
    """Against an idle replica it says nothing: what that one gives is the pool's best."""
    assert predict(Role.PLAIN, 5, ASK, MEASURED) == Prediction(0.3, 0.03, Source.RECENT)
    assert predict(Role.PLAIN, 1, ASK, MEASURED) == Prediction(0.3, 0.03, Source.RECENT, 0.3, 0.03)


def test_the_cost_model_predicts_at_the_load() -> None:
    """Plain, 8 sequences, 100 prompt tokens: prefill 0.07 s, step 0.024 s; idle 0.0205 s.

    Beside it 7 others take turns, each with a prompt of 0.05 s in the time of an answer of 100 tokens.
    """
    found = predict(Role.PLAIN, 8, ASK, PROFILED)

    assert (found.source, found.ttft_s, found.tpot_s) == (
        Source.PROFILE,
        pytest.approx(0.094),
        pytest.approx(0.024 + 7 * 0.0005),
    )
    assert (found.best_ttft_s, found.best_tpot_s) == (pytest.approx(0.0905), pytest.approx(0.0205))


def test_drafts_gain_in_the_speculative_pool_only() -> None:
    """A step there gives the predicted tokens, and at least one."""
    ask = replace(ASK, tokens_per_step=2.0)

    assert predict(Role.SPECULATIVE, 8, ask, PROFILED).tpot_s == pytest.approx(0.0255)
    assert predict(Role.SPECULATIVE, 8, replace(ask, tokens_per_step=0.5), PROFILED).tpot_s == pytest.approx(
        0.0475
    )
    assert predict(Role.PLAIN, 8, ask, PROFILED).tpot_s == pytest.approx(0.0275)


def test_long_prompts_of_others_hold_up_the_batch() -> None:
    """By their mean length of late; alone at a replica nothing does."""
    speeds = {Role.SPECULATIVE: PoolSpeed(answer_tokens=50.0, prompt_tokens=400.0)}
    rules = replace(PROFILED, speeds=speeds)
    ask = replace(ASK, tokens_per_step=2.0)
    alone = predict(Role.SPECULATIVE, 1, ask, rules)
    among = predict(Role.SPECULATIVE, 3, ask, replace(rules, speeds={}))
    assert alone.tpot_s == alone.best_tpot_s
    full = predict(Role.SPECULATIVE, 3, ask, rules).tpot_s
    assert full is not None
    assert among.tpot_s is not None
    # Two others with 400 tokens of prompt per 50 of answer, against 100 per 256 where nothing is known.
    assert full - among.tpot_s == pytest.approx(2 * 0.0005 * (400 / 50 - 100 / 256), rel=0.02)


def test_half_of_the_answer_is_context() -> None:
    """Of the mean length of the pool's answers, up to the caller's limit."""
    costs = {Role.PLAIN: StepCost(base_s=0.0, per_token_s=0.0, per_context_s=0.001)}
    rules = replace(PROFILED, costs=costs)  # a mean answer of 100 tokens

    assert predict(Role.PLAIN, 1, ASK, rules).tpot_s == pytest.approx(0.150)
    assert predict(Role.PLAIN, 1, replace(ASK, max_tokens=20), rules).tpot_s == pytest.approx(0.110)
    assert predict(Role.PLAIN, 1, ASK, replace(rules, speeds={})).tpot_s == pytest.approx(0.228)


@pytest.mark.parametrize(
    ("prediction", "objective", "expected"),
    [
        (Prediction(1.0, 0.05, Source.RECENT), TierRules(ttft_s=1.0, tpot_s=0.05), None),
        (Prediction(1.1, 0.05, Source.RECENT), TierRules(ttft_s=1.0, tpot_s=0.05), Verdict.WOULD_MISS_TTFT),
        (Prediction(1.1, 0.06, Source.RECENT), TierRules(ttft_s=1.0, tpot_s=0.05), Verdict.WOULD_MISS_TPOT),
        (Prediction(1.1, 0.06, Source.RECENT), TierRules(), None),
        (Prediction(None, None, Source.UNMEASURED), TierRules(ttft_s=1.0, tpot_s=0.05), None),
        (Prediction(2.0, 0.06, Source.PROFILE, 0.5, 0.04), TierRules(tpot_s=0.05), Verdict.WOULD_MISS_TPOT),
        (Prediction(2.0, 0.06, Source.PROFILE, 0.5, 0.055), TierRules(tpot_s=0.05), None),
        (Prediction(2.0, 0.06, Source.PROFILE, 1.5, 0.055), TierRules(ttft_s=1.0), None),
    ],
)
def test_what_is_missed(prediction: Prediction, objective: TierRules, expected: Verdict | None) -> None:
    """Above the objective, but not where even an idle replica would be."""
    assert expected == prediction.miss(objective)


@pytest.mark.parametrize(
    ("speeds", "max_tokens", "expected"),
    [
        ({Role.SPECULATIVE: FAST, Role.PLAIN: SLOW}, 50, 0.1 + 50 * 0.02),
        ({Role.SPECULATIVE: FAST, Role.PLAIN: SLOW}, None, 0.1 + 100 * 0.02),
        ({Role.PLAIN: SLOW}, 50, 0.2 + 50 * 0.06),
        ({Role.PLAIN: SLOW}, None, 0.2 + 100 * 0.06),
        ({Role.SPECULATIVE: PoolSpeed(tpot_p50_s=0.02)}, None, 256 * 0.02),
        ({Role.SPECULATIVE: PoolSpeed(ttft_p50_s=0.1)}, 50, None),
        ({}, 50, None),
    ],
)
def test_stay_by_the_last_minute(
    speeds: dict[Role, PoolSpeed], max_tokens: int | None, expected: float | None
) -> None:
    """The pool's medians, those of the other pool where it has none; the caller's limit is prepared for."""
    ask, rules = Ask(Tier.BATCH, max_tokens=max_tokens), RoutingRules(speeds=speeds)
    found = stay_s(Role.SPECULATIVE, predict(Role.SPECULATIVE, 3, ask, rules), ask, rules)

    assert found == (None if expected is None else pytest.approx(expected))


def test_stay_by_the_cost_model() -> None:
    """Of 10 tokens among 8 sequences: prefill of nothing 0.024 s, eleven steps of 0.044 s."""
    ask, rules = Ask(Tier.BATCH, max_tokens=10), RoutingRules(costs=COSTS)
    found = stay_s(Role.SPECULATIVE, predict(Role.SPECULATIVE, 8, ask, rules), ask, rules)

    assert found == pytest.approx(0.024 + 11 * 0.044)


@pytest.mark.parametrize(
    ("mean", "max_tokens", "expected", "longest"),
    [(None, None, 256, 256), (100.0, None, 100, 100), (100.0, 50, 50, 50), (100.0, 500, 100, 500)],
)
def test_how_long_an_answer_is(
    mean: float | None, max_tokens: int | None, expected: float, longest: float
) -> None:
    """Expected: the mean inside the caller's limit; to be prepared for: the limit where there is one."""
    ask = Ask(Tier.BATCH, max_tokens=max_tokens)

    assert (expected, longest) == (ask.answer_tokens(mean), ask.longest_answer(mean))
