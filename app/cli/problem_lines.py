"""Problems of a policy as lines for people, as JSON, and as annotations of a code review."""

from __future__ import annotations

from typing import Any

from app.cli.output import printable
from autoscaling.policy_file import Problem


def line(file: str, problem: Problem, kind: str = "") -> str:
    """`FILE:LINE:COLUMN: field: message`, the form that editors can jump to."""
    field = f"{problem.field}: " if problem.field else ""
    return printable(f"{file}:{problem.line}:{problem.column}: {kind}{field}{problem.message}")


def annotation(file: str, problem: Problem, level: str) -> str:
    """One workflow command of GitHub Actions; `level` is error or warning."""
    words = f"{problem.field}: {problem.message}" if problem.field else problem.message
    where = f"file={_property(file)},line={problem.line},col={problem.column}"
    return f"::{level} {where}::{_data(words)}"


def file_annotation(file: str, message: str) -> str:
    """An error that has no line, such as a file that cannot be read."""
    return f"::error file={_property(file)}::{_data(message)}"


def as_json(problem: Problem) -> dict[str, Any]:
    """A problem for programs."""
    return {
        "line": problem.line,
        "column": problem.column,
        "field": problem.field,
        "message": problem.message,
    }


def _data(text: str) -> str:
    return printable(text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
