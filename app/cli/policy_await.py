"""Waiting until the controller says what became of a text of the policy: active, shadow, or refused."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from rich.console import Console
from rich.text import Text

from app.cli import durations
from app.cli.client import NOT_OURS, ODD, NotReachableError, RefusedError
from app.cli.output import printable
from autoscaling.policy_file import Problem

ASK_EVERY_S = 1.0
LINE_EVERY_S = 15.0  # where there is no terminal to redraw
SHA_SHOWN = 12


class Outcome(StrEnum):
    """What became of the text; the first two are what was wanted."""

    ACTIVE = "active"
    SHADOW = "shadow"  # evaluated and recorded, as its own mode says
    REFUSED = "refused"
    NOT_SEEN = "not_seen"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome, and the revision that carries the text, which nothing carries yet while it is not seen."""

    outcome: Outcome
    revision: int | None = None
    message: str = ""  # every problem of a refused one
    problem: Problem | None = None  # the first one, in its place


def verdict(found: dict[str, Any], sha: str) -> Verdict | None:
    """What `GET /admin/policy` says of the text with this hash; None while its newest revision is another."""
    newest = max(found["history"], key=lambda record: int(record["revision"]), default=None)
    if newest is None or newest["sha"] != sha or newest["state"] not in set(Outcome):
        return None
    outcome, revision = Outcome(newest["state"]), int(newest["revision"])
    if outcome is not Outcome.REFUSED:
        return Verdict(outcome, revision)
    error = found["last_error"] or {}
    located = revision == found["seen_revision"] and error.get("line") is not None
    problem = Problem(int(error["line"]), 1, error.get("field") or "", error["message"]) if located else None
    return Verdict(outcome, revision, newest["message"], problem)


@dataclass(frozen=True, slots=True)
class Waiting:
    """How long to wait, and the clock and the rest between two questions, which a test moves."""

    limit_s: float
    clock: Callable[[], float] = time.monotonic
    rest: Callable[[float], None] = time.sleep


def wait(
    ask: Callable[[], dict[str, Any]], sha: str, waiting: Waiting, say: Callable[[str], None]
) -> tuple[Verdict, str]:
    """Ask until there is a verdict or the time is over; the verdict, and what was seen last.

    A service that does not answer, or whose controller restarts, is asked again.
    """
    began = waiting.clock()
    while True:
        try:
            found = ask()
            told = verdict(found, sha)
            seen = _seen(found)
        except (NotReachableError, RefusedError) as error:
            told, seen = None, str(error)
        except ODD:
            told, seen = None, NOT_OURS
        if told is not None:
            return told, seen
        passed = waiting.clock() - began
        if passed >= waiting.limit_s:
            return Verdict(Outcome.NOT_SEEN), seen
        times = f"{durations.show(passed)} of {durations.show(waiting.limit_s)}"
        say(f"waiting for the controller, {times}: {seen}")
        waiting.rest(min(ASK_EVERY_S, waiting.limit_s - passed))


@contextmanager
def told_on(console: Console) -> Iterator[Callable[[str], None]]:
    """Where waiting is told: one line that is redrawn on a terminal, else a line now and then."""
    if console.is_terminal:
        with console.status("") as status:
            yield lambda words: status.update(Text(printable(words)))
        return
    last = float("-inf")

    def line(words: str) -> None:
        nonlocal last
        if time.monotonic() - last >= LINE_EVERY_S:
            last = time.monotonic()
            console.print(Text(printable(words)))

    yield line


def _seen(found: dict[str, Any]) -> str:
    newest, active = found["seen_revision"], found["active_revision"]
    if newest is None:
        return "it has no revision yet"
    shown = next((one["sha"][:SHA_SHOWN] for one in found["history"] if one["revision"] == newest), "unknown")
    return f"its newest revision is {newest} (sha {shown}), active is {'none' if active is None else active}"
