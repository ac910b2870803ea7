"""The shape of what a benchmark writes, and its verdicts."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pytest

from benchmarks.load import Measured
from benchmarks.path_report import TARGETS, Block, Cell, Samples, difference_rows, figures, page, table_rows
from benchmarks.quantiles import bootstrap_interval, median_difference, percentile
from benchmarks.results import Verdict, judge, markdown_table, number, write_results


@pytest.mark.parametrize(
    ("sign", "bound", "expected"),
    [
        ("<=", 3.0, Verdict.HOLDS),
        ("<", 3.0, Verdict.MISSED),
        (">=", 3.0, Verdict.HOLDS),
        (">", 2.9, Verdict.HOLDS),
        ("==", 3.0, Verdict.HOLDS),
        ("<=", 2.9, Verdict.MISSED),
    ],
)
def test_a_target_compares_the_figure_with_its_bound(sign: str, bound: float, expected: Verdict) -> None:
    """[op, number] reads as: figure op number."""
    assert {"ms": expected} == judge({"ms": 3.0}, {"ms": (sign, bound)})


def test_a_figure_that_is_absent_was_not_measured() -> None:
    """Absent is neither held nor missed."""
    assert judge({}, {"ms": ("<=", 3.0)}) == {"ms": Verdict.NOT_MEASURED}


def test_an_unknown_operator_is_an_error() -> None:
    """A mistyped target must not pass."""
    with pytest.raises(KeyError):
        judge({"ms": 3.0}, {"ms": ("=<", 3.0)})


@pytest.mark.parametrize(
    ("figures_", "expected"),
    [
        ({"a": 1.0, "b": 1.0}, 0),
        ({"a": 1.0, "b": 9.0}, 1),
        ({"a": 1.0}, 2),
        ({"a": 9.0}, 1),  # a miss outweighs what is not known
    ],
)
def test_the_exit_code_is_0_only_if_all_targets_hold(
    tmp_path: Path, figures_: dict[str, float], expected: int
) -> None:
    """1 for a miss, 2 when it cannot be told."""
    targets = {"a": ("<=", 3.0), "b": ("<=", 3.0)}
    assert expected == write_results("some", figures_, targets, folder=tmp_path).exit_code


def test_the_json_has_the_shape_of_the_contract(tmp_path: Path) -> None:
    """Exactly figures, targets, versions, machine, at; and no half-written file stays."""
    written = write_results(
        "some", {"ms": 2.5}, {"ms": ("<=", 3.0)}, versions={"peer": "1"}, text="Text.", folder=tmp_path
    )
    data = json.loads(written.json.read_text(encoding="utf-8"))
    assert list(data) == ["figures", "targets", "versions", "machine", "at"]
    assert data["figures"] == {"ms": 2.5}
    assert data["targets"] == {"ms": ["<=", 3.0]}
    assert data["versions"]["peer"] == "1"
    assert {"python", "twinpool", "ray"} <= set(data["versions"])
    assert {"cpu", "cores", "memory_gib", "system"} == set(data["machine"])
    assert datetime.fromisoformat(data["at"]).tzinfo is not None
    assert {"some.json", "some.md"} == {path.name for path in tmp_path.iterdir()}


def test_the_page_shows_text_verdicts_and_the_unmeasured(tmp_path: Path) -> None:
    """The Markdown says what the JSON says."""
    targets = {"a": ("<=", 3.0), "b": ("<=", 3.0)}
    page_ = write_results("some", {"a": 2.5}, targets, text="Text.", folder=tmp_path).markdown.read_text()
    assert page_.startswith("# Results of `make bench-some`\n\nText.\n")
    assert "| a | 2.50 | <= 3.00 | holds |" in page_
    assert "| b | - | <= 3.00 | not measured |" in page_


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_figure_is_a_finite_number(tmp_path: Path, value: float) -> None:
    """NaN is no JSON, and would fail every comparison silently."""
    with pytest.raises(ValueError, match="figure ms of some"):
        write_results("some", {"ms": value}, {}, folder=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_table_aligns_figures_right() -> None:
    """The first column is text."""
    assert markdown_table(("a", "b"), [["x", "1"]]) == "| a | b |\n| --- | ---: |\n| x | 1 |"


@pytest.mark.parametrize(
    ("value", "expected"),
    [(None, "-"), (0.0, "0.00"), (2.341, "2.34"), (-0.51, "-0.51"), (34.61, "34.6"), (3134.2, "3,134")],
)
def test_numbers_are_short(value: float | None, expected: str) -> None:
    """Three digits are enough to compare, all before the point are shown."""
    assert expected == number(value)


@pytest.mark.parametrize(("q", "expected"), [(0, 1.0), (50, 2.5), (100, 4.0), (25, 1.75), (99, 3.97)])
def test_percentiles_interpolate(q: float, expected: float) -> None:
    """As numpy's default does."""
    assert expected == pytest.approx(percentile([4.0, 1.0, 3.0, 2.0], q))


@pytest.mark.parametrize(("values", "q"), [([], 50), ([1.0], -1), ([1.0], 101)])
def test_a_percentile_of_nothing_is_an_error(values: list[float], q: float) -> None:
    """Never a made-up number."""
    with pytest.raises(ValueError, match="percentile"):
        percentile(values, q)


def test_the_difference_is_the_median_over_rounds() -> None:
    """Per round first: a slow round moves both paths."""
    rounds = [([11.0] * 3, [10.0] * 3), ([105.0] * 3, [100.0] * 3), ([23.0] * 3, [20.0] * 3)]
    assert median_difference(rounds) == 3.0


def test_the_interval_contains_the_difference_and_is_reproducible() -> None:
    """The same samples give the same interval."""
    rounds = [([20.0 + i % 7 for i in range(50)], [19.0 + i % 5 for i in range(50)])]
    low, high = bootstrap_interval(rounds, draws=200)
    assert low <= median_difference(rounds) <= high
    assert low < high
    assert (low, high) == bootstrap_interval(rounds, draws=200)


def cell(path: str, ttft_ms: float, front: str = "haproxy", round_: int = 0) -> Cell:
    measured = Measured([ttft_ms / 1000] * 5, [ttft_ms / 1000] * 5, tokens=640, window_s=2.0, cpu_s=0.5)
    return Cell(Block(round_, front), path, 8, measured)


def test_every_path_is_held_against_direct_of_its_own_block() -> None:
    """A block in which all paths are slow adds nothing."""
    samples = Samples(
        [cell(path, ms) for path, ms in (("direct", 30), ("haproxy", 32), ("peer", 31))]
        + [cell(path, ms, round_=1) for path, ms in (("direct", 130), ("haproxy", 136), ("peer", 131))]
    )
    found = figures(samples)
    assert found["haproxy_added_ttft_p50_ms_8"] == 4.0
    assert found["peer_added_ttft_p50_ms_8"] == 1.0
    assert found["haproxy_minus_peer_ttft_p50_ms_8"] == 3.0
    assert found["haproxy_ttft_p50_ms_8"] == 84.0
    assert found["haproxy_chunks_per_s_8"] == 320.0
    assert found["generator_cpu_ratio_max"] == 0.25
    assert "proxy_ttft_p50_ms_8" not in found


def test_without_the_peer_its_targets_are_not_measured() -> None:
    """The rest is still reported."""
    samples = Samples([cell("direct", 30), cell("haproxy", 32)])
    found = figures(samples)
    assert {Verdict.NOT_MEASURED} == set(judge(found, TARGETS).values())
    assert difference_rows(samples, found) == [["8", "-", "-"]]
    assert "vllm-router could not be installed." in page(samples, found, 2, None)
    first, *_ = table_rows(samples, found)
    assert first == ["8", "direct to an engine", "30.0", "30.0", "-", "-", "320.0", "5"]
