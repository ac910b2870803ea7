"""The built-in requests: all kinds, and bodies that the endpoint takes."""

from __future__ import annotations

from collections import Counter

from app.peek import peek
from app.samples import Sample, samples
from tests.app.workload.bodies import CHAT, fields

WORDS = {"code", "summarize", "rag", "structured", "chat", "creative", "translate", "bulk", "other"}


def length(sample: Sample) -> int:
    return sum(len(message["content"] or "") for message in sample.body["messages"])


def test_every_kind_of_work_has_samples() -> None:
    """At least two of each, about fifty in all, each with a name of its own."""
    found = samples()
    assert 48 == len(found) == len({one.id for one in found})
    assert WORDS == {one.workload for one in found}
    assert 2 <= min(Counter(one.workload for one in found).values())


def test_samples_are_bodies_without_a_model() -> None:
    """The endpoint takes each of them, with a limit and a temperature, for whatever model is served."""
    for sample in samples():
        seen = peek(CHAT, fields(sample.body))
        assert (None, False) == (seen.model, seen.stream)
        assert 1 <= (seen.max_tokens or 0) <= 320
        assert 0 <= sample.body["temperature"] <= 1
        assert "class" not in sample.body


def test_some_samples_are_long_and_some_are_conversations() -> None:
    """Texts of 1,500 to 4,000 characters to answer from, and several later turns."""
    long = [one for one in samples() if 1500 <= length(one) <= 4000]
    turns = [
        one for one in samples() if any(message["role"] == "assistant" for message in one.body["messages"])
    ]
    assert {"summarize", "rag"} <= {one.workload for one in long}
    assert max(map(length, samples())) <= 4000
    assert {"code", "summarize", "rag", "chat", "structured"} <= {one.workload for one in turns}
