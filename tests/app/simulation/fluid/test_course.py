"""How many steps answers take."""

from __future__ import annotations

import numpy as np
import pytest

from app.simulation.acceptance import Acceptance
from app.simulation.fluid.course import course_of, stays_of, steps_of
from app.simulation.fluid.load import Answers, Flow
from autoscaling.types import Tier
from tests.app.simulation.engines import ALWAYS

HALF = Acceptance((0.5,), spread=0.2)


def answers(*tokens: float) -> Answers:
    return Answers(np.array(tokens), np.full(len(tokens), 1 / len(tokens)))


def test_without_drafts_each_further_token_is_a_step() -> None:
    """The first token comes with the prompt."""
    assert [[0.0, 1.0, 99.0]] == steps_of(np.array([1.0, 2.0, 100.0]), ALWAYS, 0, 1).tolist()


def test_drafts_that_always_hold_bring_all_their_tokens() -> None:
    """Three tokens a step: the last step may bring some that are not wanted, however long the answer."""
    found = steps_of(np.array([1.0, 2.0, 4.0, 5.0, 3001.0]), ALWAYS, 2, 1)

    assert 8 == len(found)
    assert [0.0, 1.0, 1.0, 2.0, 1000.0] == found[0].tolist() == found[-1].tolist()


def test_requests_differ_and_their_mean_is_the_acceptance() -> None:
    """One token and a half a step on average; the best eighth needs fewer steps than the worst."""
    found = steps_of(np.array([201.0]), HALF, 1, 1)[:, 0]

    assert 200 / 1.5 == pytest.approx(found.mean(), rel=0.03)
    assert found.tolist() == sorted(found)
    assert 1.15 < found[-1] / found[0] < 2.0


def test_points_stand_for_all_answers_but_single_tokens() -> None:
    """Half of the answers have no time per token; the others keep their mean."""
    found = course_of(answers(1, 1, 40, 60), HALF, (1,), 1)

    assert 0.5 == pytest.approx(found.shares.sum())
    assert 49.0 == pytest.approx(found.shares @ found.further / 0.5)


def test_stays_keep_their_mean() -> None:
    """The share that has not ended, summed over the time, is the mean stay; here of 9 and of 99 steps."""
    stays = stays_of([Flow(Tier.BATCH, "chat", answers(10, 100))], [ALWAYS], (0,), 1)

    assert 1.0 == stays.bin_steps
    assert 54.0 == pytest.approx(200.0 - stays.ended(200.0)[0])
    assert 5000.0 - 54.0 == pytest.approx(stays.ended(5000.0)[0])
    assert [0.0, 0.0] == [stays.ended(-1.0)[0], stays.ended(0.0)[0]]
    assert 0.5 * 5.5 == pytest.approx(stays.ended(14.5)[0])


def test_bins_grow_with_the_longest_answer() -> None:
    """3,840 steps in 384 bins; the mean stays."""
    stays = stays_of([Flow(Tier.BATCH, "chat", answers(6, 3841))], [ALWAYS], (0,), 1)

    assert 10.0 == stays.bin_steps
    assert (5 + 3840) / 2 == pytest.approx((500.0 - stays.ended(500.0)[0]) * 10.0)
