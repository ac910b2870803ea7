"""Reader of the Azure LLM inference trace of 2023: CSV with a time and two lengths in each line."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from app.simulation.arrival import Arrival
from app.simulation.traces.errors import TraceError
from app.simulation.traces.text import read_text
from autoscaling.types import Tier

COLUMNS: Final = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")


def read_azure(path: Path, *, tier: Tier, workload: str) -> tuple[Arrival, ...]:
    """Every request of the file, sorted by time; `at_s` is 0 for the earliest.

    The file says neither tier nor kind of work, so the caller does.  Times without a zone are UTC and are
    cut to microseconds.  Raises TraceError for what is no such file and for the first line that cannot be
    used; empty lines hold nothing and are passed over.
    """
    header, *lines = read_text(path).split("\n")
    if tuple(name.strip() for name in header.split(",")) != COLUMNS:
        raise TraceError(
            f"{path}:1: the first line is {header[:80]!r} and not {','.join(COLUMNS)!r}: "
            "name a CSV file of the Azure LLM inference trace"
        )
    found: list[tuple[float, int, int]] = []
    for number, line in enumerate(lines, 2):
        if not line.strip():
            continue
        place, row = f"{path}:{number}", line.split(",")
        if len(row) != len(COLUMNS):
            raise TraceError(f"{place}: {len(row)} fields and not {len(COLUMNS)}: mend or remove the line")
        found.append((_time(row[0], place), _tokens(row[1], 1, place), _tokens(row[2], 2, place)))
    if not found:
        raise TraceError(f"{path}: there is no request in it: name a file that has some")
    found.sort(key=lambda one: one[0])
    first = found[0][0]
    return tuple(
        Arrival(round(at - first, 6), tier, workload, prompt, answer) for at, prompt, answer in found
    )


def _time(text: str, place: str) -> float:
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise TraceError(
            f"{place}: {COLUMNS[0]} is {text!r}: write a time such as 2023-11-16 18:15:46.680590"
        ) from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _tokens(text: str, column: int, place: str) -> int:
    stripped = text.strip()
    value = int(stripped) if stripped.isascii() and stripped.isdigit() else 0
    if value < 1:
        raise TraceError(
            f"{place}: {COLUMNS[column]} is {text!r}: a request has at least one token, as a whole number; "
            "mend or remove the line"
        )
    return value
