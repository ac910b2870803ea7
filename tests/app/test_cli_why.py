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


REQUEST: dict[str, Any] = {
    "id": "req-7",
    "engine_id": "req-7-ab12cd",
    "wall": 1772359200.0,
    "tier": "interactive",
    "tier_requested": "interactive",
    "outcome": "ok",
    "status": 200,
    "pool": "speculative",
    "replica": "speculative#abc",
    "reason": "tier_interactive",
    "workload": "cha\x1b[31mt",
}


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        (["req-7"], "/admin/why/request?id=req-7"),
        (["request", "req-7"], "/admin/why/request?id=req-7"),
        (["request", "move"], "/admin/why/request?id=move"),
        (["request"], "/admin/why/request"),
        (["4 1&kind=x"], "/admin/why/request?id=4%201%26kind%3Dx"),
    ],
)
def test_a_request_in_words(arguments: list[str], path: str) -> None:
    """By its id alone, or behind the word; the newest without one; nothing that a terminal would obey."""
    with serving({("GET", path): (200, {"kind": "request", "record": REQUEST})}) as service:
        done = run("why", *arguments, url=service.url)

    assert 0 == done.exit_code
    assert done.stdout.startswith("request req-7 at 2026-03-01T10:00:00Z, inside the engine req-7-ab12cd\n")
    assert "route: speculative, replica speculative#abc, because " in done.stdout
    assert "class cha\\x1b[31mt" in done.stdout


def test_a_request_as_json() -> None:
    """The record is passed on whole."""
    answer = {"kind": "request", "record": REQUEST}
    with serving({("GET", "/admin/why/request?id=req-7"): (200, answer)}) as service:
        done = run("why", "req-7", "--json", url=service.url)

    assert answer == json.loads(done.stdout)


def test_a_request_that_is_not_there() -> None:
    """A finding, in the service's words."""
    missing = (404, refusal("not_found", "no request req-9 is known"))
    with serving({("GET", "/admin/why/request?id=req-9"): missing}) as service:
        done = run("why", "req-9", url=service.url)

    assert (1, "") == (done.exit_code, done.stdout)
    assert "error: no request req-9 is known\n" in done.stderr


def test_an_id_needs_one_of_the_words() -> None:
    """Two words whose first is no kind are wrong usage: exit code 2, with the three that there are."""
    done = run("why", "weather", "7")

    assert (2, "") == (done.exit_code, done.stdout)
    assert "weather is none of decision, move, request" in done.stderr


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"kind": "request", "record": None},
        {"kind": "request", "record": []},
        {"record": "text"},
        {"kind": "move", "record": MOVE},
        {"kind": ["request"], "record": REQUEST},
    ],
)
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_an_answer_that_holds_no_such_record(answer: dict[str, Any], form: list[str]) -> None:
    """It cannot be read: exit code 2, one line and what to do."""
    with serving({("GET", "/admin/why/request"): (200, answer)}) as service:
        done = run("why", "request", *form, url=service.url)

    assert (2, "") == (done.exit_code, done.stdout)
    assert (
        "error: the answer holds no request that can be read\n"
        "mend: look whether the service is of this version of twinpool; `twinpool status` shows how it is\n"
    ) == done.stderr


@pytest.mark.parametrize(
    "odd",
    [{"wall": "x"}, {"wall": []}, {"wall": 10**400}, {"waited_s": 10**400}, {"waited_s": float("nan")}],
)
def test_odd_values_are_unknown(odd: dict[str, Any]) -> None:
    """The rest is explained."""
    with serving({("GET", "/admin/why/request"): (200, {"record": REQUEST | odd})}) as service:
        done = run("why", "request", url=service.url)

    assert 0 == done.exit_code
    assert ("an unknown time" in done.stdout) == ("wall" in odd)
    assert "waited: unknown in the ingress\n" in done.stdout


def test_a_number_that_json_does_not_have() -> None:
    """It is not passed on."""
    answer = {"kind": "request", "record": REQUEST | {"waited_s": float("nan")}}
    with serving({("GET", "/admin/why/request"): (200, answer)}) as service:
        done = run("why", "request", "--json", url=service.url)

    assert (2, "") == (done.exit_code, done.stdout)
    assert done.stderr.startswith("error: the answer cannot be written as JSON: ")


@pytest.mark.parametrize(
    ("arguments", "path", "mend"),
    [
        (
            ["req-9"],
            "/admin/why/request?id=req-9",
            "`twinpool why request` shows the newest; the newest 10,000 are kept while the controller lives, "
            "and older ones with `twinpool serve --record FOLDER`",
        ),
        (["request"], "/admin/why/request", "send a request, and ask again a second after its end"),
        (
            ["move", "m-9"],
            "/admin/why/move?id=m-9",
            "`twinpool why move` shows the newest, `twinpool status` the last ones",
        ),
        (
            ["decision", "9"],
            "/admin/why/decision?id=9",
            "`twinpool why decision` shows the newest; of older ones only changes are kept",
        ),
    ],
)
def test_what_to_do_where_there_is_no_such_record(arguments: list[str], path: str, mend: str) -> None:
    """The command that shows the newest, and how long they are kept."""
    with serving({("GET", path): (404, refusal("not_found", "there is none"))}) as service:
        done = run("why", *arguments, url=service.url)

    assert (1, f"error: there is none\nmend: {mend}\n") == (done.exit_code, done.stderr)
