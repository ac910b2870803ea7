"""What `benchmarks.control` makes of its measurements, and the fleet that it measures with."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from autoscaling.types import ReplicaReport, Role
from benchmarks.control_child import leave, run_part, said
from benchmarks.control_fleet import (
    FLEET,
    finished_requests,
    ingress_load,
    replica_id,
    report,
    serve_states,
    settings,
)
from benchmarks.control_policy import policy_text
from benchmarks.control_report import (
    TARGETS,
    Fetched,
    Growth,
    Loaded,
    Ticks,
    figures,
    page,
    rate_rows,
    saturated,
)
from benchmarks.control_ticks import WARM_UP, measure_growth, time_ticks
from benchmarks.errors import BenchError
from benchmarks.results import Verdict, judge
from deployments.default_policy import world
from deployments.policy_book import PolicyBook
from deployments.policy_source import FixedPolicy

TICKS = Ticks(FLEET, [0.001] * 98 + [0.002, 0.006], moves=3)
GROWTH = Growth(FLEET, 100_000, 10_000, before=50 << 20, after=53 << 20, peak=54 << 20, moves=9)


def loaded(taken: int, **changes: object) -> Loaded:
    """Ten seconds of one rate, with two snapshots of the whole fleet."""
    fetched = Fetched([800_000, 800_010], [FLEET, FLEET], [0.5] * 99 + [1.5], [0.01, 0.02], lost=0)
    base = Loaded(1030.0, {"taken": taken, "lost": 7}, 10.0, 0.8, 0.9, fetched)
    return replace(base, **changes)  # type: ignore[arg-type]


def test_the_first_rate_is_held_against_the_targets() -> None:
    """Higher rates only say where the end is."""
    found = figures(TICKS, [loaded(10_200), loaded(14_000, cpu_cores=1.2)], GROWTH)

    assert 1020.0 == found["reports_per_s"]
    assert 0.8 == found["controller_cpu_cores"]
    assert 1400.0 == found["reports_per_s_saturation"]
    assert 7.0 == found["reports_not_taken"]
    assert 800_005 == found["snapshot_bytes"]
    assert 0.51 == found["report_age_p99_s"]
    assert 1.06 == found["decide_1000_mean_ms"]
    assert 2.04 == found["decide_1000_p99_ms"]
    assert 3.0 == found["memory_growth_mib_100000_ticks"]
    assert {Verdict.HOLDS} == set(judge(found, TARGETS).values())


def test_a_target_is_missed_by_its_own_figure() -> None:
    """Nothing else makes up for it."""
    found = figures(TICKS, [loaded(9_990)], replace(GROWTH, after=56 << 20))
    verdicts = judge(found, TARGETS)

    assert {"reports_per_s", "memory_growth_mib_100000_ticks"} == {
        name for name, verdict in verdicts.items() if verdict is Verdict.MISSED
    }


def test_a_snapshot_without_the_whole_fleet_voids_the_run() -> None:
    """A controller that has lost replicas has less to do."""
    lame = loaded(10_200, fetched=Fetched([1], [FLEET - 1], [0.5], [0.01]))

    with pytest.raises(BenchError, match="a snapshot had 999 of 1000 replicas"):
        figures(TICKS, [lame], GROWTH)
    with pytest.raises(BenchError, match="a snapshot had 0 of 1000 replicas"):
        figures(TICKS, [loaded(10_200, fetched=Fetched(lost=40))], GROWTH)


def test_ticks_without_a_move_void_the_run() -> None:
    """A controller at rest gathers nothing, whatever it would gather at work."""
    with pytest.raises(BenchError, match="100000 ticks without a move"):
        figures(TICKS, [loaded(10_200)], replace(GROWTH, moves=0))


@pytest.mark.parametrize(
    ("taken", "expected"),
    [([10_000], False), ([10_000, 14_000], False), ([10_000, 10_400], True), ([0, 0], True)],
)
def test_rates_rise_until_no_more_is_taken(taken: list[int], expected: bool) -> None:
    """Growth of a twentieth counts as none."""
    assert expected is saturated([loaded(each) for each in taken])


def test_the_page_has_a_row_per_rate() -> None:
    """A rate at which no snapshot came has no ages."""
    silent = loaded(0, offered=2000.0, fetched=Fetched(lost=40))

    assert ["2,000", "0.00", "7", "0.80", "0.90", "-", "-"] == rate_rows([silent])[0]
    assert "| 1,030 | 1,020 | 7 | 0.80 | 0.90 | 0.51 | 19.9 |" in page(TICKS, [loaded(10_200)], GROWTH)


def test_what_a_part_leaves_is_read_back(tmp_path: Path) -> None:
    """Dataclasses in, the same dataclasses out."""
    out = tmp_path / "out.json"
    leave([loaded(3)], out)

    assert [loaded(3)] == msgspec.json.decode(out.read_bytes(), type=list[Loaded])


def test_only_what_is_meant_for_us_is_passed_on() -> None:
    """Ray writes into the same log."""
    assert ["10,000 ticks"] == said("INFO something\nsays: 10,000 ticks\nit says: no\n")


def test_a_part_that_fails_voids_the_run(tmp_path: Path) -> None:
    """With the end of its log."""
    with pytest.raises(BenchError, match=r"ticks ended with status 2 at its start:\n[\s\S]*--ticks"):
        run_part("ticks", ["benchmarks.control_ticks", "time"], Ticks, tmp_path, 30.0, sys.stdout.write)


@pytest.mark.parametrize("replicas", [100, FLEET])
def test_the_fleets_policy_is_one_that_would_be_obeyed(replicas: int) -> None:
    """A refused one would leave the default, which is quicker to apply."""
    seen = FixedPolicy(policy_text(replicas)).poll()
    assert seen is not None
    book = PolicyBook(world(settings(replicas=replicas)))
    book.take(seen, None, 1_800_000_000.0)

    assert book.last_error is None
    assert book.active is not None


def test_a_report_is_one_that_a_controller_takes() -> None:
    """It survives the way over Ray Serve, and Serve knows the replica by the same id."""
    said_ = report(Role.PLAIN, 7, seq=3)

    assert said_ == msgspec.convert(msgspec.to_builtins(said_), ReplicaReport)
    assert said_.replica_id == replica_id(Role.PLAIN, 7)
    assert said_.replica_id in serve_states(dict.fromkeys(Role, 8), 0.0).pools[Role.PLAIN].running_ids
    assert finished_requests(said_.replica_id, 3) == said_.finished
    assert 5 == len({record.request_id for record in said_.finished})


def test_callers_want_each_pool_more_in_turn() -> None:
    """Half a swing apart, so that capacity moves to and fro."""
    assert {Role.SPECULATIVE: 5400, Role.PLAIN: 1800} == ingress_load(900.0).wanted
    assert {Role.SPECULATIVE: 1800, Role.PLAIN: 5400} == ingress_load(2700.0).wanted


def test_only_ticks_after_the_first_hundred_count() -> None:
    """The first ones fill caches."""
    found = time_ticks(5, replicas=20)

    assert 5 == len(found.tick_s)
    assert WARM_UP > 0


def test_the_long_run_moves_capacity() -> None:
    """It is the whole loop that ticks: policy, decisions, moves."""
    found = asyncio.run(measure_growth(2000, replicas=20))

    assert 200 == found.settled
    assert found.moves > 0
    assert found.before > 0
