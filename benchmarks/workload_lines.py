"""What an engine said about the drafts of each answer: one JSON line per prompt; pure but for the file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.errors import BenchError


@dataclass(frozen=True, slots=True)
class Line:
    """One answer."""

    id: str  # of the prompt
    tokens: int  # of the answer
    accepted: int | None  # drafted tokens among them; None when the engine had nothing to say about drafts

    @property
    def steps(self) -> int:
        """Every step gives one token of its own beside what it accepts, whether it drafted or not."""
        return max(1, self.tokens - (self.accepted or 0))

    @property
    def tokens_per_step(self) -> float:
        """Over all steps, those without a draft included."""
        return self.tokens / self.steps


def line_of(text: str) -> Line | None:
    """One line; None for an answer that failed, or that has no token.

    Raises ValueError for what is no such line.
    """
    row = json.loads(text)
    if not isinstance(row, dict) or not isinstance(row.get("id"), str):
        raise ValueError(f"no line of an answer: {text[:80]}")  # noqa: TRY004  # the file is wrong
    usage = row.get("usage")
    if row.get("err") or not isinstance(usage, dict):
        return None
    tokens = usage.get("completion_tokens")
    if not isinstance(tokens, int) or tokens < 1:
        return None
    metrics = row.get("m")
    drafts = metrics.get("speculative_decoding") if isinstance(metrics, dict) else None
    accepted = drafts.get("num_accepted_draft_tokens") if isinstance(drafts, dict) else None
    return Line(row["id"], tokens, accepted if isinstance(accepted, int) else None)


def row_of(id_: str, category: str, last: Mapping[str, Any] | None, error: str | None) -> dict[str, Any]:
    """The line to write; `last` is the last event of the answer's stream."""
    seen = last or {}
    return {"id": id_, "cat": category, "usage": seen.get("usage"), "m": seen.get("metrics"), "err": error}


def read_lines(path: Path) -> list[Line]:
    """All good lines of a file; raises BenchError for a file that is not made of such lines."""
    try:
        return lines_of(path.read_text(encoding="utf-8").split("\n"))
    except (OSError, ValueError) as error:
        raise BenchError(f"{path}: {error}: give a file that --save wrote") from None


def lines_of(texts: Iterable[str]) -> list[Line]:
    """All good lines; raises ValueError, also when not one of them tells of drafts."""
    lines = [line for text in texts if text.strip() and (line := line_of(text)) is not None]
    if lines and all(line.accepted is None for line in lines):
        raise ValueError("no answer tells of drafts: they did not come from a speculative pool")
    return lines
