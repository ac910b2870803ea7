"""What a step with drafts costs beyond a plain one, in numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from autoscaling.profiling.gains import NO_DRAFTS, Gain, cost_at
from autoscaling.profiling.losses import drafting_s, losses
from autoscaling.routing_rules import StepCost
from autoscaling.step_cost import step_s
from autoscaling.types import Role

PLAIN = StepCost(base_s=0.020, per_token_s=0.001, per_context_s=1e-5)
DRAFTS = replace(
    PLAIN,
    base_s=0.022,
    draft_s=0.003,
    per_draft_s=0.0005,
    draft_per_token_s=0.0002,
    draft_per_context_s=1e-6,
    draft_length=4,
)
COSTS = {Role.PLAIN: PLAIN, Role.SPECULATIVE: DRAFTS}


def test_the_losses_of_a_step_in_numbers() -> None:
    """2 sequences of 100 tokens at K = 4: 24 ms plain, 26 without drafts; 8 tokens verified, 7.2 to draft.

    Drafting is 3 ms, 4 x 0.5 in turn, 10 x 0.2 of the tokens and 200 x 0.001 of the context.
    """
    found = losses(COSTS, 2, 100, 4, Gain(2.0, 4.0))

    assert found is not None
    assert pytest.approx(8 / 24) == found.verification
    assert pytest.approx(7.2 / 24) == found.drafting
    assert pytest.approx(2 / 24) == found.rest


@pytest.mark.parametrize("sequences", [1, 4, 16, 64])
@pytest.mark.parametrize(("length", "drafted"), [(1, 1.0), (2, 1.3), (4, 4.0), (4, 0.0)])
def test_the_losses_are_the_whole_difference(sequences: int, length: int, drafted: float) -> None:
    """t(K) / t0 - 1, also where only some steps carry a draft."""
    gain = Gain(1.5, drafted)
    found = losses(COSTS, sequences, 300, length, gain)
    ratio = step_s(cost_at(DRAFTS, length, gain), sequences, 300) / step_s(PLAIN, sequences, 300)

    assert found is not None
    assert pytest.approx(ratio - 1) == found.verification + found.drafting + found.rest


def test_an_engine_that_is_faster_without_drafts_has_a_rest_below_0() -> None:
    """2 ms less than the plain one: the rest may be a gain, the other parts never are."""
    faster = {Role.PLAIN: PLAIN, Role.SPECULATIVE: replace(DRAFTS, base_s=0.018)}
    found = losses(faster, 2, 100, 4, Gain(2.0, 4.0))

    assert found is not None
    assert pytest.approx(-2 / 24) == found.rest


def test_nothing_is_verified_where_nothing_was_drafted() -> None:
    """No step of these prompts found a draft: looking for one is all that it costs."""
    found = losses(COSTS, 2, 100, 4, Gain(1.0, 0.0))

    assert found is not None
    assert 0.0 == found.verification
    # 3 ms, 4 x 0.5 in turn, 2 x 0.2 of the tokens and 0.2 of the context.
    assert pytest.approx(5.6 / 24) == found.drafting


@pytest.mark.parametrize("role", list(Role))
def test_the_losses_of_one_engine_alone_are_unknown(role: Role) -> None:
    """There is nothing to compare with."""
    assert losses({role: COSTS[role]}, 2, 100, 4, Gain(2.0, 4.0)) is None


def test_drafting_is_told_at_the_largest_k_and_one_sequence() -> None:
    """3 ms, 4 x 0.5, 5 x 0.2 and 100 x 0.001; not that of K = 2."""
    gains = {0: NO_DRAFTS, 2: Gain(1.5, 2.0), 4: Gain(2.0, 4.0)}

    assert pytest.approx(0.0061) == drafting_s(DRAFTS, gains, 100)
    assert drafting_s(DRAFTS, {0: NO_DRAFTS}, 100) is None
