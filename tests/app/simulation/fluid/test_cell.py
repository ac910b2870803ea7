"""Replicas that share their load: Little's law, the pace of a step, and nobody lost."""

from __future__ import annotations

import numpy as np
import pytest

from app.simulation.fluid.coming import Coming
from app.simulation.fluid.load import load_of
from autoscaling.types import Role, Tier
from tests.app.simulation.engines import engine_profile
from tests.app.simulation.fluid.cells import ONE_FLOW, cell, feed
from tests.app.simulation.services import steady


def test_nobody_is_lost() -> None:
    """Those who came have ended or are in flight, through moves of the clock far beyond the held bins."""
    one = cell()
    ended = feed(one, 2.0, 300)

    assert 600.0 == pytest.approx(ended + one.total, abs=1e-6)
    assert 600.0 == pytest.approx(ended + feed(one, 0.0, 60), abs=1e-6)
    assert 0.0 == pytest.approx(one.total, abs=1e-6)


def test_a_constant_load_gives_the_batch_of_the_closed_form() -> None:
    """100 steps for each answer, of 10 ms and 1 ms for each sequence in it, prompts take 2 % of the time.

    With n sequences n / (100 x (10 + n) ms) x 0.98 end a second, and 2 come: one birth and death after the
    other gives n a negative binomial law of 11 and a = 2 x 100 x 1 ms / 0.98 = 0.204, mean 11 a / (1 - a) =
    2.82.  So 2.82 / 200 = 14.1 ms is a step.  Before it a request waits for its first token: 7 ms for the
    rest of a step and 23 ms for its own one, 10 of them for its prompt, which makes 0.06 sequences more.
    """
    one = cell()
    feed(one, 2.0, 100)

    assert 2.88 == pytest.approx(one.total, rel=0.03)
    assert 0.0141 == pytest.approx(one.pace.step_s, rel=0.03)
    assert 0.02 == pytest.approx(one.pace.prompt_share)


@pytest.mark.parametrize("seconds", [0.1, 0.5, 2.0, 10.0])
def test_the_batch_does_not_depend_on_the_tick(seconds: float) -> None:
    """Also where most of those who come in a tick are gone at its end: the batch is that of above."""
    one = cell()
    feed(one, 2.0 * seconds, round(100 / seconds), seconds)

    assert 2.88 == pytest.approx(one.total, rel=0.03)


def test_replicas_share_evenly() -> None:
    """A hundred replicas with ten times the load are as fast as ten, and ten are faster than one alone.

    For requests go to the emptier ones.
    """
    alone, ten, hundred = cell(), cell(replicas=10), cell(replicas=100)
    feed(alone, 2.0, 50)
    feed(ten, 20.0, 50)
    feed(hundred, 200.0, 50)

    assert 10 * ten.total == pytest.approx(hundred.total)
    assert ten.pace.step_s == pytest.approx(hundred.pace.step_s)
    assert ten.total / 10 < alone.total


def test_drafts_shorten_the_stay() -> None:
    """Three tokens a step: 34 steps in place of 100, each 2 ms dearer and 2 ms more for each sequence.

    As above, of 12 + 3 n ms: a = 2 x 34 x 3 ms / 0.98 = 0.208, of 12 / 3 + 1 = 5, mean 5 a / (1 - a) = 1.32.
    The first token takes 7 ms and 26 ms, which makes 0.07 more.
    """
    one = cell(role=Role.SPECULATIVE)
    feed(one, 2.0, 100)

    assert 1.38 == pytest.approx(one.total, rel=0.03)


def test_what_does_not_fit_waits_inside_the_engine() -> None:
    """Memory for ten sequences of 60 tokens, and more load than those ten can serve: steps stay short."""
    one = cell(engines=engine_profile(kv_tokens=dict.fromkeys(Role, 600)))
    feed(one, 6.0, 100)

    assert 10.0 < one.total
    assert 0.0225 >= one.pace.step_s
    assert 1.0 < one.pace.queued_s


def test_prompts_that_come_too_fast_wait_for_their_turn() -> None:
    """A thousand tokens of prompt take a second; with 1.5 a second more and more are not computed yet."""
    load = load_of(steady(Tier.BATCH, 1, 10, prompt=1000, answer=11))
    one = cell(load=load)
    feed(one, 0.3, 50, prompt=1000.0)
    calm = one.pace.backlog
    feed(one, 1.5, 50, prompt=1000.0)

    assert 0.0 == pytest.approx(calm)
    assert 20.0 < one.pace.backlog < 30.0
    assert 20.0 < one.pace.fixed_s
    assert 0.9 < one.pace.prompt_share <= 0.97


def test_a_part_of_the_replicas_takes_its_part_of_the_load() -> None:
    """Two of ten go with a fifth of the sequences; both parts end all of theirs."""
    ten = cell(replicas=10)
    feed(ten, 20.0, 50)
    before = ten.total
    two = ten.split(2)

    assert (8, 2) == (ten.replicas, two.replicas)
    assert before / 5 == pytest.approx(two.total)
    assert before / 5 == pytest.approx(feed(two, 0.0, 30), abs=1e-6)
    assert 4 * before / 5 == pytest.approx(feed(ten, 0.0, 30), abs=1e-6)


def test_replicas_that_join_take_a_share_at_once() -> None:
    """Twice the replicas: half the batch for each, after a while.

    A replica alone would have 2.88 sequences, for it takes whoever comes.  If all ten had n at any time it
    would be n = 0.204 (10 + n), 2.56, and 0.06 that wait for a first token.  They are between the two.
    """
    one = cell(replicas=5)
    feed(one, 20.0, 50)
    crowded = one.pace.step_s
    one.join(5)
    feed(one, 20.0, 50)

    assert one.pace.step_s < crowded
    assert 2.62 < one.total / 10 < 2.88


def test_draft_lengths_follow_the_batch() -> None:
    """No drafts from three sequences on: under load the clock goes as if each step brought a token."""
    few, many = (cell(role=Role.SPECULATIVE, lengths=(2, 2, 2, 0)) for _ in range(2))
    feed(few, 0.5, 50)
    feed(many, 8.0, 100)

    assert 0.012 + 0.003 * (few.total + few.uneven.crowding) == pytest.approx(few.pace.step_s, rel=0.05)
    assert 3 * (0.010 + (many.total + many.uneven.crowding) / 1000) == pytest.approx(
        many.pace.step_s, rel=0.12
    )


def test_the_first_token_comes_after_the_step_in_progress_and_the_next() -> None:
    """Idle: only the prompt's own step, 10 ms, 1 ms for the sequence and 10 ms for ten tokens of prompt."""
    one = cell(load=ONE_FLOW)
    feed(one, 0.001, 20)

    assert 0.021 == pytest.approx(one.pace.first_s, rel=0.02)


def test_a_tick_without_anybody_goes_on() -> None:
    """The clock of an idle pool makes idle steps."""
    one = cell()
    one.foresee(1.0)
    gone = one.advance(1.0, Coming(np.zeros(1), np.zeros(1), 1.0))

    assert [0.0] == gone.tolist()
    assert 1 / 0.011 == pytest.approx(one.clock)
