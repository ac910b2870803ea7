"""What drafts have given each class."""

from __future__ import annotations

from dataclasses import replace

import pytest

from autoscaling.request_gain import FEWEST_STEPS, MOST_CLASSES, SPAN_S, Gains
from autoscaling.request_record import Measured, RequestRecord
from autoscaling.types import Role
from tests.autoscaling.request_lines import line


def answer(
    tokens: int, accepted: int | None, workload: str = "code", pool: Role = Role.SPECULATIVE
) -> RequestRecord:
    drafts = None if accepted is None else {"num_accepted_draft_tokens": accepted, "num_spec_steps": 1}
    asked = replace(line(1), workload=workload, pool=pool, acceptance=drafts)
    return RequestRecord(asked, "i", Measured(10, tokens, "stop", 0.0, 0.1, 1.0, None))


def test_tokens_over_steps_with_and_without_a_draft() -> None:
    """1,000 tokens of which 400 were drafts took 600 steps."""
    gains = Gains()
    gains.take(answer(1000, 400), 0.0)
    assert {"code": 1.667} == gains.tokens_per_step(0.0)


def test_too_few_steps_say_nothing() -> None:
    """A class is left out until 600 steps are known, and again when they are an hour old."""
    gains = Gains()
    gains.take(answer(FEWEST_STEPS - 1, 0), 0.0)
    assert {} == gains.tokens_per_step(0.0)
    gains.take(answer(1, 0), 0.0)
    assert {} == gains.tokens_per_step(0.5)  # what was said is kept for a second
    assert {"code": 1.0} == gains.tokens_per_step(1.0)
    assert {} == gains.tokens_per_step(SPAN_S + 5.0)


@pytest.mark.parametrize(
    "record",
    [
        answer(1000, None),  # the caller did not ask for usage
        answer(1000, 400, pool=Role.PLAIN),
        answer(1000, 1000),  # numbers that contradict each other
        answer(1000, -1),
        replace(answer(1000, 400), measured=None),
        replace(answer(1000, 400), line=replace(answer(1000, 400).line, sequences=2)),
    ],
)
def test_what_is_not_known_is_not_counted(record: RequestRecord) -> None:
    """Only one sequence of the speculative pool whose drafts and tokens are both known."""
    gains = Gains()
    gains.take(record, 0.0)
    assert {} == gains.tokens_per_step(0.0)


def test_classes_are_bounded() -> None:
    """Words of another version cannot fill the memory."""
    gains = Gains()
    for number in range(MOST_CLASSES + 5):
        gains.take(answer(1000, 0, workload=f"class-{number}"), 0.0)
    assert MOST_CLASSES == len(gains.tokens_per_step(0.0))
