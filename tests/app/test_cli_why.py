"""`twinpool why`: the newest or a named decision or move, in words or as it was recorded."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.app.canned import refusal, run, serving

DECISION: dict[str, Any] = {
    "number": 41,
    "wall": 1772359200.0,
    "reason": "cooling_down",
    "summary": "speculative is short, the last move has just ended",
    "targets": {"speculative": 2, "plain": 2},
    "plan": {"speculative": 2, "plain": 2},
    "budget": 4,
    "steps": [
        {"name": "want", "reason": "shortfall", "targets": {"speculative": 3, "plain": 1}, "detail": ""}
    ],
    "signals": {
        "speculative": {"demand": 30.0, "capacity": 16.0, "utilization": 1.875, "replicas": 2},
        "plain": {"demand": None, "capacity": None, "utilization": None, "replicas": 2},
    },
    "revision": 7,
    "hold": None,
    "move": None,
    "begun": False,
}
MOVE: dict[str, Any] = {
    "id": "m-3",
    "at": 100.0,
    "wall": 1772359200.0,
    "source": "plain",
    "receiver": "speculative",
    "count": 1,
    "reason": "shortfall",
    "before": {"speculative": 2, "plain": 2},
    "after": {"speculative": 3, "plain": 1},
    "state": "draining",
    "revision": 7,
    "drained_at": None,
    "started_at": None,
    "ended_at": None,
    "waiting_for": "2 answers of plain#abc",
}


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ([], "/admin/why/decision"),
        (["decision"], "/admin/why/decision"),
        (["decision", "41"], "/admin/why/decision?id=41"),
        (["decision", "4 1&kind=x"], "/admin/why/decision?id=4%201%26kind%3Dx"),
    ],
)
def test_a_decision_in_words(arguments: list[str], path: str) -> None:
    """The newest without an id; what was seen, each step, what was decided, what it waits for."""
    with serving({("GET", path): (200, {"kind": "decision", "record": DECISION})}) as service:
        done = run("why", *arguments, url=service.url)

    assert 0 == done.exit_code
    assert done.stdout.startswith("decision 41 at 2026-03-01T10:00:00")
    assert "utilization 1.88" in done.stdout
    assert "demand unknown" in done.stdout
    assert "decided: speculative 2, plain 2, because" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("waits for: ")


@pytest.mark.parametrize(
    ("arguments", "path"),
    [(["move"], "/admin/why/move"), (["move", "m-3"], "/admin/why/move?id=m-3")],
)
def test_a_move_in_words(arguments: list[str], path: str) -> None:
    """From where to where, why, and what it is waiting for."""
    with serving({("GET", path): (200, {"kind": "move", "record": MOVE})}) as service:
        done = run("why", *arguments, url=service.url)

    assert 0 == done.exit_code
    assert "move m-3: 1 replica from plain to speculative\n" in done.stdout
    assert "waits for: 2 answers of plain#abc\n" in done.stdout


@pytest.mark.parametrize("form", [["-o", "json"], ["--json"]])
def test_the_record_as_json(form: list[str]) -> None:
    """For programs the record is passed on whole."""
    answer = {"kind": "move", "record": MOVE}
    with serving({("GET", "/admin/why/move"): (200, answer)}) as service:
        done = run("why", "move", *form, url=service.url)

    assert answer == json.loads(done.stdout)


def test_a_record_that_is_not_there() -> None:
    """An unknown id is a finding, in the service's words."""
    missing = (404, refusal("not_found", "there is no move m-9"))
    with serving({("GET", "/admin/why/move?id=m-9"): missing}) as service:
        done = run("why", "move", "m-9", url=service.url)

    assert (1, "") == (done.exit_code, done.stdout)
    assert "error: there is no move m-9\n" in done.stderr


def test_only_decisions_and_moves_have_a_reason() -> None:
    """Another word is wrong usage: exit code 2, with the two that there are."""
    done = run("why", "request")

    assert (2, "") == (done.exit_code, done.stdout)
    assert "'decision', 'move'" in done.stderr
