"""What `benchmarks.route` sends, what it makes of its measurements, and that every request finds its seat."""

from __future__ import annotations

import asyncio
import json

import pytest

from app.peek import fields_of, peek
from benchmarks.errors import BenchError
from benchmarks.results import Verdict, judge
from benchmarks.route_fleet import SETTINGS, SOFT_LIMIT, Setting, rules, snapshot
from benchmarks.route_prompts import KINDS, PROMPT_BYTES, bodies, taking_turns
from benchmarks.route_report import TARGETS, Parts, Timed, figures, page, rows
from benchmarks.route_run import Bench, measure

MADE = bodies(2)


def timed(count: int, us: int, kind: str = "chat", setting: str = "idle") -> list[Timed]:
    """Decisions of `us`: a tenth of it to peek, half of it for the workload."""
    return [
        Timed(kind, setting, 100 * us, 500 * us, 400 * us, Parts(400 * us, 90 * us, 300 * us, 5000))
    ] * count


def every(us: int) -> list[Timed]:
    """A decision of every kind at every setting."""
    return [one for kind in KINDS for setting in SETTINGS for one in timed(1, us, kind, setting.name)]


def test_every_kind_has_an_8k_prompt() -> None:
    """About 32 KB each, of four bytes per token, and no two the same."""
    assert list(KINDS) == [body.kind for body in MADE[: len(KINDS)]]
    assert len(MADE) == len({body.raw for body in MADE})
    for body in MADE:
        assert PROMPT_BYTES <= len(body.raw) <= 1.1 * PROMPT_BYTES, body.kind


def test_the_same_seed_gives_the_same_requests() -> None:
    """Runs can be compared; a longer run begins like a short one."""
    assert bodies(1) == MADE[: len(KINDS)]
    assert bodies(1, seed=1) != MADE[: len(KINDS)]


def test_the_requests_are_well_formed() -> None:
    """One sequence each; twenty user turns in the long conversation, and the last word is the user's."""
    for body in MADE:
        assert 1 == peek(body.path, fields_of(b"application/json", body.raw), 32768).sequences
    turns = next(json.loads(body.raw) for body in MADE if body.kind == "turns")
    roles = [message["role"] for message in turns["messages"]]
    assert (20, 19, "user") == (roles.count("user"), roles.count("assistant"), roles[-1])


def test_requests_come_again_when_they_end() -> None:
    """Any number of them, in turn."""
    found = list(taking_turns(MADE, 25))
    assert 25 == len(found)
    assert MADE[4] == found[24] == found[4]


def test_all_decisions_count_for_the_targets() -> None:
    """The median and the 99th percentile over all kinds and settings, in microseconds."""
    found = figures([*every(100), *timed(300, 150), *timed(2, 900)], timed(1, 100), timed(1, 2500))

    assert (150.0, 150.0) == (found["decision_p50_us"], found["decision_p99_us"])
    assert (100.0, 100.0) == (found["decision_code_p50_us"], found["decision_half_p99_us"])
    assert (15.0, 75.0, 60.0) == tuple(found[f"{part}_p50_us"] for part in ("peek", "workload", "seat"))
    parts = ("features", "predict", "route", "line")
    assert (40.0, 9.0, 30.0, 5.0) == tuple(found[f"{part}_p50_us"] for part in parts)
    assert (2500.0, 1000.0) == (found["decision_1000_replicas_p50_us"], found["seat_1000_replicas_p50_us"])
    assert {Verdict.HOLDS} == set(judge(found, TARGETS).values())


def test_a_slow_hundredth_is_missed() -> None:
    """The rare case has a target of its own."""
    found = figures([*every(100), *timed(100, 100), *timed(5, 1500)], timed(1, 1), timed(1, 1))
    verdicts = judge(found, TARGETS)

    assert (Verdict.HOLDS, Verdict.MISSED) == (verdicts["decision_p50_us"], verdicts["decision_p99_us"])


def test_the_page_has_a_row_for_everything() -> None:
    """Kinds, settings, all of them, and the large fleet."""
    found = every(100)
    names = [f"prompt: {kind}" for kind in KINDS] + [f"replicas: {one.name}" for one in SETTINGS] + ["all"]

    assert names == [row[0] for row in rows(found)]
    assert ["all", "100.0", "100.0", "10.0", "50.0", "40.0"] == rows(found)[-1]
    assert "| 1000 replicas | 2,000 |" in page(found, timed(1, 2000))


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda one: one.name)
def test_every_request_finds_its_seat(setting: Setting) -> None:
    """At every setting, whatever the tier, and every step has taken some time."""
    found = asyncio.run(measure(setting, taking_turns(MADE, 60), taking_turns(MADE, 10), parts=True))

    assert 60 == len(found)
    for one in found:
        assert one.parts is not None
        spans = (one.peek_ns, one.workload_ns, one.seat_ns, one.parts.features_ns, one.parts.line_ns)
        assert min(spans) > 0
        assert setting.name == one.setting


def test_half_of_the_places_stay_taken() -> None:
    """The oldest request ends when a new one has its seat."""
    half = Bench(SETTINGS[3])
    asyncio.run(half.run(taking_turns(MADE, 100)))

    assert 8 * SOFT_LIMIT // 2 == half._members.total_inflight


@pytest.mark.long
def test_a_fleet_without_room_voids_the_run() -> None:
    """A request that waits says nothing about the cost of a decision."""
    none = Setting("none", profile=False, half=False, replicas=0)
    with pytest.raises(BenchError, match="no room at none"):
        asyncio.run(Bench(none).run(MADE[:1]))


def test_the_settings_differ_as_they_say() -> None:
    """With a profile there are costs and gains, without one only the speeds of late."""
    assert [False, False, True, True] == [bool(rules(one.profile).costs) for one in SETTINGS]
    assert 8 == len(snapshot(SETTINGS[0], 1).replicas)
