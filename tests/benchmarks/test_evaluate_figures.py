"""What `benchmarks.evaluate` makes of its runs: who beats whom and why, figures, tables, plots, the page."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from app.simulation.contenders import CONTENDERS
from benchmarks.errors import BenchError
from benchmarks.evaluate import Places, write
from benchmarks.evaluate_cells import Panel
from benchmarks.evaluate_compare import beaten, best_static, dominance, front
from benchmarks.evaluate_figures import TARGETS, Gap, figures, growth, results
from benchmarks.evaluate_page import Plots, page
from benchmarks.evaluate_plan import Traffic
from benchmarks.evaluate_plot import plot_fleets, plot_loads
from benchmarks.evaluate_records import FleetRun
from benchmarks.evaluate_tables import gap_rows, pareto_rows, percent, standing
from benchmarks.evaluate_words import how_much, sensitivities, statics, verdict, verdicts, why
from benchmarks.intervals import Interval
from benchmarks.results import Verdict, judge, number
from tests.benchmarks.evaluate_fake import PLAN, found, outcome, row

PANEL = Panel(Traffic.CONVERSATION, 30.0)
ROOT = Path(__file__).parents[2]
PAGE, FIGURES = ROOT / "docs" / "evaluation.md", ROOT / "benchmarks" / "results" / "evaluate.json"


# --- who beats whom


@pytest.mark.parametrize(
    ("misses", "batch", "expected"),
    [
        ((0.04, 0.04), (40_000.0, 40_000.0), True),  # fewer misses, as many tokens
        ((0.05, 0.05), (41_000.0, 41_000.0), True),  # as many misses, more tokens
        ((0.0505, 0.0505), (41_000.0, 41_000.0), True),  # a tie of misses
        ((0.052, 0.052), (41_000.0, 41_000.0), False),  # more misses
        ((0.04, 0.04), (39_900.0, 39_900.0), True),  # a tie of tokens
        ((0.04, 0.04), (39_000.0, 39_000.0), False),  # fewer tokens
        ((0.05, 0.05), (40_100.0, 40_100.0), False),  # all is a tie
        ((0.00, 0.08), (40_000.0, 40_000.0), False),  # better on average, but not for sure
    ],
)
def test_who_dominates(misses: tuple[float, float], batch: tuple[float, float], expected: bool) -> None:
    """No worse in both and better for sure in one, but for ties."""
    assert expected == (dominance(row("other", misses, batch), row()) is not None)


def test_nothing_is_for_sure_with_one_seed() -> None:
    """However large the difference is."""
    assert dominance(row("other", (0.0,), (90_000.0,)), row("twinpool", (0.5,), (1.0,))) is None


def test_who_knows_the_trace_beats_nobody() -> None:
    """And stands on no front; whoever else is best does both."""
    ours = row()
    bound = row("hindsight", (0.0, 0.0), (60_000.0, 60_000.0))
    better = row("static-50", (0.01, 0.01), (45_000.0, 45_000.0))
    best = row("threshold", (0.0, 0.0), (45_000.0, 45_000.0))
    rows = [ours, bound, better, best]

    assert ["threshold", "static-50"] == [how.by.contender for how in beaten(ours, rows)]
    assert ["threshold"] == [one.contender for one in front(rows)]
    assert ["dominated by threshold", "knows the trace", "dominated by threshold", "**Pareto-optimal**"] == [
        standing(one, rows) for one in rows
    ]


def test_the_best_static_split_sells_most_with_few_misses() -> None:
    """Where none has few, it misses fewest."""
    few = row("static-50", (0.001, 0.001), (30_000.0, 30_000.0))
    more = row("static-25", (0.009, 0.009), (35_000.0, 35_000.0))
    many = row("static-75", (0.3, 0.3), (50_000.0, 50_000.0))

    assert more is best_static([few, more, many], 0.01)
    assert few is best_static([many, few], 0.0001)
    with pytest.raises(BenchError, match="no static split"):
        best_static([], 0.01)


# --- words


def test_ours_that_nobody_dominates_is_told_so() -> None:
    """With those beside it."""
    rows = [row(), row("static-50", (0.01, 0.01), (30_000.0, 30_000.0))]

    assert [
        "Conversation, 30 s: nobody dominates the default policy; it is Pareto-optimal, beside `static-50`."
    ] == verdict(PANEL, rows)


def test_ours_that_is_dominated_is_told_by_whom_how_much_and_why() -> None:
    """The one with fewest misses is the one to compare with."""
    ours = row(moves=4, switching_share=0.1, plain_share=0.7)
    rows = [
        ours,
        row("static-50", (0.01, 0.012), (42_000.0, 42_200.0), plain_share=0.5),
        row("threshold", (0.03, 0.03), (41_000.0, 41_000.0)),
    ]

    assert [
        "Conversation, 30 s: the default policy is dominated by `static-50` and `threshold`.",
        "`static-50` misses 3.90 (95 % from 2.63 to 5.17) percentage points fewer "
        "(1.10 % and not 5.00 %) and sells 2,100 (95 % from 829.4 to 3,371) batch tokens per second more "
        "(42,100 and not 40,000).",
        "By the numbers, against `static-50`: "
        "it spent 10.0 % of its accelerators' time in starts and drains, "
        "the other one 0.00 %; it moved 120.0 times an hour, the other one 0.00 times; "
        "70.0 % of its replicas were plain, 50.0 % of the other one's.",
    ] == verdict(PANEL, rows)


def test_a_tie_is_called_one() -> None:
    """In either figure."""
    same = dominance(row("static-50", (0.04, 0.04)), row())
    more = dominance(row("static-50", batch=(42_000.0, 42_000.0)), row())

    assert same is not None
    assert more is not None
    assert "sells as many batch tokens (40,000 per second)." in how_much(row(), same)
    assert "`static-50` misses as many requests (5.00 %) and sells 2,000" in how_much(row(), more)


def test_what_differs_too_little_is_no_reason() -> None:
    """Nor is what one of them has none of."""
    assert [] == why(row(), row("static-50", switching_share=0.004, short_share=None))
    assert ["it refused 2.00 % of the interactive requests, the other one 0.00 %"] == why(
        row(refused=0.02), row("static-50")
    )


def test_a_panel_without_ours_has_no_verdict() -> None:
    """There is nothing to say."""
    assert [] == verdict(PANEL, [row("static-50")])


# --- results


def test_results_are_whole() -> None:
    """A row for each policy on each panel, and one for the best static split where it is none of them.

    The bound and ours without backfill are at one delay.
    """
    made = results(PLAN, found())
    names = {panel.delay_s: [one.contender for one in rows] for panel, rows in made.panels.items()}

    assert 9 == len(made.panels)
    assert [*PLAN.contenders, "twinpool-no-backfill", "static-31.25"] == names[30.0]
    assert [*PLAN.contenders[:3], "static-31.25"] == names[1.0] == names[90.0]
    assert {10} == {
        size for splits in made.splits.values() for size, one in splits.items() if one.misses.value < 0.01
    }
    assert 15 == len(made.sensed)
    assert 3 == len(made.gaps)
    assert 3 * (3 + 1 + 2) == len(made.hours)


def test_a_run_that_is_missing_is_no_result() -> None:
    """It is named, and what to do."""
    kept = found()
    del kept.outcomes[PLAN.cells()[0]]

    with pytest.raises(BenchError, match="go on with --resume"):
        results(PLAN, kept)


def test_figures_are_finite_and_named() -> None:
    """Both figures of every policy with their intervals, gaps, fleets and their growth."""
    values = figures(results(PLAN, found()))

    assert 0.0515 == pytest.approx(values["code_1_s_twinpool_misses"])
    assert 40_015.0 == pytest.approx(values["mixed_90_s_twinpool_batch_tokens_per_s"])
    assert values["code_1_s_static_31_25_misses_low"] < 0.0065 < values["code_1_s_static_31_25_misses_high"]
    assert 0.051 == pytest.approx(values["sensitivity_twinpool_acceptance_0_8_misses"])
    assert 0.0515 == pytest.approx(values["long_mixed_90_s_twinpool_misses"])
    assert 44_015.0 == pytest.approx(values["long_code_static_31_25_batch_tokens_per_s"])
    assert (0.0, 0.0) == (values["event_fluid_attainment_gap"], values["event_fluid_batch_tokens_gap"])
    assert (50.0, 0.5) == (values["fleet_24h_1000_replicas_s"], values["fleet_24h_1000_replicas_gib"])
    assert 1.0 == pytest.approx(values["fleet_cost_exponent"])
    assert all(map(math.isfinite, values.values()))
    assert {Verdict.HOLDS} == set(judge(values, TARGETS).values())


def test_a_gap_is_of_shares_and_of_tokens() -> None:
    """Shares by their difference, tokens over those of the event model; without any it is infinite."""
    gap = Gap(row(), row(misses=(0.02, 0.02), batch=(38_000.0, 38_000.0)))

    assert (0.03, 0.05) == pytest.approx((gap.attainment, gap.batch))
    assert math.inf == Gap(row(batch=(0.0, 0.0)), row()).batch
    assert [["conversation", "0.950", "0.980", "0.030", "40,000", "38,000", "0.050"]] == gap_rows([gap])


def test_the_growth_of_seconds_is_a_power() -> None:
    """2 where they grow with the square; None with two sizes."""
    fleets = {size: FleetRun(size, 24.0, size**2 / 1e4, 0.5, 0.9) for size in (100, 200, 400)}

    assert 2.0 == pytest.approx(growth(fleets))
    assert growth({size: fleets[size] for size in (100, 200)}) is None


def test_percent_stays_between_0_and_100() -> None:
    """An interval of few seeds would not."""
    assert "0.50 (0.00 to 1.50)" == percent(Interval(0.005, -0.005, 0.015))


def test_tables_name_ours_and_the_best_static_split() -> None:
    """Those with fewest misses come first."""
    rows = [row(), row("static-50", (0.01, 0.01), (30_000.0, 30_000.0), short_share=None)]
    first, second = pareto_rows(rows, rows[1])

    assert ["static-50 (best static)", "1.00 (1.00 to 1.00)", "30,000 (30,000 to 30,000)"] == first[:3]
    assert "-" == first[7]
    assert "**twinpool** (default)" == second[0]


# --- plots and the page


@pytest.mark.long
def test_plots_are_the_same_each_time(tmp_path: Path) -> None:
    """A file per load and one for the fleets; without two sizes there is none."""
    made = results(PLAN, found())
    names = [*plot_loads(tmp_path, made).values(), plot_fleets(tmp_path, made.fleets)]
    assert [f"evaluation-{name}.svg" for name in ("code", "conversation", "mixed", "fleet")] == names
    first = [(tmp_path / str(name)).read_bytes() for name in names]
    plot_loads(tmp_path, made)
    plot_fleets(tmp_path, made.fleets)

    assert first == [(tmp_path / str(name)).read_bytes() for name in names]
    assert plot_fleets(tmp_path, {}) is None


def test_the_page_is_for_somebody_who_does_not_know_the_project() -> None:
    """It says what it is, what was found, and what it cannot say; no line has two sentences."""
    made = results(PLAN, found())
    plots = Plots({traffic: f"evaluation-{traffic.value}.svg" for traffic in Traffic}, "evaluation-fleet.svg")
    text = page(
        made, {name: CONTENDERS[name].words for name in PLAN.contenders}, plots, "images", quick=False
    )

    for wanted in (
        "This page is written by `make evaluate`",
        "## What was simulated",
        "## What was found",
        "](images/evaluation-mixed.svg)",
        "## Whole traces",
        "serves 50 minutes of every load",
        "## Limits of the model",
        *verdicts(made),
        *statics(made),
        *sensitivities(made.sensed),
    ):
        assert wanted in text
    assert "quick run" not in text
    assert "\u2014" not in text
    assert [] == [line for line in text.splitlines() if re.search(r"[a-z]\. [A-Z]", line)]


@pytest.mark.long
def test_the_exit_status_is_that_of_the_targets(tmp_path: Path) -> None:
    """A default policy that is dominated is a finding; a missed target is not."""
    kept, places = found(), Places(tmp_path / "results", tmp_path / "docs")
    console = Console(quiet=True)

    assert any("is dominated by" in line for line in verdicts(results(PLAN, kept)))
    assert 0 == write(results(PLAN, kept), places, console, quick=True)
    assert "# Results of `make evaluate`" in (places.results / "evaluate.md").read_text()
    assert "quick run" in (places.docs / "evaluation.md").read_text()
    kept.fleets[1000] = replace(kept.fleets[1000], seconds=61.0)
    assert 1 == write(results(PLAN, kept), places, console, quick=True)
    del kept.fleets[1000]
    assert 2 == write(results(PLAN, kept), places, console, quick=True)


@pytest.mark.skipif(not PAGE.is_file(), reason="docs/evaluation.md has not been generated: make evaluate")
def test_the_page_has_the_figures_of_the_results() -> None:
    """Every policy on every load at every delay, in both figures; when it differs: make evaluate."""
    values = json.loads(FIGURES.read_text(encoding="utf-8"))["figures"]
    text = PAGE.read_text(encoding="utf-8")
    tables: dict[tuple[str, str], str] = {}
    for part in re.split(r"^### ", text, flags=re.MULTILINE)[1:]:
        load, own = part.splitlines()[0].lower(), part.partition("\n## ")[0]
        for section in re.split(r"^A started replica serves after ", own, flags=re.MULTILINE)[1:]:
            tables[load, section.partition(" s:")[0]] = section
    checked = 0
    for name, value in values.items():
        named = re.fullmatch(r"(code|conversation|mixed)_(\d+)_s_(\w+)_misses", name)
        if named is None:
            continue
        rows = [
            line
            for line in tables[named[1], named[2]].splitlines()
            if re.sub(r"[-.]", "_", line.strip("| *").partition(" ")[0].strip("*")) == named[3]
        ]
        assert 1 == len(rows), name
        batch = values[name.removesuffix("misses") + "batch_tokens_per_s"]
        cells = [cell.strip() for cell in rows[0].strip("|").split("|")]
        shown = [cell.partition(" ")[0] for cell in cells[1:3]]
        assert [number(100 * value), number(batch)] == shown, name
        checked += 1

    assert checked >= len(Traffic) * len(CONTENDERS)


def test_an_outcome_knows_what_it_missed() -> None:
    """The rest of attainment; moves are counted by the hour."""
    one = outcome(misses=0.25, moves=3)

    assert (0.25, 90.0) == (one.misses, one.moves_per_h)
