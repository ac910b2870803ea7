"""What `benchmarks.mixed` says about its conditions, and one run against a service that is none."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from app.demo.answers import Answer, Phase
from autoscaling.request_line import Outcome
from autoscaling.route_reasons import RouteReason
from autoscaling.routing_rules import StepCost
from autoscaling.types import Role, Tier
from benchmarks.errors import BenchError
from benchmarks.intervals import Interval, difference, ratio
from benchmarks.mixed import bench_with, measure
from benchmarks.mixed_calibrate import Calibration
from benchmarks.mixed_figures import (
    GAIN,
    LOSS,
    OVER_TIER,
    Block,
    attainment,
    comparisons,
    figures,
    reasons,
    routed,
    time_ms,
    tokens_per_s,
)
from benchmarks.mixed_fit import Cost, Drafting, Point
from benchmarks.mixed_plan import Condition, Plan, Window
from benchmarks.mixed_records import Recorded, agreement, of_lines, read_records, reason_of
from benchmarks.mixed_report import page, sentences, targets
from benchmarks.mixed_run import Asked, expected_s
from benchmarks.mixed_tables import Run, condition_rows, guest_rows, reason_table

WINDOW = Window(12.0, 1.0, 1.0)  # 11 s of loops, 10 s of arrivals
FAKE = Path(__file__).with_name("mixed_fake.py")


def answer(tier: Tier, tokens: int, tpot_s: float = 0.05, **changes: object) -> Answer:
    """A complete answer."""
    found = Answer(
        id=f"{tier}-{tokens}",
        tier=tier,
        sample="code-1",
        phase=Phase.MIXED,
        outcome=Outcome.OK,
        began_s=2.0,
        e2e_s=3.0,
        ttft_s=0.5,
        stream_s=tpot_s * (tokens - 1),
        tokens=tokens,
        reason=f"tier_{tier}",
    )
    return replace(found, **changes)  # type: ignore[arg-type]


def block(index: int, condition: Condition, *answers: Answer) -> Block:
    return Block(index, condition, answers, WINDOW)


def three(index: int, standard: int, batch: int = 100) -> list[Block]:
    """One round: classes bring `standard` tokens in time, backfill doubles batch."""
    fast, late = answer(Tier.INTERACTIVE, 110), answer(Tier.INTERACTIVE, 110, 0.07)
    work = answer(Tier.BATCH, batch)
    return [
        block(index, Condition.TIER_ONLY, fast, answer(Tier.STANDARD, 100), work),
        block(index, Condition.CLASSES, fast, answer(Tier.STANDARD, standard), work),
        block(index, Condition.CLASSES_BACKFILL, fast, late, answer(Tier.STANDARD, 100), work, work),
    ]


def run(blocks: list[Block], records: Mapping[str, Recorded] | None = None, **changes: object) -> Run:
    cost = StepCost(0.035, 0.0015)
    calibration = Calibration(
        points={role: [Point(1, 1.0, 0.037)] for role in Role},
        costs=dict.fromkeys(Role, cost),
        drafting=Drafting({"mean": 1.4}, 1.6),
        request=Cost(0.25, 30),
        context_tokens=300.0,
        rate_per_s=1.2,
    )
    compared = comparisons(blocks)
    found = figures(blocks, compared, records or {})
    whole = Run("simulated", True, 4, calibration, blocks, records or {}, compared, found)
    return replace(whole, **changes)  # type: ignore[arg-type]


# --- figures


def test_tokens_count_when_their_answer_kept_its_objectives() -> None:
    """Loops by the seconds of their window, arrivals by theirs; batch has no objective."""
    found = block(
        0,
        Condition.CLASSES,
        answer(Tier.INTERACTIVE, 110),
        answer(Tier.INTERACTIVE, 99, 0.061),
        answer(Tier.INTERACTIVE, 99, ttft_s=2.1),
        answer(Tier.STANDARD, 100, 0.11),
        answer(Tier.STANDARD, 90, outcome=Outcome.NO_CAPACITY),
        answer(Tier.BATCH, 55, 9.0),
        answer(Tier.BATCH, 50, outcome=Outcome.FAILED),
    )

    assert 10.0 == tokens_per_s(found, [Tier.INTERACTIVE])
    assert 10.0 == tokens_per_s(found, [Tier.STANDARD])
    assert 5.0 == tokens_per_s(found, [Tier.BATCH])
    assert 20.0 == tokens_per_s(found, [Tier.INTERACTIVE, Tier.STANDARD])
    assert pytest.approx(1 / 3) == attainment(found.answers, Tier.INTERACTIVE)
    assert 0.5 == attainment(found.answers, Tier.STANDARD)


def test_what_cannot_be_judged_counts_neither_way() -> None:
    """An answer that came in one piece tells no pace."""
    whole = answer(Tier.INTERACTIVE, 50, stream_s=None)

    assert attainment([whole], Tier.INTERACTIVE) is None
    assert 1.0 == attainment([whole, answer(Tier.INTERACTIVE, 50)], Tier.INTERACTIVE)


def test_a_ratio_has_the_interval_of_its_rounds() -> None:
    """Totals over totals; the spread is that of the rounds around it, by Student's t."""
    found = ratio([(100.0, 120.0), (100.0, 130.0), (200.0, 230.0)])
    assert found is not None
    assert 1.2 == found.value
    # The residuals 0, 0.075, -0.075 of the mean have deviation 0.075; t of 2 degrees is 4.303.
    assert pytest.approx(1.2 - 4.303 * 0.075 / 3**0.5) == found.low
    assert pytest.approx(1.2 + 4.303 * 0.075 / 3**0.5) == found.high

    assert Interval(2.0) == ratio([(1.0, 2.0)])
    assert ratio([(0.0, 2.0), (0.0, 1.0)]) is None
    assert ratio([]) is None


def test_a_difference_is_the_mean_of_its_rounds() -> None:
    """And one round has no interval."""
    found = difference([(1.0, 0.9), (0.9, 0.9)])
    assert found is not None
    assert pytest.approx(0.05) == found.value
    assert pytest.approx(0.05 - 12.706 * 0.05) == found.low
    assert found.holds(0.0)

    assert Interval(0.5) == difference([(1.0, 0.5)])
    assert difference([]) is None


def test_conditions_are_compared_round_by_round() -> None:
    """Interactive brings 10 tokens a second in each; standard 10 with the tier alone, 16 with classes."""
    found = comparisons([*three(0, 160), *three(1, 160)])

    assert Interval(1.3, 1.3, 1.3) == found[OVER_TIER]
    assert Interval(0.5, 0.5, 0.5) == found[LOSS]
    assert Interval(2.0, 2.0, 2.0) == found[GAIN]


def test_a_comparison_without_both_conditions_is_absent() -> None:
    """Absent is not measured, never zero."""
    found = comparisons([block(0, Condition.CLASSES, answer(Tier.INTERACTIVE, 10))])

    assert {} == found


def test_a_spill_is_held_to_the_objective_of_its_own_tier() -> None:
    """By the record's reason, whatever the answer's head said; a target only where something spilled."""
    spill = {
        "i": Recorded("code", "plain", "spill", "met"),
        "s": Recorded("chat", "plain", "spill", "missed"),
    }
    answers = (
        answer(Tier.INTERACTIVE, 50, id="i"),
        answer(Tier.STANDARD, 50, 0.13, id="s"),
        answer(Tier.STANDARD, 50, id="other"),
    )
    blocks = [block(0, Condition.CLASSES, *answers)]

    assert (1, 2) == routed(answers, spill, RouteReason.SPILL)
    found = figures(blocks, {}, spill)
    assert (2.0, 0.5) == (found["spilled"], found["spilled_in_time_share"])
    assert {LOSS, "spilled_in_time_share"} == set(targets(found))
    assert "spilled_in_time_share" not in figures(blocks, {}, {})
    assert {LOSS} == set(targets(figures(blocks, {}, {})))


def test_figures_of_a_condition_are_of_all_its_rounds() -> None:
    """Rates are means of rounds, times are of all answers; a condition that was not measured is absent."""
    found = figures([*three(0, 100), *three(1, 100)], {}, {})

    assert 10.0 == found["tier_only_interactive_in_time_tokens_per_s"]
    assert 0.5 == found["classes_backfill_interactive_attainment"]
    assert pytest.approx(60.0) == found["classes_backfill_interactive_tpot_p50_ms"]
    assert 500.0 == found["classes_standard_ttft_p95_ms"]
    assert pytest.approx(200 / 11, abs=1e-4) == found["classes_backfill_batch_in_time_tokens_per_s"]
    assert not [name for name in found if name.startswith("no_reserve")]
    assert time_ms([], Tier.STANDARD, "ttft_s", 95) is None


# --- records


def test_a_record_tells_the_reason_and_an_answer_without_one_tells_it_itself() -> None:
    """Lines of other kinds are left out; a request without any pool has the reason `none`."""
    request = {"id": "a", "tier": "batch", "workload": "chat", "pool": "plain", "reason": "backfill"}
    records = of_lines([{"kind": "request", "request": request}, {"kind": "start", "id": "x"}])

    assert {"a": Recorded("chat", "plain", "backfill", None)} == records
    assert "backfill" == reason_of(answer(Tier.BATCH, 5, id="a"), records)
    assert "tier_batch" == reason_of(answer(Tier.BATCH, 5, id="b"), records)
    lost = answer(Tier.BATCH, 5, id="c", reason=None)
    assert {(Tier.BATCH, "none"): 1} == reasons([lost], records)


def test_verdicts_are_compared_where_both_sides_have_one() -> None:
    """Batch has no objective, and an unknown verdict is none."""
    records = {
        "a": Recorded("code", None, None, "met"),
        "b": Recorded("code", None, None, "met"),
        "c": Recorded("code", None, None, "unknown"),
        "d": Recorded("code", None, None, "met"),
    }
    answers = [
        answer(Tier.INTERACTIVE, 50, id="a"),
        answer(Tier.INTERACTIVE, 50, 0.07, id="b"),
        answer(Tier.INTERACTIVE, 50, id="c"),
        answer(Tier.BATCH, 50, id="d"),
        answer(Tier.INTERACTIVE, 50, id="e"),
    ]

    assert (1, 2) == agreement(answers, records)


def test_a_service_without_records_voids_the_run(tmp_path: Path) -> None:
    """Reasons would be missing."""
    (tmp_path / "requests.jsonl").touch()
    with pytest.raises(BenchError, match="no record of a request"):
        read_records(tmp_path)


# --- words


def test_the_page_says_when_classes_add_nothing() -> None:
    """Rounds of 0.8 and 1.3 have an interval around 1; equal rounds of 1.3 have not."""
    unsure = "does not show that classes add anything"

    assert any(unsure in line for line in sentences(run([*three(0, 60), *three(1, 160)])))
    sure = sentences(run([*three(0, 160), *three(1, 160)]))
    assert not any(unsure in line for line in sure)
    assert "With classes there were more in-time tokens than with the tier alone." in sure
    fewer = sentences(run([*three(0, 40), *three(1, 40)]))
    assert "With classes there were fewer in-time tokens than with the tier alone." in fewer
    assert any("One round has no interval" in line for line in sentences(run(three(0, 160))))


def test_the_page_says_what_was_left_out() -> None:
    """Spills that never came, samples that an engine refuses, a profile that was not used."""
    said = " ".join(sentences(run(three(0, 160), with_profile=False)))

    assert "No request was spilled" in said
    assert "reaches back into the condition before" in said


def test_the_tables_have_a_row_or_column_for_each_condition() -> None:
    """Those that were measured, in their order; what left its own pool has rows of its own."""
    records = {"batch-100": Recorded("chat", "speculative", "backfill", None)}
    found = run(three(0, 160), records)

    assert ["tier_only", "classes", "classes_backfill"] == [row[0] for row in condition_rows(found)]
    head, rows = reason_table(found)
    assert ("tier", "reason", "tier_only", "classes", "classes_backfill") == head
    assert ["batch", "backfill", "1", "1", "2"] in rows
    assert ["classes_backfill", "backfill", "batch", "2", "2"] in guest_rows(found)
    text = page(found)
    assert "TTFT 2 s, TPOT 0.06 s" in text
    assert "| plain | 1 | 1.00 | 37.0 | 36.5 |" in text


# --- a whole run


def command(port: int, settings: Path) -> list[str]:
    return [sys.executable, str(FAKE), "--port", str(port), "--settings", str(settings)]


@pytest.mark.long
def test_a_run_calibrates_switches_measures_and_leaves_its_results(tmp_path: Path) -> None:
    """Against a process that answers like the service, obeys its files, and refuses one sample."""
    plan = Plan(1, Window(2.5, 0.3, 0.3), 0.5, 2, (Condition.CLASSES, Condition.CLASSES_BACKFILL))
    asked = Asked(plan, "simulated", True, tmp_path / "results", tmp_path / "answers.jsonl")

    status = bench_with(asked, command, Console(quiet=True))

    loss = json.loads((tmp_path / "results" / "mixed.json").read_text())["figures"][LOSS]
    assert int(loss > 0.05) == status
    text = (tmp_path / "results" / "mixed.md").read_text()
    assert "| batch | backfill | 0 |" in text
    assert "Left out, since an engine refuses them: structured-1." in text
    assert "No request was spilled" in text
    answers = [json.loads(line) for line in (tmp_path / "answers.jsonl").read_text().splitlines()]
    assert {"classes", "classes_backfill"} == {one["condition"] for one in answers}
    assert not [one for one in answers if one["sample"] == "structured-1"]


def test_a_service_that_ends_at_its_start_voids_the_run(tmp_path: Path) -> None:
    """Its last words are in the message."""
    asked = Asked(Plan(1, WINDOW, 1.0, 2), "simulated", True, tmp_path, None)

    with pytest.raises(BenchError, match="service ended with status 3 at its start:\n  no model"):
        measure(asked, lambda *_: ["sh", "-c", "echo no model; exit 3"], Console(quiet=True))


def test_a_run_is_expected_to_take_longer_with_more_rounds() -> None:
    """Each condition takes its window, a switch and the end of what is open."""
    plan = Plan(1, Window(40.0, 5.0, 5.0), 9.0, 3)

    assert 3 * 50.0 == expected_s(replace(plan, rounds=2)) - expected_s(plan)
