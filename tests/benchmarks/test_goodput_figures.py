"""What `benchmarks.goodput` makes of its answers: goodput, ratios, verdicts, and the page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from autoscaling.profiling.findings import (
    Estimate,
    Findings,
    Fit,
    PoolAnswer,
    PoolPrediction,
    Survival,
    TableRow,
)
from autoscaling.profiling.measured import Fingerprint, Measurement
from autoscaling.types import Tier
from benchmarks.goodput_figures import (
    Block,
    Compared,
    attainment,
    batch_tokens_per_s,
    comparisons,
    curve,
    figures,
    goodput,
    in_time,
    over,
    targets,
)
from benchmarks.goodput_load import Sent
from benchmarks.goodput_plan import (
    CONDITIONS,
    FULL,
    TPOTS_S,
    Condition,
    Configuration,
    Method,
    Window,
    ours_at,
)
from benchmarks.goodput_plan import RoutingKind as Kind
from benchmarks.goodput_plot import plot
from benchmarks.goodput_profile import calibrated as calibrated_by
from benchmarks.goodput_profile import predictions
from benchmarks.goodput_records import Calibration, LeftOut
from benchmarks.goodput_report import Run, page, sentences
from benchmarks.goodput_rules import Calibrated, Predicted
from benchmarks.goodput_tables import curve_rows, prediction_rows, table_words, with_interval
from benchmarks.intervals import Interval
from benchmarks.results import Verdict, judge
from tests.benchmarks.goodput_fake import calibrated

TWO = ours_at(Configuration.TWO_POOLS, 0.05)
TABLE = ours_at(Configuration.ONE_POOL_TABLE, 0.05)
PLAIN = ours_at(Configuration.ALL_PLAIN, 0.05)
WINDOW = Window(warm_s=3.0, measured_s=20.0)


def interactive(tpot_s: float | None = 0.045, ttft_s: float | None = 1.0, **changes: object) -> Sent:
    """An answer of 64 tokens."""
    one = Sent(Tier.INTERACTIVE, "code-1", 5.0, 0, "least_loaded", None, ttft_s, tpot_s, 64)
    return replace(one, **changes)  # type: ignore[arg-type]


def batch(tokens: float) -> Sent:
    """An answer of 96 tokens, so many of them in the window."""
    return Sent(Tier.BATCH, "chat-1", 2.0, 1, "tier_batch", None, 0.5, 0.05, 96, counted_tokens=tokens)


def block(condition: Condition, round_: int, batch_tokens: float, *more: Sent) -> Block:
    """One condition in one round of n-gram."""
    return Block(Method.NGRAM, round_, condition, WINDOW, [batch(batch_tokens), *more])


def found(answer: PoolAnswer = PoolAnswer.TWO_POOLS, margin: float = 1.3) -> dict[Method, Calibrated]:
    """A profile that was sure at 50 ms."""
    return {Method.NGRAM: calibrated(answer, margin)}


def rounds(heights: Mapping[Condition, tuple[float, ...]]) -> list[Block]:
    """Batch tokens per second of each condition by round."""
    return [
        block(condition, index, 20 * value)
        for condition, values in heights.items()
        for index, value in enumerate(values)
    ]


def compared_of(
    heights: Mapping[Condition, tuple[float, ...]],
    answer: PoolAnswer = PoolAnswer.TWO_POOLS,
    margin: float = 1.3,
) -> Compared:
    """The one comparison at 50 ms."""
    (one,) = comparisons(rounds(heights), found(answer, margin))
    return one


# --- goodput


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (interactive(), True),
        (interactive(tpot_s=0.05, ttft_s=3.0), True),
        (interactive(tpot_s=0.051), False),
        (interactive(ttft_s=3.01), False),
        (interactive(error="refused", slot=None), False),
        (interactive(tpot_s=None), False),
        (interactive(ttft_s=None), False),
    ],
)
def test_in_time_is_both_objectives_of_a_whole_answer(one: Sent, expected: bool) -> None:
    """3 s to the first token and, here, 50 ms for each later one; what is unknown was not in time."""
    assert expected == in_time(one, 0.05)


def test_goodput_weighs_interactive_tokens_in_time_and_adds_batch() -> None:
    """(4 x 2 answers of 64 + 1000) / 20 s; without a weight (2 x 64 + 1000) / 20 s."""
    one = block(TWO, 0, 1000.0, interactive(), interactive(), interactive(tpot_s=0.055))

    assert 75.6 == goodput(one, 0.05)
    assert 56.4 == goodput(one, 0.05, weight=1.0)
    assert 50.0 == goodput(one, 0.02)
    assert 88.4 == goodput(one, 0.06)
    assert 50.0 == batch_tokens_per_s(one)


def test_attainment_counts_refused_requests() -> None:
    """All that arrived are below the line, over all rounds; without any it is unknown."""
    some = [
        block(TWO, 0, 0.0, interactive(), interactive(error="refused", slot=None)),
        block(TWO, 1, 0.0, interactive(), interactive(tpot_s=0.2)),
    ]

    assert 0.5 == attainment(some, 0.05)
    assert attainment([block(TWO, 0, 9.0)], 0.05) is None


def test_a_curve_has_an_interval_over_rounds() -> None:
    """Means of 100 and 110 lie within 105 +- 12.706 * 7.07 / sqrt(2)."""
    one = curve(rounds({TWO: (100.0, 110.0)}))[0.05]

    assert 105.0 == one.value
    assert (41.47, 168.53) == (round(one.low or 0, 2), round(one.high or 0, 2))
    assert {} == curve([])


def test_ratios_are_paired_by_round() -> None:
    """A round that only one condition has is left out; rounds that all are 20 % better have no spread."""
    some = rounds({TWO: (120.0, 60.0, 500.0), TABLE: (100.0, 50.0)})
    two = [one for one in some if one.condition == TWO]
    table = [one for one in some if one.condition == TABLE]

    assert Interval(1.2, 1.2, 1.2) == over(two, table, 0.05)


# --- our configuration against the others


def test_our_configuration_is_what_the_profile_names() -> None:
    """Under our routing, whatever turned out best."""
    heights = {TWO: (100.0, 100.0), TABLE: (110.0, 110.0), PLAIN: (120.0, 120.0)}

    assert TWO == compared_of(heights).ours
    assert TABLE == compared_of(heights, PoolAnswer.ONE_SPECULATIVE).ours
    assert PLAIN == compared_of(heights, PoolAnswer.ONE_PLAIN).ours


def test_the_best_other_is_the_one_with_the_highest_mean() -> None:
    """A single good round does not make it."""
    one = compared_of({TWO: (110.0, 110.0), TABLE: (100.0, 100.0), PLAIN: (130.0, 10.0)})

    assert TABLE == one.best
    assert Interval(1.1, 1.1, 1.1) == one.to_best
    assert [] == one.worse_than
    assert 1.1 == one.two_over_one


def test_a_rival_is_better_only_where_chance_does_not_explain_it() -> None:
    """Five rounds that differ by 4 % or so: 20 % more is sure, 5 % more is not."""
    one = compared_of(
        {
            TWO: (100.0, 104.0, 96.0, 102.0, 98.0),
            TABLE: (118.0, 126.0, 117.0, 120.0, 119.0),
            PLAIN: (112.0, 100.0, 104.0, 98.0, 106.0),
        }
    )

    assert [TABLE] == one.worse_than
    assert one.above[TABLE] < 0.001
    assert 0.05 < one.above[PLAIN] < 0.5


def test_more_comparisons_want_more_evidence() -> None:
    """What is sure alone may be one chance of many."""
    one = compared_of({TWO: (100.0, 104.0, 96.0), TABLE: (112.0, 109.0, 108.0)})

    assert [TABLE] == one.worse_than
    assert [] == replace(one, comparisons=50).worse_than


def test_only_rules_that_obey_the_same_objective_are_rivals() -> None:
    """At 50 ms those that obey 50 ms, and the least loaded slot, which obeys none."""
    heights = {
        TWO: (100.0, 100.0),
        ours_at(Configuration.ALL_PLAIN, 0.1): (200.0, 200.0),
        Condition(Configuration.ALL_PLAIN, Kind.LEAST_LOADED): (80.0, 80.0),
    }
    one = compared_of(heights)

    assert Condition(Configuration.ALL_PLAIN, Kind.LEAST_LOADED) == one.best
    assert 1.25 == one.two_over_one


def test_what_the_profile_names_is_compared_only_where_it_was_measured() -> None:
    """Without its blocks there is nothing to say."""
    assert [] == comparisons(rounds({TABLE: (1.0,)}), found())


@pytest.mark.parametrize(
    ("answer", "margin", "expected"),
    [
        (PoolAnswer.TWO_POOLS, 1.2, True),
        (PoolAnswer.TWO_POOLS, 1.19, False),
        (PoolAnswer.ONE_PLAIN, 1.5, False),
    ],
)
def test_a_win_is_predicted_from_a_fifth_more(answer: PoolAnswer, margin: float, expected: bool) -> None:
    """And only where two pools are the answer."""
    assert expected == compared_of({TWO: (1.0,), PLAIN: (1.0,)}, answer, margin).predicted_win


# --- figures and verdicts


def test_figures_of_a_win() -> None:
    """Predicted, measured, and nowhere worse."""
    some = rounds({TWO: (120.0, 120.0), TABLE: (100.0, 100.0)})
    values = figures(some, comparisons(some, found()))

    assert (1.2, 0.0, 1.0, 1.0) == (
        values["worst_ratio_to_best_rival"],
        values["worse_at"],
        values["predicted_wins"],
        values["predicted_wins_measured"],
    )
    assert 120.0 == values["ngram_two_pools_ours_50_ms_batch_tokens_per_s"]
    assert 100.0 == values["ngram_one_pool_table_ours_50_ms_at_20_ms_goodput_high"]
    assert {Verdict.HOLDS} == set(judge(values, targets(values)).values())


def test_figures_of_a_win_that_did_not_come() -> None:
    """Below 1.1 x the best single pool a predicted win is missed; being worse for sure is counted."""
    some = rounds({TWO: (90.0, 90.0), TABLE: (100.0, 100.0)})
    values = figures(some, comparisons(some, found()))

    assert (0.9, 1.0, 0.0) == (
        values["worst_ratio_to_best_rival"],
        values["worse_at"],
        values["predicted_wins_measured"],
    )
    assert {Verdict.MISSED} == set(judge(values, targets(values)).values())


def test_without_a_predicted_win_there_is_none_to_hold_against() -> None:
    """One pool is enough is an answer, too."""
    some = rounds({PLAIN: (100.0, 100.0), TWO: (100.0, 100.0)})
    values = figures(some, comparisons(some, found(PoolAnswer.ONE_PLAIN, 1.0)))

    assert 0.0 == values["predicted_wins"]
    assert "predicted_wins_measured" not in values
    assert ["worse_at"] == list(targets(values))


def test_one_round_shows_nothing_to_be_worse() -> None:
    """Without intervals the figure is absent, so that its target is not measured."""
    some = rounds({TWO: (50.0,), TABLE: (100.0,)})
    values = figures(some, comparisons(some, found()))

    assert Verdict.NOT_MEASURED == judge(values, targets(values))["worse_at"]


# --- tables and page


def run_of(heights: dict[Condition, tuple[float, ...]], answer: PoolAnswer, margin: float) -> Run:
    some = rounds(heights)
    known = found(answer, margin)
    return Run(
        FULL,
        {method: Calibration(method, "2026-01-01T00:00:00Z", one) for method, one in known.items()},
        {Method.EAGLE: LeftOut(Method.EAGLE, "no head")},
        some,
        comparisons(some, known),
        {Method.NGRAM: "goodput-ngram.svg"},
    )


def test_the_page_says_where_one_pool_is_enough() -> None:
    """And which method was left out."""
    run = run_of({PLAIN: (100.0, 100.0), TWO: (90.0, 90.0)}, PoolAnswer.ONE_PLAIN, 1.1)

    assert [
        "ngram: by its profile one pool is enough at every objective.",
        "eagle was left out: no head.",
    ] == sentences(run)
    assert "![Goodput against the objective, ngram](goodput-ngram.svg)" in page(run)


def test_the_page_says_where_others_sold_more() -> None:
    """A prediction that failed is named with the one that was better."""
    run = run_of({TWO: (90.0, 90.0), TABLE: (100.0, 100.0)}, PoolAnswer.TWO_POOLS, 1.3)

    assert [
        "ngram: its profile predicts that two pools win at 50 ms; "
        "at 0 of 1 they sold 1.10 x the best single pool or more.",
        "ngram at 50 ms: one_pool_table, ours at 50 ms sold more for sure than two_pools, ours at 50 ms, "
        "which the profile names.",
        "eagle was left out: no head.",
    ] == sentences(run)


def test_prescribed_acceptance_is_named_wherever_the_method_is() -> None:
    """In the headings, the sentences and the plot's words."""
    run = run_of({TWO: (90.0, 90.0), TABLE: (100.0, 100.0)}, PoolAnswer.TWO_POOLS, 1.3)
    method = Method.DRAFT_MODEL
    run = replace(
        run,
        calibrations={method: replace(run.calibrations[Method.NGRAM], method=method)},
        blocks=[replace(one, method=method) for one in run.blocks],
        compared=[replace(one, method=method) for one in run.compared],
        plots={method: "goodput-draft-model.svg"},
    )
    text = page(run)

    assert 0 == text.count("draft_model") - text.count("draft_model (synthetic acceptance)")
    assert "not this drafter's quality" in text


def test_a_row_has_a_cell_for_every_objective() -> None:
    """Mean and interval of each."""
    (row,) = curve_rows(rounds({TWO: (100.0, 100.0)}), Method.NGRAM)

    assert ["two_pools", "ours at 50 ms", *(["100.0 (100.0 to 100.0)"] * len(TPOTS_S))] == row
    assert ["-", "1.00"] == [with_interval(None), with_interval(Interval(1.0))]


def test_a_k_table_in_words() -> None:
    """Equal neighbours are put together."""
    assert "4 up to 2 sequences, 0 up to 4" == table_words((0, 4, 4, 0, 0))


def test_the_plot_is_the_same_for_the_same_data(tmp_path: Path) -> None:
    """One SVG file per method, without a date."""
    pytest.importorskip("matplotlib")
    some = rounds(dict.fromkeys(CONDITIONS, (100.0, 120.0)))

    name = plot(tmp_path, Method.NGRAM, some)
    first = (tmp_path / name).read_bytes()
    plot(tmp_path, Method.NGRAM, some)

    assert "goodput-ngram.svg" == name
    assert first == (tmp_path / name).read_bytes()


def test_predictions_are_shown_as_shares_of_the_best() -> None:
    """A configuration that was not predicted has no share."""
    predicted = Predicted(
        0.05, PoolAnswer.TWO_POOLS, 1.25, {PoolAnswer.TWO_POOLS: 500.0, PoolAnswer.ONE_PLAIN: 400.0}
    )

    assert [["50 ms", "two_pools", "1.25", "1.00", "0.80", "-"]] == prediction_rows(
        replace(calibrated(), predicted=(predicted,))
    )


def findings_of(pools: tuple[PoolPrediction, ...], table: tuple[TableRow, ...]) -> Findings:
    """Findings of two kinds of prompts."""
    fits = {
        role: Fit(role, cost, points=4, error=0.1, hold_out_error=None, hold_out_points=0, accepted=True)
        for role, cost in calibrated().costs.items()
    }
    survivals = {
        name: Survival(name, (), 1.0, 4.0, 0.5, {0: Estimate(1.0), 4: Estimate(gain)})
        for name, gain in (("chat", 1.2), ("edit", 3.0), ("mean", 2.1))
    }
    measurement = Measurement("2026-01-01T00:00:00Z", 1.0, True, False, Fingerprint("f"), engines=(), runs=())
    return Findings(
        measurement, fits, survivals, (), (), (), (), (), (), None, None, 90.0, table=table, pools=pools
    )


def test_the_rules_get_a_gain_for_every_class() -> None:
    """Chat and edits are measured, code and work on given text are edits, the others have the mean.

    A class that is left out would have the gain of another machine's drafter.
    """
    found = calibrated_by(findings_of((), (TableRow(1, 3, 4), TableRow(4, 40, 0))), 4)

    assert {
        "chat": 1.2,
        "code": 3.0,
        "grounded": 3.0,
        "math": 2.1,
        "mean": 2.1,
        "other": 2.1,
        "structured": 2.1,
        "translate": 2.1,
    } == {name: gains[4] for name, gains in found.gains.items()}
    assert (0, 4, 4, 4, *(0,) * 13) == found.table
    assert {0.1} == set(found.errors.values())


def test_predictions_are_those_at_our_objectives() -> None:
    """Others of the profile are of no use here."""
    at = {
        tpot_s: PoolPrediction(tpot_s, {PoolAnswer.TWO_POOLS: 1.0}, PoolAnswer.TWO_POOLS, 1.0)
        for tpot_s in (0.015, 0.02, 0.1)
    }

    assert (at[0.02], at[0.1]) == predictions(findings_of(tuple(at.values()), ()))
