"""Which prompts both engines take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from app.bench.prompt import Prompt, PromptsError
from app.bench.prompts import for_both

PATH = Path("mine.jsonl")


def prompt(number: int, **body: Any) -> Prompt:
    """One line of a file."""
    return Prompt(
        f"line-{number}", "chat", {"messages": [{"role": "user", "content": "Hi"}], **body}, "short"
    )


def test_what_a_speculative_engine_refuses_is_left_out_and_told() -> None:
    """Only one of the two engines would answer it; default values ask for nothing."""
    told: list[str] = []
    given = (
        prompt(1, temperature=0.5),
        prompt(2, min_p=0.05),
        prompt(3, min_p=0.0, logit_bias={}),
        prompt(4, response_format={"type": "json_object"}, min_p=0.1),
        prompt(5, tool_choice="auto"),
    )
    found = for_both(given, PATH, told.append)

    assert ["line-1", "line-3", "line-5"] == [one.id for one in found]
    assert [
        "mine.jsonl: no speculative engine serves what these ask for, the number of lines behind each: "
        "min_p (2), response_format (1); these lines are left out, and the router sends such requests to "
        "the plain pool"
    ] == told


def test_without_anything_left_there_is_nothing_to_compare() -> None:
    """The error names what the lines ask for."""
    with pytest.raises(PromptsError, match=r"min_p \(1\): nothing is left to compare"):
        for_both((prompt(1, min_p=0.05),), PATH, str)


def test_nothing_is_told_where_nothing_is_left_out() -> None:
    """The usual case."""
    told: list[str] = []

    assert (prompt(1),) == for_both((prompt(1),), PATH, told.append)
    assert [] == told
