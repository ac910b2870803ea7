"""One answer: its time per token, and whether it kept a promise."""

from __future__ import annotations

import pytest

from app.demo.answers import Answer, Objective, in_time
from tests.app.demo.made import answer, cut, failed, refused


@pytest.mark.parametrize(
    ("expected", "one"),
    [
        (0.1, answer(tokens=11, stream_s=1.0)),
        (None, answer(tokens=None)),
        (None, answer(tokens=1)),
        (None, answer(stream_s=None)),
    ],
)
def test_the_time_per_token_leaves_the_first_token_out(expected: float | None, one: Answer) -> None:
    """Eleven tokens have ten gaps; without usage, with one token, or in one piece it is unknown."""
    assert expected == one.tpot_s


@pytest.mark.parametrize(
    ("expected", "one"),
    [
        (True, answer(ttft_s=1.0, tokens=11, stream_s=1.0)),
        (False, answer(ttft_s=1.01)),
        (False, answer(stream_s=1.1)),
        (True, answer(tokens=1, stream_s=None)),
        (False, answer(tokens=1, ttft_s=2.0)),
        (None, answer(tokens=None)),
        (None, answer(stream_s=None)),
        (False, answer(tokens=None, ttft_s=2.0)),
        (False, refused()),
        (False, refused(again=True)),
        (False, failed()),
        (None, cut()),
    ],
)
def test_an_objective_is_met_in_both_times(expected: bool | None, one: Answer) -> None:
    """One miss is a miss; the unknown is not judged; one token is judged by its first byte alone."""
    assert expected == in_time(one, Objective(ttft_s=1.0, tpot_s=0.1))


def test_only_what_is_promised_is_judged() -> None:
    """A slow stream keeps a promise about the first token."""
    assert True is in_time(answer(stream_s=100.0), Objective(ttft_s=1.0))
    assert True is in_time(answer(ttft_s=100.0), Objective(tpot_s=0.1))


def test_every_outcome_is_one_of_four() -> None:
    """Answered, refused, failed, cut: each answer is exactly one of them."""
    kinds = [
        (one.answered, one.refused, one.failed, one.cut) for one in (answer(), refused(), failed(), cut())
    ]

    assert [
        (True, False, False, False),
        (False, True, False, False),
        (False, False, True, False),
        (False, False, False, True),
    ] == kinds
