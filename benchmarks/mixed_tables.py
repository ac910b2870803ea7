"""The tables of `benchmarks.mixed`, as rows of text; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from autoscaling.route_reasons import RouteReason
from autoscaling.types import Role, Tier
from benchmarks.intervals import Interval
from benchmarks.mixed_calibrate import Calibration
from benchmarks.mixed_figures import GAIN, LOSS, OVER_TIER, Block, of_condition, reasons, routed
from benchmarks.mixed_plan import Condition
from benchmarks.mixed_records import Recorded
from benchmarks.results import number

HEAD: Final = (
    "condition",
    "interactive tok/s in time",
    "attained",
    "TPOT p50 ms",
    "p95",
    "TTFT p95 ms",
    "standard tok/s in time",
    "attained",
    "TPOT p95 ms",
    "TTFT p95 ms",
    "batch tok/s",
)
WORDS: Final = {
    OVER_TIER: "in-time tokens of interactive and standard, classes over tier alone",
    LOSS: "interactive attainment without backfill less that with it",
    GAIN: "batch tokens, with backfill over without",
}


@dataclass(frozen=True, slots=True)
class Run:
    """Everything that a run has found."""

    engine: str
    with_profile: bool
    most_drafts: int
    calibration: Calibration
    blocks: Sequence[Block]
    records: Mapping[str, Recorded]
    compared: Mapping[str, Interval]
    found: Mapping[str, float]


def conditions(blocks: Sequence[Block]) -> list[Condition]:
    """Those that were measured, in their usual order."""
    seen = {block.condition for block in blocks}
    return [one for one in Condition if one in seen]


def condition_rows(run: Run) -> list[list[str]]:
    """One row per condition."""
    names = (
        "interactive_in_time_tokens_per_s",
        "interactive_attainment",
        "interactive_tpot_p50_ms",
        "interactive_tpot_p95_ms",
        "interactive_ttft_p95_ms",
        "standard_in_time_tokens_per_s",
        "standard_attainment",
        "standard_tpot_p95_ms",
        "standard_ttft_p95_ms",
        "batch_in_time_tokens_per_s",
    )
    return [
        [one.value, *(number(run.found.get(f"{one}_{name}")) for name in names)]
        for one in conditions(run.blocks)
    ]


def comparison_rows(compared: Mapping[str, Interval]) -> list[list[str]]:
    """One row per comparison, with its interval."""
    return [
        [WORDS[name], number(one.value), number(one.low), number(one.high)] for name, one in compared.items()
    ]


def reason_table(run: Run) -> tuple[tuple[str, ...], list[list[str]]]:
    """Head and rows: requests of each tier by route reason, one column per condition."""
    shown = conditions(run.blocks)
    counts = {one: reasons(of_condition(run.blocks, one), run.records) for one in shown}
    keys = sorted({key for one in counts.values() for key in one})
    rows = [[tier.value, why, *(str(counts[one][tier, why]) for one in shown)] for tier, why in keys]
    return ("tier", "reason", *(one.value for one in shown)), rows


def guest_rows(run: Run) -> list[list[str]]:
    """What left its own pool, and how many of these kept their own objectives."""
    rows = []
    for condition in conditions(run.blocks):
        answers = of_condition(run.blocks, condition)
        for reason in (RouteReason.SPILL, RouteReason.BACKFILL):
            for tier in Tier:
                of_tier = [one for one in answers if one.tier is tier]
                good, judged = routed(of_tier, run.records, reason)
                if judged:
                    rows.append([condition.value, reason.value, tier.value, str(judged), str(good)])
    return rows


def calibration_rows(run: Run) -> list[list[str]]:
    """One row per pool and number of streams: a step as it was measured, and as the profile has it."""
    rows = []
    for role in Role:
        cost = run.calibration.costs[role]
        for one in run.calibration.points[role]:
            fitted = cost.base_s + cost.per_token_s * one.tokens
            measured, modelled = number(1000 * one.step_s), number(1000 * fitted)
            rows.append([role.value, str(one.streams), number(one.tokens), measured, modelled])
    return rows
