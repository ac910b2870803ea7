"""The tables of `benchmarks.evaluate`, as rows of text; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from benchmarks.evaluate_compare import Row, beaten
from benchmarks.evaluate_figures import Gap, LongRun, Sensed
from benchmarks.evaluate_plan import BOUNDS, OURS, REPLICAS
from benchmarks.evaluate_records import FleetRun
from benchmarks.intervals import Interval
from benchmarks.results import number

PARETO_HEAD: Final = (
    "policy",
    "misses %",
    "batch tok/s",
    "moves/h",
    "reversals",
    "switching %",
    "plain %",
    "short %",
    "standing",
)
SPLIT_HEAD: Final = ("speculative / plain", "misses %", "batch tok/s", "best")
SENSED_HEAD: Final = ("policy", "what is off", "misses %", "batch tok/s", "moves/h")
GAP_HEAD: Final = ("load", "in time, event", "fluid", "gap", "batch tok/s, event", "fluid", "gap")
LONG_HEAD: Final = (
    "load",
    "policy",
    "delay s",
    "misses %",
    "batch tok/s",
    "moves/h",
    "switching %",
    "plain %",
)
FLEET_HEAD: Final = ("replicas", "seconds", "seconds per 1,000", "GiB", "interactive in time %")


def pareto_rows(rows: Sequence[Row], best: Row | None) -> list[list[str]]:
    """One panel, those with fewest misses first; `best` is the static split that is named as such."""
    ordered = sorted(rows, key=lambda one: (one.misses.value, -one.batch.value))
    return [
        [
            name_of(one, best),
            percent(one.misses),
            with_interval(one.batch),
            number(one.over(lambda found: found.moves_per_h)),
            number(one.over(lambda found: found.reversals)),
            number(100 * one.over(lambda found: found.switching_share)),
            number(100 * one.over(lambda found: found.plain_share)),
            number(None if one.short_share is None else 100 * one.short_share),
            standing(one, rows),
        ]
        for one in ordered
    ]


SHORT_HEAD: Final = ("policy", "misses %", "batch tok/s", "moves/h", "standing")


def short_rows(rows: Sequence[Row]) -> list[list[str]]:
    """One panel for a terminal, without intervals."""
    ordered = sorted(rows, key=lambda one: (one.misses.value, -one.batch.value))
    return [
        [
            one.contender,
            number(100 * one.misses.value),
            number(one.batch.value),
            number(one.over(lambda found: found.moves_per_h)),
            standing(one, rows).strip("*"),
        ]
        for one in ordered
    ]


def standing(row: Row, rows: Sequence[Row]) -> str:
    """Whether a policy is beaten in its panel, and by whom first."""
    if row.contender in BOUNDS:
        return "knows the trace"
    by = beaten(row, rows)
    return f"dominated by {by[0].by.contender}" if by else "**Pareto-optimal**"


def name_of(row: Row, best: Row | None) -> str:
    """The policy's name; ours stands out, and the best static split is called so."""
    if row.contender == OURS:
        return f"**{row.contender}** (default)"
    if best is not None and row.contender == best.contender:
        return f"{row.contender} (best static)"
    return row.contender


def split_rows(splits: Mapping[int, Row], best: Row) -> list[list[str]]:
    """Static splits by their speculative replicas."""
    return [
        [
            f"{speculative} / {REPLICAS - speculative}",
            percent(row.misses),
            with_interval(row.batch),
            "best" if row is best else "",
        ]
        for speculative, row in sorted(splits.items())
    ]


def sensed_rows(sensed: Iterable[Sensed]) -> list[list[str]]:
    """What wrong beliefs and late figures change."""
    return [
        [
            one.contender,
            one.words,
            percent(one.row.misses),
            with_interval(one.row.batch),
            number(one.row.over(lambda found: found.moves_per_h)),
        ]
        for one in sensed
    ]


def gap_rows(gaps: Iterable[Gap]) -> list[list[str]]:
    """Both models on the same loads."""
    return [
        [
            one.event.traffic.value,
            f"{1 - one.event.misses.value:.3f}",
            f"{1 - one.fluid.misses.value:.3f}",
            f"{one.attainment:.3f}",
            number(one.event.batch.value),
            number(one.fluid.batch.value),
            f"{one.batch:.3f}",
        ]
        for one in gaps
    ]


def long_rows(hours: Iterable[LongRun]) -> list[list[str]]:
    """Policies over whole traces, by load and delay."""
    return [
        [
            one.row.traffic.value,
            name_of(one.row, None),
            "any" if one.delay_s is None else number(one.delay_s),
            percent(one.row.misses),
            with_interval(one.row.batch),
            number(one.row.over(lambda found: found.moves_per_h)),
            number(100 * one.row.over(lambda found: found.switching_share)),
            number(100 * one.row.over(lambda found: found.plain_share)),
        ]
        for one in hours
    ]


def fleet_rows(fleets: Mapping[int, FleetRun]) -> list[list[str]]:
    """Fleets by their size."""
    return [
        [
            f"{size:,}",
            number(one.seconds),
            number(1000 * one.seconds / size),
            number(one.gib),
            number(100 * one.attainment),
        ]
        for size, one in sorted(fleets.items())
    ]


def percent(found: Interval) -> str:
    """A share in percent, and in brackets where it lies; never below 0 or above 100."""
    return with_interval(
        Interval(
            100 * found.value,
            None if found.low is None else max(0.0, 100 * found.low),
            None if found.high is None else min(100.0, 100 * found.high),
        )
    )


def with_interval(found: Interval) -> str:
    """A value, and in brackets where it lies with 95 %."""
    if found.low is None or found.high is None:
        return number(found.value)
    return f"{number(found.value)} ({number(found.low)} to {number(found.high)})"
