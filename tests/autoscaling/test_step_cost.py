"""What an engine step costs, and the largest batch that keeps an objective."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaling.routing_rules import StepCost
from autoscaling.step_cost import at_length, largest_batch, per_token, prefill_s, step_s, tpot_s

DRAFTS = StepCost(base_s=0.01, per_token_s=0.001, per_context_s=0.00001, draft_s=0.002, draft_length=4)
PLAIN = StepCost(base_s=0.01, per_token_s=0.001)

seconds = st.floats(0.0, 1.0, allow_subnormal=False)
costs = st.builds(
    StepCost,
    base_s=seconds,
    per_token_s=st.floats(0.0, 0.01),
    per_context_s=st.floats(0.0, 0.0001),
    draft_s=seconds,
    draft_length=st.integers(0, 8),
)


@pytest.mark.parametrize(
    ("cost", "arguments", "expected"),
    [
        (PLAIN, {"sequences": 0, "context_tokens": 0}, 0.01),
        (PLAIN, {"sequences": 8, "context_tokens": 100}, 0.018),
        (PLAIN, {"sequences": 8, "context_tokens": 100, "prefill_tokens": 50}, 0.068),
        # 0.01 + 0.001 x 2 x 5 + 0.00001 x 2 x 100 + 0.002
        (DRAFTS, {"sequences": 2, "context_tokens": 100}, 0.024),
        # 0.01 + 0.001 x 2 + 0.00001 x 2 x 100: nothing is drafted
        (DRAFTS, {"sequences": 2, "context_tokens": 100, "draft_length": 0}, 0.014),
        (DRAFTS, {"sequences": 2, "context_tokens": 100, "draft_length": 1}, 0.018),
    ],
)
def test_a_step_is_the_sum_of_its_parts(cost: StepCost, arguments: dict[str, int], expected: float) -> None:
    """Base, tokens, context, and drafting where something is drafted."""
    assert pytest.approx(expected) == step_s(cost, **arguments)


def test_time_per_token_is_the_step_over_its_tokens() -> None:
    """Two sequences that gain 1.6 tokens each in a step of 24 ms."""
    assert pytest.approx(0.015) == tpot_s(DRAFTS, 2, 100, 1.6)


def test_a_prompt_takes_one_step_with_those_that_decode() -> None:
    """100 tokens alone, and beside two sequences."""
    assert pytest.approx(0.11) == prefill_s(PLAIN, 100)
    assert pytest.approx(0.124) == prefill_s(DRAFTS, 100, 2, 100)


@pytest.mark.parametrize(
    ("objective", "most", "expected"),
    [(0.0105, 100, 0), (0.0115, 100, 1), (0.0185, 100, 8), (1.0, 100, 100), (0.0185, 4, 4), (1.0, 0, 0)],
)
def test_the_largest_batch_in_numbers(objective: float, most: int, expected: int) -> None:
    """A step of 10 ms and 1 ms for each sequence; 0 when not even one is in time."""
    assert expected == largest_batch(PLAIN, objective, 0, 1.0, most)


@given(
    costs,
    st.floats(0.0001, 2.0),
    st.integers(0, 5000),
    st.floats(1.0, 9.0),
    st.integers(0, 300),
)
def test_the_largest_batch_is_that_of_trying_all(
    cost: StepCost, objective: float, context: int, tokens: float, most: int
) -> None:
    """Every batch up to it keeps the objective, and the next one does not."""
    kept = [batch for batch in range(1, most + 1) if tpot_s(cost, batch, context, tokens) <= objective]

    assert max(kept, default=0) == largest_batch(cost, objective, context, tokens, most)
    assert kept == list(range(1, len(kept) + 1))


@given(costs, st.integers(0, 200), st.integers(0, 5000), st.integers(0, 5000))
def test_more_of_anything_is_never_faster(cost: StepCost, sequences: int, context: int, prefill: int) -> None:
    """One more sequence, context token or prefill token never makes a step shorter."""
    step = step_s(cost, sequences, context, prefill)

    assert step <= step_s(cost, sequences + 1, context, prefill)
    assert step <= step_s(cost, sequences, context + 1, prefill)
    assert step <= step_s(cost, sequences, context, prefill + 1)


def test_another_k_keeps_the_fullness_of_drafts() -> None:
    """One and a half of three draft tokens, so half of one; and none where nothing is drafted."""
    half = StepCost(base_s=0.01, per_token_s=0.001, draft_length=3, drafted=1.5)

    assert [(1, 0.5), (0, 0.0)] == [
        (one.draft_length, one.drafted) for one in (at_length(half, 1), at_length(half, 0))
    ]
    assert (2, None) == (at_length(DRAFTS, 2).draft_length, at_length(DRAFTS, 2).drafted)


def test_a_cost_per_token_is_that_of_a_step_over_its_tokens() -> None:
    """At every batch; a token of a prompt takes the whole millisecond that it took."""
    halved = per_token(DRAFTS, 2.0)

    assert pytest.approx(tpot_s(DRAFTS, 5, 100, 2.0)) == tpot_s(halved, 5, 100, 1.0)
    assert pytest.approx(0.001 * 10) == step_s(halved, 5, 100, 10) - step_s(halved, 5, 100)
