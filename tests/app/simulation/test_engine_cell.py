"""One measured cell in the simulated engine, read as the bench reads a real one."""

from __future__ import annotations

import pytest

from app.simulation.acceptance import Acceptance
from app.simulation.engine_cell import Asked, Pace, simulated
from autoscaling.profiling.measured import Cell
from autoscaling.routing_rules import StepCost
from autoscaling.types import Role
from tests.app.simulation.engines import engine_profile

PLAIN = Cell(Role.PLAIN, 0, 4, "chat")
DRAFTS = Cell(Role.SPECULATIVE, 2, 2, "chat")


def test_a_plain_batch_has_the_pace_of_its_steps() -> None:
    """10 ms and 1 ms for each of four sequences: 4 tokens in 14 ms."""
    found = simulated(engine_profile(), PLAIN, Asked(100, 10, 8))

    assert Pace(pytest.approx(4 / 0.014), pytest.approx(0.014), 4.0, 1.0, pytest.approx(0.014)) == found


def test_a_batch_begins_together_however_long_its_prompts_are() -> None:
    """They lie in the prefix cache: four prompts of 1,000 tokens begin in one step of 64 tokens."""
    long = simulated(engine_profile(max_batched_tokens=64), PLAIN, Asked(1000, 10, 8))

    assert (pytest.approx(0.014), pytest.approx(0.014)) == (long.step_s, long.tpot_s)


def test_drafts_that_are_all_accepted_bring_three_tokens() -> None:
    """12 ms and 1 ms for each of 2 x 3 tokens; nine tokens after the first take three steps."""
    found = simulated(engine_profile(), DRAFTS, Asked(100, 10, 4))

    expected = Pace(pytest.approx(6 / 0.018), pytest.approx(0.018), 6.0, 3.0, pytest.approx(0.006))
    assert expected == found


def test_the_context_makes_steps_longer() -> None:
    """4 x 100 tokens of context and half of the answers at 10 us each."""
    costs = {Role.PLAIN: StepCost(0.01, 0.001, per_context_s=1e-5)}
    found = simulated(engine_profile(costs=costs), PLAIN, Asked(100, 21, 4))

    assert pytest.approx(0.014 + 4 * 1e-5 * 110.5, abs=1e-5) == found.step_s


def test_the_same_cell_comes_to_the_same() -> None:
    """Another seed draws other drafts."""
    profile = engine_profile(Acceptance((0.6, 0.4), draft_rate=0.5, spread=0.5))
    first, again, other = (simulated(profile, DRAFTS, Asked(50, 40, 64, seed)) for seed in (1, 1, 2))

    assert first == again
    assert other != first


def test_answers_without_full_steps_are_refused() -> None:
    """Two tokens each: one step is no mean."""
    with pytest.raises(ValueError, match=r"2 sequences of 2 tokens at K = 2: .*longer answers"):
        simulated(engine_profile(), DRAFTS, Asked(100, 2, 4))


def test_full_steps_alone_are_told_where_a_measurement_knows_no_more() -> None:
    """Answers that end apart thin the batch: the pace of whole ones is below that of full steps."""
    profile = engine_profile(Acceptance((0.6, 0.4), draft_rate=0.5, spread=0.5))
    whole, full = (simulated(profile, DRAFTS, Asked(50, 40, 64, whole=one)) for one in (True, False))

    assert whole.tokens_per_s < full.tokens_per_s
    assert whole.step_s == full.step_s
