"""Finished-request records, each counted once."""

from __future__ import annotations

from dataclasses import astuple

from autoscaling.finished import REMEMBERED, Finished
from tests.autoscaling.request_lines import record


def test_a_repeated_report_adds_nothing() -> None:
    """A record is repeated until a report that carried it was answered."""
    found = Finished()
    assert (record(1),) == found.take("boot", [record(1)])
    assert (record(2),) == found.take("boot", [record(1), record(2)])
    assert () == found.take("boot", [record(2)])


def test_sequences_of_one_prompt_are_all_counted() -> None:
    """They have one id: tokens add up, the request and its prompt count once."""
    three = [record(1), record(1), record(1, generated_tokens=3)]
    found = Finished()
    found.take("boot", three[:1])
    for _ in range(2):
        found.take("boot", three)
    one = record(1)
    assert (1, one.prompt_tokens, 2 * one.generated_tokens + 3) == astuple(found.totals)


def test_another_boot_is_another_request() -> None:
    """A replica that was replaced may say the same numbers again."""
    found = Finished()
    found.take("boot-1", [record(1)])
    assert (record(1),) == found.take("boot-2", [record(1)])
    assert 2 == found.totals.requests


def test_what_is_remembered_is_bounded() -> None:
    """A repeat after 20,000 others counts again; none comes so late."""
    found = Finished()
    found.take("boot", [record(0)])
    for first in range(1, REMEMBERED + 1, 500):
        found.take("boot", [record(number) for number in range(first, first + 500)])
    assert (record(0),) == found.take("boot", [record(0)])
