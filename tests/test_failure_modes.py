"""The table of failure modes names tests that are there, and says in each row all that a person needs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.test_cases import functions

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "failure-modes.md").read_text(encoding="utf-8")
HEAD = ["down", "callers see", "still works", "what to do", "shown by"]


def rows() -> list[list[str]]:
    """The cells of every row, without heads and rules."""
    found = [
        [cell.strip() for cell in line.strip("|").split(" | ")]
        for line in PAGE.splitlines()
        if line.startswith("| ")
    ]
    return [row for row in found if row != HEAD]


@pytest.mark.parametrize("row", rows(), ids=lambda row: str(row[0])[:60])
def test_every_row_is_whole_and_shown(row: list[str]) -> None:
    """Five cells, none of them empty, and at least one test that exists with a docstring."""
    assert len(HEAD) == len(row)
    assert all(row)
    shown = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", row[-1])
    assert shown
    assert ", ".join(f"`{file}::{test}`" for file, test in shown) == row[-1], "nothing but tests stands there"
    missing = [f"{file}::{test}" for file, test in shown if not functions(ROOT / file).get(test)]
    assert missing == []


def test_no_failure_has_two_rows() -> None:
    """What is down is named once."""
    names = [row[0] for row in rows()]

    assert len(names) > 30
    assert sorted(set(names)) == sorted(names)


def test_one_sentence_per_line() -> None:
    """Outside of the tables."""
    text = [line for line in PAGE.splitlines() if line and not line.startswith(("|", "#"))]

    assert [line for line in text if re.search(r"[a-z`)]\. [A-Z`]", line)] == []
