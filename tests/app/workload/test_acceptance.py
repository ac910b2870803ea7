"""What drafts are predicted to give: the order of the sources, and what counts against drafting."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.workload.acceptance import PRIORS, draftable, tokens_per_step
from app.workload.classify import RULES, Reason, Workload, WorkloadClass
from app.workload.features import Features

GROUNDED = Workload(WorkloadClass.GROUNDED, Reason.VERB_SUMMARIZE)
CHAT = Workload(WorkloadClass.CHAT, Reason.FREE_TEXT)
# An ordinary prompt of the class, not sampled: nothing moves the class's value.
PLAIN = Features(prompt_chars=1000, temperature=0.0, repetition=0.3)
WORKLOADS = st.sampled_from([workload for workload, _ in RULES])
METHODS = st.sampled_from([*PRIORS, "deepseek_mtp", "unheard-of"])
FEATURES = st.builds(
    Features,
    prompt_chars=st.integers(0, 10_000_000),
    max_tokens=st.none() | st.integers(1, 1_000_000_000),
    temperature=st.none() | st.floats(0, 100),
    repetition=st.floats(0, 1),
)
MEASURED = st.dictionaries(st.sampled_from([*WorkloadClass, "mean"]), st.floats(1, 10))


def test_without_drafts_nothing_is_predicted() -> None:
    """No method, no prediction, and nothing to send anywhere for it."""
    assert tokens_per_step(None, GROUNDED, PLAIN, {"grounded": 3.0}) is None
    assert draftable(None) is False


@pytest.mark.parametrize(
    ("method", "grounded", "chat"),
    [
        ("ngram", 1.7, 1.2),
        ("ngram_gpu", 1.7, 1.2),
        ("suffix", 1.7, 1.2),
        ("eagle3", 2.3, 2.25),
        ("eagle", 2.1, 2.05),
        ("deepseek_mtp", 2.1, 2.05),
        ("medusa", 2.05, 2.4),
        ("draft_model", 2.5, 2.35),
        ("unheard-of", 2.5, 2.35),
    ],
)
def test_the_prior_of_a_method(method: str, grounded: float, chat: float) -> None:
    """Each method has its own table; an unknown one counts as a draft model."""
    assert grounded == tokens_per_step(method, GROUNDED, PLAIN, {})
    assert chat == tokens_per_step(method, CHAT, replace(PLAIN, prompt_chars=60), {})


def test_every_method_knows_every_class() -> None:
    """No class is without a prior."""
    assert {method: set(WorkloadClass) for method in PRIORS} == {
        name: set(row) for name, row in PRIORS.items()
    }


def test_what_was_measured_wins() -> None:
    """A class in the profile has its value; another class keeps its prior."""
    assert 3.0 == tokens_per_step("ngram", GROUNDED, PLAIN, {"grounded": 3.0, "chat": 2.0, "mean": 2.5})
    assert 1.7 == tokens_per_step("ngram", GROUNDED, PLAIN, {"chat": 2.0, "mean": 2.5})


def test_a_request_without_text_has_the_mean() -> None:
    """Where no class can be found, the profile's mean over all classes stands."""
    unknown = Workload(WorkloadClass.OTHER, Reason.NO_TEXT)
    assert 2.5 == tokens_per_step("eagle3", unknown, PLAIN, {"mean": 2.5, "chat": 2.0})


@pytest.mark.parametrize("measured", [math.nan, math.inf, -1.0, 0.0, 0.99])
def test_a_measurement_that_cannot_be_is_left_out(measured: float) -> None:
    """A step gives at least one token, and a finite number of them."""
    assert 1.7 == tokens_per_step("ngram", GROUNDED, PLAIN, {"grounded": measured})


@pytest.mark.parametrize(
    ("limit", "expected"), [(1, 1.0), (2, 1.259), (8, 1.563), (1000, 1.699), (None, 1.7)]
)
def test_a_short_answer_gains_less(limit: int | None, expected: float) -> None:
    """The first token comes without a draft: n tokens take 1 + (n - 1) / 1.7 steps."""
    assert expected == tokens_per_step("ngram", GROUNDED, replace(PLAIN, max_tokens=limit), {})


@pytest.mark.parametrize(
    ("temperature", "expected"), [(0.0, 1.7), (0.4, 1.63), (1.0, 1.525), (2.0, 1.525), (None, 1.577)]
)
def test_a_high_temperature_counts_against_drafting(temperature: float | None, expected: float) -> None:
    """A quarter of the gain is lost at 1 and above; a request that names none is taken for 0.7."""
    assert expected == tokens_per_step("ngram", GROUNDED, replace(PLAIN, temperature=temperature), {})


def test_a_program_from_nothing_is_no_copy() -> None:
    """N-grams find little where the prompt holds no program; a model drafts it all the same."""
    given_, asked = (Workload(WorkloadClass.CODE, why) for why in (Reason.CODE_GIVEN, Reason.CODE_ASKED))
    ordinary = replace(PLAIN, prompt_chars=450)
    assert (1.6, 1.15) == (
        tokens_per_step("ngram", given_, ordinary, {}),
        tokens_per_step("ngram", asked, ordinary, {}),
    )
    assert tokens_per_step("eagle3", given_, ordinary, {}) == tokens_per_step("eagle3", asked, ordinary, {})


def test_n_grams_find_more_where_more_was_said() -> None:
    """Longer prompts, up to 1,000 bytes, and repeated words raise what is looked up in them."""
    code = Workload(WorkloadClass.CODE, Reason.CODE_GIVEN)
    by_length = [
        tokens_per_step("ngram", code, replace(PLAIN, prompt_chars=size), {})
        for size in (45, 450, 1000, 9000)
    ]
    by_words = [
        tokens_per_step("ngram", code, replace(PLAIN, repetition=share), {}) for share in (0.0, 0.3, 0.6)
    ]
    assert [1.301, 1.6, 1.762, 1.762] == by_length
    assert [1.648, 1.762, 1.877] == by_words


def test_a_model_drafts_whatever_was_said() -> None:
    """Length and repetition move n-grams only."""
    other = replace(PLAIN, prompt_chars=10, repetition=0.9)
    assert tokens_per_step("eagle3", GROUNDED, PLAIN, {}) == tokens_per_step("eagle3", GROUNDED, other, {})


@pytest.mark.parametrize(("tokens", "expected"), [(1.0, False), (1.299, False), (1.3, True), (4.0, True)])
def test_drafts_pay_from_a_threshold_on(tokens: float, expected: bool) -> None:
    """At 1.3 tokens per step and above."""
    assert expected is draftable(tokens)


@given(METHODS, WORKLOADS, FEATURES, MEASURED)
def test_a_prediction_is_at_least_one_token(
    method: str, workload: Workload, seen: Features, measured: dict[str, float]
) -> None:
    """Always a finite number, never below what an engine without drafts gives, never above the answer."""
    found = tokens_per_step(method, workload, seen, measured)
    assert found is not None
    assert math.isfinite(found)
    assert 1.0 <= found
    assert seen.max_tokens is None or found <= seen.max_tokens


@given(METHODS, WORKLOADS, FEATURES, MEASURED, st.floats(0, 3), st.floats(0, 3))
def test_a_higher_temperature_never_raises_a_prediction(
    method: str, workload: Workload, seen: Features, measured: dict[str, float], one: float, other: float
) -> None:
    """More chance in the answer never helps drafting."""
    low, high = sorted((one, other))
    cold = tokens_per_step(method, workload, replace(seen, temperature=low), measured)
    hot = tokens_per_step(method, workload, replace(seen, temperature=high), measured)
    assert cold is not None
    assert hot is not None
    assert hot <= cold


@given(METHODS, WORKLOADS, FEATURES, MEASURED, st.integers(1, 5000), st.integers(1, 5000))
def test_a_longer_answer_never_lowers_a_prediction(
    method: str, workload: Workload, seen: Features, measured: dict[str, float], one: int, other: int
) -> None:
    """The step without a draft weighs less the longer the answer may be."""
    short, long = sorted((one, other))
    first = tokens_per_step(method, workload, replace(seen, max_tokens=short), measured)
    second = tokens_per_step(method, workload, replace(seen, max_tokens=long), measured)
    assert first is not None
    assert second is not None
    assert first <= second
