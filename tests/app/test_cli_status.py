"""`twinpool status` as text: everything of the status JSON, unknown as a dash, what hinders first."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from tests.app.canned import run, serving

REPLICA = {
    "id": "plain#abc",
    "node": "n",
    "state": "running",
    "running": 3,
    "waiting": None,
    "kv_cache_usage": 0.256,
    "finished": 12,
    "report_age_seconds": 0.5,
    "cores": [1],
    "oversubscribed": True,
}
EMPTY_POOL: dict[str, Any] = {
    "role": None,
    "target": None,
    "running": None,
    "starting": None,
    "draining": None,
    "clamped_by": None,
    "inflight": None,
    "waiting": None,
    "draft_length": None,
    "mean_acceptance_length": None,
    "draft_acceptance_rate": None,
    "break_even_acceptance_rate": None,
    "replicas": [],
}
NOTHING_KNOWN: dict[str, Any] = {
    "schema_version": 1,
    "generated_at": "2026-03-01T10:00:00+00:00",
    "ready": False,
    "url": "http://127.0.0.1:8000",
    "versions": {},
    "conditions": [],
    "controller": {"reachable": True, "last_tick": None, "snapshot_age_seconds": None, "model": None},
    "policy": None,
    "hold": None,
    "overrides": [],
    "budget": None,
    "tiers": {},
    "pools": None,
    "pools_age_seconds": None,
    "ingress": {"inflight": 0},
    "moves": [],
    "last_decision": None,
}
FULL: dict[str, Any] = NOTHING_KNOWN | {
    "ready": True,
    "conditions": [
        {"type": "PlainPoolServing", "status": True, "reason": "r", "message": "fine", "since": None},
        {"type": "OneModel", "status": None, "reason": "Unknown", "message": "", "since": None},
        {"type": "OnBudget", "status": False, "reason": "Over", "message": "2 too [many]", "since": None},
    ],
    "controller": {
        "reachable": True,
        "last_tick": "2026-03-01T09:59:59.500Z",
        "snapshot_age_seconds": 0.25,
        "model": "fallback",
    },
    "policy": {
        "name": "interactive-first",
        "path": "/etc/policy.yaml",
        "mode": "enforce",
        "seen_revision": 8,
        "active_revision": 7,
        "sha": "ab" * 32,
        "state": "active",
        "last_error": {"message": "is wrong", "line": 12, "field": "spec.pools.plain"},
    },
    "hold": {
        "by": "operator",
        "reason": "load test",
        "since": "2026-03-01T09:00:00Z",
        "expires": "2026-03-01T11:00:00Z",
        "who": "ann",
    },
    "overrides": [
        {
            "id": "o-1",
            "pool": "plain",
            "replicas": 3,
            "min_replicas": None,
            "max_replicas": None,
            "since": "2026-03-01T09:00:00Z",
            "until": "2026-03-01T12:00:00Z",
            "reason": "launch day",
            "by": "bob",
        }
    ],
    "budget": {"accelerators": 8, "used": 6},
    "pools": {
        "speculative": EMPTY_POOL | {"target": 3, "running": 2, "starting": 1, "draining": 0},
        "plain": EMPTY_POOL
        | {"clamped_by": "override o-1", "draft_length": {"min": 2, "max": 4}, "replicas": [REPLICA]},
    },
    "pools_age_seconds": 0.1,
    "moves": [
        {
            "id": "m-3",
            "at": "2026-03-01T09:58:00Z",
            "from": "plain",
            "to": None,
            "count": 1,
            "reason": "surplus",
            "state": "draining",
            "waiting_for": "2 open answers",
            "duration_seconds": 119.6,
        }
    ],
    "last_decision": {"id": 41, "at": "2026-03-01T09:59:59Z", "summary": "no pool is short"},
}


def shown(found: dict[str, Any], *, width: int = 200) -> tuple[int, list[str]]:
    with serving({("GET", "/admin/status"): (200, found)}) as service:
        done = run("status", url=service.url, width=width)
    return done.exit_code, [line.rstrip() for line in done.stdout.splitlines()]


def test_everything_that_is_known() -> None:
    """Policy with its last error, hold, budget, decision, and the conditions that are not true."""
    code, lines = shown(FULL)

    assert 0 == code
    assert [
        "http://127.0.0.1:8000  ready  snapshot 0.25 s old, last tick 2026-03-01 09:59:59 UTC",
        "policy  interactive-first  revision 7  mode enforce  active  /etc/policy.yaml",
        "        revision 8 of the file is not in force: line 12: spec.pools.plain: is wrong",
        "HOLD    by operator (ann) since 2026-03-01 09:00:00 UTC, until 2026-03-01 11:00:00 UTC: load test",
        "budget  6 of 8 accelerators",
        "decided 41 at 2026-03-01 09:59:59 UTC: no pool is short",
        "  OneModel: -",
        "  OnBudget: 2 too [many]",
    ] == lines[:8]


def test_pools_moves_and_overrides() -> None:
    """Target and what is there, who clamps, drafts, replicas, what a move waits for and for how long."""
    lines = shown(FULL)[1]

    tables = [line.split() for line in lines]
    assert ["pool", "target", "running", "starting", "draining", "clamped", "by"] in tables
    assert ["speculative", "3", "2", "1", "0", "-"] in tables
    assert ["plain", "-", "-", "-", "-", "override", "o-1"] in tables
    assert ["plain", "-", "-", "2-4", "-", "-"] in tables
    assert [
        "plain#abc",
        "plain",
        "running",
        "3",
        "-",
        "0.26",
        "12",
        "0.50",
        "1",
        "(oversubscribed)",
    ] in tables
    assert ["o-1", "plain", "3", "-", "-", "2026-03-01", "12:00:00", "UTC", "bob", "launch", "day"] in tables
    moved = ["m-3", "2026-03-01", "09:58:00", "UTC", "plain", "budget", "1", "draining"]
    assert [*moved, "2", "open", "answers", "2m", "surplus"] in tables


def test_unknown_is_a_dash() -> None:
    """Before anything is known nothing is shown as zero; not ready is exit code 1."""
    code, lines = shown(NOTHING_KNOWN)

    assert 1 == code
    assert [
        "http://127.0.0.1:8000  NOT READY  snapshot - s old, last tick -",
        "policy  -",
        "budget  -",
        "decided -",
        "pools: not known yet",
    ] == lines


@pytest.mark.parametrize(
    ("age", "words"), [(93.4, "the picture is 1m33s old"), (None, "nothing is known of it yet")]
)
def test_a_controller_that_is_gone_is_said_first(age: float | None, words: str) -> None:
    """The first line says that all below is old, and how old; the exit code is about readiness alone."""
    found = copy.deepcopy(FULL) | {"pools_age_seconds": age}
    found["controller"]["reachable"] = False

    code, lines = shown(found)

    assert 0 == code
    assert f"controller NOT reachable: {words}; requests are served, capacity does not move" == lines[0]
    assert "budget  6 of 8 accelerators" in lines


def test_a_hold_without_an_end() -> None:
    """A hold of the service itself has no operator and ends with its cause."""
    hold = FULL["hold"] | {"by": "metrics_loss", "who": None, "expires": None}

    lines = shown(FULL | {"hold": hold})[1]

    assert lines[3].startswith("HOLD    by metrics_loss since 2026-03-01 09:00:00 UTC, ")
    assert lines[3].endswith("until it is released or its cause is gone: load test")


def test_a_hold_that_says_no_name() -> None:
    """`who` may be absent, as in the contract of the status."""
    hold = {key: value for key, value in FULL["hold"].items() if key != "who"}

    assert any(line.startswith("HOLD    by operator since") for line in shown(FULL | {"hold": hold})[1])


def test_a_revision_in_shadow() -> None:
    """That a revision only decides is said beside the one that acts."""
    lines = shown(FULL | {"policy": FULL["policy"] | {"shadow_revision": 9}})[1]

    assert "        revision 9 is in shadow: it decides, and nothing acts on it" in lines


def test_parts_that_nobody_knows() -> None:
    """Before the controller's first word overrides and moves are null: no table is shown for them."""
    lines = shown(FULL | {"overrides": None, "moves": None})[1]

    assert not any(line.startswith((" move", " override")) for line in lines)


def test_an_error_without_a_place() -> None:
    """A file that is gone has neither line nor field, and is no revision."""
    error = {"message": "the file is gone", "line": None, "field": None}
    policy = FULL["policy"] | {"seen_revision": 7, "last_error": error}

    lines = shown(FULL | {"policy": policy})[1]

    assert "        the file is not in force: the file is gone" in lines


def test_a_narrow_window_cuts_nothing() -> None:
    """In 80 columns cells are folded, never cut."""
    lines = shown(FULL, width=80)[1]

    assert not any("…" in line for line in lines)
    assert all(len(line) <= 80 for line in lines)


@pytest.mark.parametrize("form", [["-o", "json"], ["--json"], ["--json", "--watch"]])
def test_json_is_the_services_own(form: list[str]) -> None:
    """The JSON is /admin/status as it is, with the exit code of readiness."""
    with serving({("GET", "/admin/status"): (200, NOTHING_KNOWN)}) as service:
        done = run("status", *form, url=service.url)

    assert 1 == done.exit_code
    assert NOTHING_KNOWN == json.loads(done.stdout)


def test_what_is_no_status() -> None:
    """Another service that answers JSON is not taken for ours: exit code 2."""
    with serving({("GET", "/admin/status"): (200, {"ok": True})}) as service:
        done = run("status", url=service.url)

    assert (2, "") == (done.exit_code, done.stdout)
    assert "this is not a twinpool status" in done.stderr
