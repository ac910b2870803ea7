"""`twinpool status` as text: everything of the status JSON, unknown as a dash, what hinders first."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from app.cli.client import MEND
from app.cli.output import show_clock
from app.cli.status import picture
from tests.app.canned import NOWHERE, run, serving

REPLICA = {
    "id": "plain#abc",
    "node": "n",
    "state": "running",
    "running": 3,
    "soft_limit": 8,
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
    "demand": None,
    "capacity": None,
    "utilization": None,
    "short_seconds": None,
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
    "precedence": "hold > pools; now plain by pools",
    "next_schedule_change": "2026-03-01T22:00:00Z",
    "budget": {"accelerators": 8, "used": 6},
    "pools": {
        "speculative": EMPTY_POOL
        | {"target": 3, "running": 2, "starting": 1, "draining": 0}
        | {"demand": 42.0, "capacity": 24.0, "utilization": 1.75, "short_seconds": 252.0},
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
            "before": {"speculative": 3, "plain": 4},
            "after": {"speculative": 3, "plain": 3},
            "reason": "surplus",
            "state": "draining",
            "waiting_for": "1 replica of plain to drain",
            "age_seconds": 119.6,
            "duration_seconds": None,
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
        "http://127.0.0.1:8000  ready  snapshot 0.25 s old, last tick 09:59:59 UTC",
        "policy    interactive-first  revision 7  mode enforce  active  /etc/policy.yaml",
        "          revision 8 of the file is not in force: line 12: spec.pools.plain: is wrong",
        "in force  hold > pools; now plain by pools; the schedules change next at 2026-03-01 22:00:00 UTC",
        "HOLD      by operator (ann) since 09:00:00, until 11:00:00: load test",
        "budget    6 of 8 accelerators",
        "short     speculative for 4m12s: demand 42, can serve 24",
        "decided   41 at 09:59:59: no pool is short",
        "not true  OnBudget: 2 too [many]",
        "unknown   OneModel",
    ] == lines[:10]


def test_pools_replicas_moves_and_overrides() -> None:
    """Target, what is there and what is needed, who clamps, drafts, replicas, overrides and moves."""
    lines = shown(FULL)[1]

    tables = [line.split() for line in lines]
    assert ["pool", "target", "running", "starting", "draining", "demand", "can", "serve", "util"] in tables
    assert ["speculative", "3", "2", "1", "0", "42", "24", "1.75"] in tables
    assert ["plain", "-", "-", "-", "-", "-", "-", "-"] in tables
    assert "clamped   plain by override o-1" in lines
    assert ["plain", "-", "-", "2-4", "-", "-"] in tables
    assert ["plain#", "plain", "running", "3", "8", "-", "0.26", "12", "0.50", "1", "(shared)"] in tables
    assert [
        "override  o-1: plain at exactly 3 replicas until 12:00:00, by bob: launch day",
        "moves     m-3 draining 2m: plain -> budget, 1, surplus; waits for 1 replica of plain to drain",
    ] == lines[-2:]


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ((3, 3), (4, 2), "plain -> speculative, 1, bounds"),
        ((3, 3), (4, 1), "speculative 3 -> 4, plain 3 -> 1, bounds"),
        ((3, 3), (2, 1), "speculative 3 -> 2, plain 3 -> 1, bounds"),
        (None, None, "plain -> speculative, 1, bounds"),
    ],
)
def test_the_sizes_of_a_move(
    before: tuple[int, int] | None, after: tuple[int, int] | None, words: str
) -> None:
    """Two pools that change by different numbers are shown with both sizes; records without them are not."""

    def sizes(pair: tuple[int, int] | None) -> dict[str, int] | None:
        return None if pair is None else {"speculative": pair[0], "plain": pair[1]}

    ended = {"state": "done", "waiting_for": None, "age_seconds": None, "duration_seconds": 12.2}
    move = FULL["moves"][0] | ended | {"to": "speculative", "reason": "bounds"}
    moves = [move | {"before": sizes(before), "after": sizes(after)}]

    assert f"moves     m-3 done after 12s, begun 09:58:00: {words}" == shown(FULL | {"moves": moves})[1][-1]


def test_a_move_that_was_given_up() -> None:
    """How long it was tried, and what it waited for to the end."""
    ended = {"state": "timed_out", "age_seconds": None, "duration_seconds": 900.0}

    lines = shown(FULL | {"moves": [FULL["moves"][0] | ended]})[1]

    assert (
        "moves     m-3 timed_out after 15m, begun 09:58:00: plain -> budget, 1, surplus;"
        " waited for 1 replica of plain to drain"
    ) == lines[-1]


def test_only_the_newest_moves_are_shown() -> None:
    """Five, one line each, and how many more the JSON has."""
    moves = [FULL["moves"][0] | {"id": f"m{number}"} for number in range(17, 0, -1)]

    lines = shown(FULL | {"moves": moves})[1]

    assert ["m17", "m16", "m15", "m14", "m13"] == [
        line[10:].split()[0] for line in lines if " draining 2m: " in line
    ]
    assert "          12 more: -o json" == lines[-1]


def test_ids_are_as_long_as_tells_them_apart() -> None:
    """Six characters, more where two replicas begin alike."""
    ids = ["abcdefgh1", "abcdefgi2", "xyz"]
    plain = FULL["pools"]["plain"] | {"replicas": [REPLICA | {"id": one} for one in ids]}

    lines = shown(FULL | {"pools": FULL["pools"] | {"plain": plain}})[1]

    assert ["abcdefgh", "abcdefgi", "xyz"] == [line.split()[0] for line in lines if "(shared)" in line]


def test_a_time_of_another_day_has_its_date() -> None:
    """What is not of today says its day and zone."""
    assert {
        "2026-03-01T23:59:59Z": "23:59:59",
        "2026-02-28T23:59:59Z": "2026-02-28 23:59:59 UTC",
        "2026-03-02T00:30:00+01:00": "23:30:00",
        "soon": "soon",
        None: "-",
    } == {
        at: show_clock(at, "2026-03-01T10:00:00+00:00")
        for at in (
            "2026-03-01T23:59:59Z",
            "2026-02-28T23:59:59Z",
            "2026-03-02T00:30:00+01:00",
            "soon",
            None,
        )
    }


def test_what_has_a_line_of_its_own_is_no_finding() -> None:
    """A refused policy and a hold are told once, in full."""
    said = [
        {"type": kind, "status": False, "reason": "r", "message": "again", "since": None}
        for kind in ("PolicyAccepted", "CapacityFree")
    ]

    lines = shown(FULL | {"conditions": said})[1]

    assert not any("again" in line or "PolicyAccepted" in line for line in lines)
    assert any("is not in force" in line for line in lines)
    assert any(line.startswith("HOLD") for line in lines)


def test_a_condition_that_is_bad_when_it_is_true() -> None:
    """It is shown while it is true and not while it is false; the line of the profile does not repeat it."""
    stale = {"type": "ProfileStale", "status": True, "reason": "Differs", "message": "m", "since": None}
    profile = {"path": "/p.json", "state": "stale", "error": "the same again"}

    code, lines = shown(FULL | {"conditions": [stale], "profile": profile})
    sound = shown(FULL | {"conditions": [stale | {"status": False}], "profile": profile})[1]

    assert 0 == code
    assert "true      ProfileStale: m" in lines
    assert "profile   stale  /p.json" in lines
    assert not any("the same again" in line for line in lines)
    assert not any("ProfileStale" in line for line in sound)


def test_information_is_no_fault() -> None:
    """One pool is enough: a note while it is so, nothing while it is not or nobody knows."""
    enough = {"type": "OnePoolEnough", "status": True, "reason": "OnePool", "message": "m", "since": None}

    code, lines = shown(FULL | {"conditions": [enough]})

    assert 0 == code
    assert "note      OnePoolEnough: m" in lines
    for status in (False, None):
        others = shown(FULL | {"conditions": [enough | {"status": status}]})[1]
        assert not any("OnePoolEnough" in line for line in others)


def test_unknown_is_a_dash() -> None:
    """Before anything is known nothing is shown as zero; not ready is exit code 1."""
    code, lines = shown(NOTHING_KNOWN)

    assert 1 == code
    assert [
        "http://127.0.0.1:8000  NOT READY  snapshot - s old, last tick -",
        "policy    -",
        "budget    -",
        "decided   -",
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
    assert "budget    6 of 8 accelerators" in lines


def test_a_hold_without_an_end() -> None:
    """A hold of the service itself has no operator and ends with its cause."""
    hold = FULL["hold"] | {"by": "metrics_loss", "who": None, "expires": None}

    lines = shown(FULL | {"hold": hold})[1]

    assert (
        "HOLD      by metrics_loss since 09:00:00, until it is released or its cause is gone: load test"
    ) == lines[4]


def test_a_hold_that_says_no_name() -> None:
    """`who` may be absent, as in the contract of the status."""
    hold = {key: value for key, value in FULL["hold"].items() if key != "who"}

    assert any(line.startswith("HOLD      by operator since") for line in shown(FULL | {"hold": hold})[1])


def test_a_revision_in_shadow() -> None:
    """That a revision only decides is said beside the one that acts."""
    lines = shown(FULL | {"policy": FULL["policy"] | {"shadow_revision": 9}})[1]

    assert "          revision 9 is in shadow: it decides, and nothing acts on it" in lines


def test_parts_that_nobody_knows() -> None:
    """Before the controller's first word overrides and moves are null: nothing is shown of them."""
    lines = shown(FULL | {"overrides": None, "moves": None})[1]

    assert not any(line.startswith(("moves", "override")) for line in lines)


def test_an_error_without_a_place() -> None:
    """A file that is gone has neither line nor field, and is no revision."""
    error = {"message": "the file is gone", "line": None, "field": None}
    policy = FULL["policy"] | {"seen_revision": 7, "last_error": error}

    lines = shown(FULL | {"policy": policy})[1]

    assert "          the file is not in force: the file is gone" in lines


def test_a_narrow_window_cuts_nothing() -> None:
    """In 80 columns words wrap under their own beginning, and nothing is cut."""
    lines = shown(FULL, width=80)[1]

    assert not any("…" in line for line in lines)
    assert all(len(line) <= 80 for line in lines)
    assert [
        "moves     m-3 draining 2m: plain -> budget, 1, surplus; waits for 1 replica of",
        "          plain to drain",
    ] == lines[-2:]
    heads = [line.split() for line in lines if line.startswith(("pool ", "replica "))]
    assert [9, 7, 11] == [len(head) for head in heads]


def test_watch_without_a_terminal() -> None:
    """What cannot be redrawn is said at once, before the service is asked: exit code 2."""
    done = run("status", "--watch", url=NOWHERE)

    assert (2, "") == (done.exit_code, done.stdout)
    assert (
        "error: --watch needs a terminal that it can redraw; the output is none\nmend: leave --watch out\n"
        == done.stderr
    )


def test_watch_says_that_nobody_answers() -> None:
    """While the service is away, what to do stands where the status would; it is asked again."""
    shown = str(picture(NOWHERE))

    assert shown.startswith(f"no answer from {NOWHERE}: ")
    assert shown.endswith(f"; asked again every second\nmend: {MEND}")


def test_watch_says_that_the_service_refuses() -> None:
    """An error of the service is shown in its own words."""
    with serving({}) as service:
        assert "nothing at /admin/status; asked again every second" == str(picture(service.url))


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


TIER: dict[str, Any] = dict.fromkeys(("attainment", "ttft_p95_seconds", "tpot_p95_seconds", "queued"))


def test_tiers_are_shown_when_anything_is_known() -> None:
    """A dash for what is not; no table while nothing is."""
    known = TIER | {"attainment": 0.9876, "ttft_p95_seconds": 0.34567, "tpot_p95_seconds": 0.0312}
    tiers = {"interactive": known, "standard": TIER, "batch": TIER | {"queued": 7}}
    _, lines = shown(NOTHING_KNOWN | {"tiers": tiers})
    table = [line.split() for line in lines if line.startswith(tuple(tiers))]
    assert [
        ["interactive", "98.8%", "0.346", "0.0312", "-"],
        ["standard", "-", "-", "-", "-"],
        ["batch", "-", "-", "-", "7"],
    ] == table
    _, lines = shown(NOTHING_KNOWN | {"tiers": dict.fromkeys(tiers, TIER)})
    assert not [line for line in lines if "attained" in line]


def test_a_profile_has_a_line() -> None:
    """Its state and path, and what is wrong with it; none when there is none."""
    profile = {"path": "/p.yaml", "state": "invalid", "error": "not JSON"}
    _, lines = shown(NOTHING_KNOWN | {"profile": profile})
    place = lines.index("profile   invalid  /p.yaml")
    assert "          not JSON" == lines[place + 1]
    for none in (None, {"path": None, "state": "none", "error": None}):
        _, lines = shown(NOTHING_KNOWN | {"profile": none})
        assert not [line for line in lines if line.startswith("profile")]
