"""Engines' records on their way to their request: names, repeats, bounds."""

from __future__ import annotations

import pytest

from autoscaling.request_unmatched import MOST, Unmatched, engine_id
from tests.autoscaling.request_lines import record


@pytest.mark.parametrize(
    ("request_id", "expected"),
    [
        ("chatcmpl-req-1-abc", "req-1-abc"),
        ("chatcmpl-a-0", "a-0"),  # a chat has one prompt, and no number
        ("cmpl-req-1-abc-0", "req-1-abc"),
        ("cmpl-req-1-012345-11", "req-1-012345"),
        ("cmpl-odd", "cmpl-odd"),
        ("", ""),
    ],
)
def test_the_engines_name_holds_ours(request_id: str, expected: str) -> None:
    """As vLLM and the simulated engine make it of the header."""
    assert expected == engine_id(request_id)


def test_sequences_of_one_prompt_have_one_name() -> None:
    """All of them are kept, also with equal numbers."""
    found = Unmatched()
    assert {"req-1-abc"} == found.take("a", [record(1), record(1), record(1, generated_tokens=3)])
    assert {"req-2-abc"} == found.take("a", [record(2)])
    assert (3, 1, 4) == (len(found.of("req-1-abc", "a")), len(found.of("req-2-abc", "a")), len(found))


def test_a_replica_that_lost_the_request_is_not_asked() -> None:
    """Two replicas may have run it; the one that answered counts."""
    found = Unmatched()
    found.take("a", [record(1, finish_reason="abort")])
    found.take("b", [record(1)])
    assert [record(1)] == found.of("req-1-abc", "b")
    assert 2 == len(found.of("req-1-abc", None))
    found.drop("req-1-abc")
    assert 0 == len(found)


def test_the_oldest_are_forgotten() -> None:
    """At most 10,000 wait."""
    found = Unmatched()
    for first in range(0, MOST + 5, 500):
        found.take("a", [record(n) for n in range(first, min(first + 500, MOST + 5))])
    assert MOST == len(found)
    assert [] == found.of("req-4-abc", "a")
    assert [record(5)] == found.of("req-5-abc", "a")
