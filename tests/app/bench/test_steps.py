"""From engine steps to what a cell has found."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.bench.answer import Answer
from app.bench.steps import drafting, full_steps, together
from autoscaling.profiling.measured import Steps
from deployments.engine import StepRecord


def step(step_s=0.03, sequences=2, started=0, prompt=0, tokens=2, drafted=0, drafts=0, accepted=0):
    return StepRecord(0.0, step_s, sequences, started, prompt, tokens, drafts, drafted, accepted)


PREFILL = step(step_s=0.5, sequences=0, started=2, prompt=20, tokens=0)


def test_only_full_decode_steps_count():
    """Steps with a prefill, with fewer sequences, or whose sequences were not all in the last one, do not."""
    records = [
        PREFILL,
        step(0.9, prompt=5),
        step(0.9, sequences=1),
        step(0.9, started=1),
        step(None),
        *[step(0.03)] * 3,
    ]
    found = full_steps(records, 2, 20)
    assert found is not None
    assert (3, pytest.approx(0.03), 0.0) == (found.count, found.step_s, found.spread_s)


def test_tokens_of_a_step_are_its_sequences_and_its_drafts():
    """With drafts of 1, 2 and 3 tokens a step of two sequences has 4 on average."""
    found = full_steps([PREFILL, step(drafted=1), step(drafted=2), step(drafted=3)], 2, 20)
    assert found is not None
    assert 4.0 == found.tokens


def test_what_comes_out_is_that_of_whole_answers():
    """Also of steps in which the others have ended; a disturbed one and one with a prompt do not count."""
    full = [step(0.03, tokens=2)] * 4 + [step(0.06, tokens=4)] * 2
    last = step(0.02, sequences=1, tokens=2)
    found = full_steps([PREFILL, *full, last, step(0.5, tokens=2), step(0.03, prompt=9, tokens=9)], 2, 20)
    assert found is not None
    assert (pytest.approx(18 / 7), pytest.approx(0.26 / 7)) == (found.decoded, found.decoded_s)


def test_context_grows_with_the_answers():
    """20 of the prompts, 2 first tokens, then 2 more after each step: 22, 24, 26."""
    found = full_steps([PREFILL, step(0.03), step(0.03), step(0.03)], 2, 20)
    assert found is not None
    assert 24.0 == found.context_tokens


def test_the_slowest_and_fastest_quarter_do_not_count():
    """Another program that runs for a while says nothing about a step."""
    found = full_steps([PREFILL, *[step(0.03)] * 13, *[step(0.09)] * 4, step(5.0), *[step(0.001)] * 2], 2, 20)
    assert found is not None
    assert (10, pytest.approx(0.03)) == (found.count, found.step_s)


def test_too_few_steps_are_unknown():
    """Two steps make no mean."""
    assert full_steps([PREFILL, step(), step()], 2, 20) is None


def test_batches_of_one_cell_are_joined_by_their_steps():
    """Three steps of 1 s and one of 5 s are 2 s on average; none at all is unknown."""
    parts = [Steps(3, 1.0, 0.0, 2.0, 10.0), Steps(1, 5.0, 0.0, 6.0, 50.0)]
    assert Steps(4, 2.0, pytest.approx(3**0.5), 3.0, 20.0) == together(parts)
    assert together([]) is None


def test_what_one_of_them_does_not_know_is_unknown_of_all():
    """An older measurement has no tokens that came out."""
    known, unknown = Steps(3, 1.0, 0.0, 2.0, 10.0, decoded=4.0), Steps(1, 1.0, 0.0, 2.0, 10.0)
    both = together([known, replace(unknown, decoded=8.0)])
    assert both is not None
    assert 5.0 == both.decoded
    mixed = together([known, unknown])
    assert mixed is not None
    assert mixed.decoded is None


def test_drafts_that_end_by_themselves_are_not_at_risk_behind_their_end():
    """Of lengths 1, 3, 3 with 1, 0, 2 accepted: 3 reach the first position, one the third."""
    answers = [Answer(True, drafted_by_step=(1, 3), accepted_by_step=(1, 0))]
    answers.append(Answer(True, drafted_by_step=(3,), accepted_by_step=(2,)))
    records = [step(sequences=1, tokens=2, drafts=1, drafted=1, accepted=1)]
    records += [step(sequences=1, tokens=1, drafts=1, drafted=3)]
    records += [step(sequences=1, tokens=3, drafts=1, drafted=3, accepted=2), step(sequences=1, tokens=1)]
    found = drafting(records, answers)
    assert ((3, 1, 1), (2, 1, 0)) == (found.at_risk, found.survived)
    assert (4, 7, 3, 7, 3) == (
        found.request_steps,
        found.tokens,
        found.drafts,
        found.drafted,
        found.accepted,
    )
