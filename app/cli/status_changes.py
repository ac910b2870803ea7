"""What has changed capacity, as lines of the text status: overrides and moves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from app.cli import durations
from app.cli.output import labelled, show, show_clock
from app.cli.override import forced

FREE = "budget"  # where a move's replicas come from or go to when it is no pool
MOVES_SHOWN = 5


def changes(found: dict[str, Any]) -> Iterator[RenderableType]:
    """Overrides in force and the newest moves as lines; nothing when there are none."""
    today, moves = found["generated_at"], found["moves"] or []
    rows = [("override", Text(_override(item, today))) for item in found["overrides"] or ()]
    rows += [("moves", Text(_move(item, today))) for item in moves[:MOVES_SHOWN]]
    if len(moves) > MOVES_SHOWN:
        rows.append(("", Text(f"{len(moves) - MOVES_SHOWN} more: -o json")))
    if rows:
        yield labelled(rows)


def _override(item: dict[str, Any], today: str) -> str:
    words = f"{item['id']}: {forced(item)} until {show_clock(item['until'], today)}"
    return f"{words}, by {show(item['by'])}: {item['reason']}"


def _move(item: dict[str, Any], today: str) -> str:
    """Such as `m4 draining 2m: plain -> speculative, 1, override; waits for 1 replica of plain to drain`."""
    verb, stage = "waits", f"{item['state']} {durations.show(item['age_seconds'])}"
    if item["duration_seconds"] is not None:
        took = durations.show(item["duration_seconds"])
        stage = f"{item['state']} after {took}, begun {show_clock(item['at'], today)}"
        verb = "waited"  # a move that was given up keeps what it waited for
    waits = f"; {verb} for {item['waiting_for']}" if item["waiting_for"] else ""
    return f"{item['id']} {stage}: {_sizes(item)}, {item['reason']}{waits}"


def _sizes(item: dict[str, Any]) -> str:
    """Where to and how many; both sizes of each pool where one number does not say it."""
    before, after = item["before"] or {}, item["after"] or {}
    changed = [after[pool] - before[pool] for pool in before if after[pool] != before[pool]]
    if len(changed) > 1 and sum(changed) != 0:
        return ", ".join(f"{pool} {before[pool]} -> {after[pool]}" for pool in before)
    return f"{item['from'] or FREE} -> {item['to'] or FREE}, {show(item['count'])}"
