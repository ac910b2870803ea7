"""`tests/cases.toml`: each case names tests that exist, and each test that names a case is listed there."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
CASES: dict[str, dict[str, Any]] = tomllib.loads((ROOT / "tests" / "cases.toml").read_text(encoding="utf-8"))


@cache
def functions(file: Path) -> dict[str, str]:
    """The test functions of a file, with their docstrings."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {
        node.name: ast.get_docstring(node) or ""
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    }


@pytest.mark.parametrize("case", CASES)
def test_every_test_of_a_case_exists(case: str) -> None:
    """A case has tests, and each is `file::function` of this repository."""
    wrong = []
    for test in CASES[case]["tests"]:
        file, _, function = test.partition("::")
        if not (ROOT / file).is_file() or function not in functions(ROOT / file):
            wrong.append(test)

    assert CASES[case]["tests"]
    assert wrong == []


@pytest.mark.parametrize("case", CASES)
def test_a_case_says_what_is_right(case: str) -> None:
    """One sentence each, and no other keys."""
    assert set(CASES[case]) <= {"what", "tests", "open"}
    assert CASES[case]["what"].endswith(".")


def test_a_test_that_names_a_case_is_listed() -> None:
    """A docstring that begins with `Case A1` is an entry of that case; cases outside the file are free."""
    missing = []
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        for function, words in functions(file).items():
            named = re.match(r"Cases? ([A-Z]\d+(?:, [A-Z]\d+)*)", words)
            for case in named[1].split(", ") if named else ():
                test = f"{file.relative_to(ROOT)}::{function}"
                if case in CASES and test not in CASES[case]["tests"]:
                    missing.append(f"{case}: {test}")

    assert missing == []
