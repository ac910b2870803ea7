"""The command of `benchmarks.goodput`: what it plans, writes and returns."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest
from rich.console import Console

from autoscaling.profiling.findings import PoolAnswer
from benchmarks.errors import BenchError
from benchmarks.goodput import drafts_for, found_by, plan_of, write
from benchmarks.goodput_calibrate import plan_of as calibration_of
from benchmarks.goodput_engines import Drafts
from benchmarks.goodput_plan import FULL, QUICK, Method, Plan
from benchmarks.goodput_records import Calibration, Found
from tests.benchmarks.goodput_fake import calibrated
from tests.benchmarks.test_goodput_figures import TABLE, TWO, rounds

QUIET = Console(quiet=True)
SHORT = Plan(2, FULL.window, (Method.NGRAM,), (TWO, TABLE))


def found_with(two: tuple[float, ...], table: tuple[float, ...]) -> Found:
    """A run whose profile was sure of two pools at 50 ms."""
    found = Found(blocks=rounds({TWO: two, TABLE: table}))
    found.calibrations[Method.NGRAM] = Calibration(
        Method.NGRAM, "2026-01-01T00:00:00Z", calibrated(PoolAnswer.TWO_POOLS, 1.3)
    )
    return found


@pytest.mark.parametrize(
    ("two", "expected"),
    [((120.0, 120.0), 0), ((105.0, 105.0), 1), ((90.0, 90.0), 1)],
)
def test_the_exit_status_says_whether_the_prediction_held(
    tmp_path: Path, two: tuple[float, float], expected: int
) -> None:
    """0 where two pools won as predicted; 1 where the win is too small, or another was better."""
    found = found_by(SHORT, found_with(two, (100.0, 100.0)), tmp_path)

    assert expected == write(found, tmp_path, QUIET)


def test_results_hold_the_curves_and_a_plot(tmp_path: Path) -> None:
    """JSON, page and SVG lie side by side."""
    write(found_by(SHORT, found_with((120.0, 120.0), (100.0, 100.0)), tmp_path), tmp_path, QUIET)
    values = json.loads((tmp_path / "goodput.json").read_text())["figures"]

    assert ["goodput-ngram.svg", "goodput.json", "goodput.md"] == sorted(
        one.name for one in tmp_path.iterdir()
    )
    assert 120.0 == values["ngram_two_pools_ours_50_ms_at_20_ms_goodput"]
    assert "(goodput-ngram.svg)" in (tmp_path / "goodput.md").read_text()


def test_a_round_that_was_cut_does_not_count(tmp_path: Path) -> None:
    """Without a whole one there are no results."""
    found = found_by(SHORT, found_with((120.0,), ()), tmp_path)

    with pytest.raises(BenchError, match="go on with --resume"):
        write(found, tmp_path, QUIET)


def test_options_change_the_plan() -> None:
    """Quick is n-gram alone unless methods are named."""
    given = argparse.Namespace(quick=True, rounds=None, methods=None)

    assert QUICK == plan_of(given)
    given.rounds, given.methods, given.quick = 3, ["eagle", "eagle"], False
    assert (3, (Method.EAGLE,)) == (plan_of(given).rounds, plan_of(given).methods)


def test_a_head_that_is_none_is_refused_at_once(tmp_path: Path) -> None:
    """Before any engine starts."""
    with pytest.raises(BenchError, match="holds no config"):
        drafts_for(QUICK, tmp_path, QUIET)
    assert Drafts() == drafts_for(QUICK, None, QUIET)


@pytest.mark.parametrize(("longest", "lengths"), [(4, (0, 2, 4)), (3, (0, 2, 3)), (1, (0, 1))])
def test_calibration_measures_no_half_and_all_drafts(longest: int, lengths: tuple[int, ...]) -> None:
    """Batches from one to as many as an engine runs."""
    plan = calibration_of(longest)

    assert lengths == plan.lengths
    assert (1, 16) == (min(plan.batches), max(plan.batches))
