"""From the runs of `benchmarks.evaluate` to rows, figures and targets; pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from scipy import stats

from benchmarks.evaluate_cells import Cells, Panel, Plan
from benchmarks.evaluate_compare import Row, best_static
from benchmarks.evaluate_plan import DELAY_S, FLEET, MOST_STATIC_MISSES, Traffic
from benchmarks.evaluate_records import FleetRun, Found
from benchmarks.intervals import Interval
from benchmarks.results import Target

TARGETS: Final[Mapping[str, Target]] = MappingProxyType(
    {
        "event_fluid_attainment_gap": ("<=", 0.05),
        "event_fluid_batch_tokens_gap": ("<=", 0.05),
        f"fleet_24h_{FLEET}_replicas_s": ("<=", 60.0),
        f"fleet_24h_{FLEET}_replicas_gib": ("<=", 1.0),
    }
)


@dataclass(frozen=True, slots=True)
class Sensed:
    """A policy with one thing off; the words say which."""

    contender: str
    key: str
    words: str
    row: Row


@dataclass(frozen=True, slots=True)
class Gap:
    """Both models on the same loads."""

    event: Row
    fluid: Row

    @property
    def attainment(self) -> float:
        """The difference of the shares in time."""
        return abs(self.event.misses.value - self.fluid.misses.value)

    @property
    def batch(self) -> float:
        """The difference of batch tokens over those of the event model; infinite where it has none."""
        event, fluid = self.event.batch.value, self.fluid.batch.value
        return abs(fluid - event) / event if event > 0 else math.inf


@dataclass(frozen=True, slots=True)
class LongRun:
    """One policy over the whole trace at one delay; None where nothing of it ever starts."""

    delay_s: float | None
    row: Row


@dataclass(frozen=True, slots=True)
class Results:
    """Everything that a run has found, ready to be shown."""

    plan: Plan
    loads: Mapping[Traffic, tuple[str, ...]]
    panels: Mapping[Panel, tuple[Row, ...]]
    splits: Mapping[Traffic, Mapping[int, Row]]  # by speculative replicas
    best: Mapping[Traffic, Row]  # of the splits
    sensed: tuple[Sensed, ...]
    gaps: tuple[Gap, ...]
    hours: tuple[LongRun, ...]
    fleets: Mapping[int, FleetRun]


def results(plan: Plan, found: Found) -> Results:
    """Put what was found in its places; raises BenchError where a run is missing."""
    splits = {
        traffic: {size: _row(found, plan.split(traffic, size)) for size in plan.splits}
        for traffic in plan.traffics
    }
    best = {traffic: best_static(rows.values(), MOST_STATIC_MISSES) for traffic, rows in splits.items()}
    return Results(
        plan,
        {traffic: found.loads[traffic] for traffic in plan.traffics if traffic in found.loads},
        {panel: _panel(plan, found, panel, best[panel.traffic]) for panel in plan.panels},
        splits,
        best,
        tuple(
            Sensed(one.contender, one.key, one.words, _row(found, one.cells)) for one in plan.sensitivity()
        ),
        tuple(Gap(_row(found, event), _row(found, fluid)) for event, fluid in plan.gaps()),
        tuple(LongRun(one.delay_s, _row(found, one.cells)) for one in plan.hours()),
        {size: found.fleets[size] for size in plan.fleets if size in found.fleets},
    )


def figures(found: Results) -> dict[str, float]:
    """Every figure by its name; one that could not be had is left out."""
    values: dict[str, float] = {}
    for panel, rows in found.panels.items():
        for row in rows:
            name = f"{panel.traffic.value}_{panel.delay_s:g}_s_{_word(row.contender)}"
            values |= _interval(f"{name}_misses", row.misses)
            values |= _interval(f"{name}_batch_tokens_per_s", row.batch)
    for one in found.sensed:
        name = f"sensitivity_{_word(one.contender)}_{_word(one.key)}"
        values[f"{name}_misses"] = one.row.misses.value
        values[f"{name}_batch_tokens_per_s"] = one.row.batch.value
    for hour in found.hours:
        delay = "" if hour.delay_s is None else f"_{hour.delay_s:g}_s"
        name = f"long_{hour.row.traffic.value}{delay}_{_word(hour.row.contender)}"
        values |= _interval(f"{name}_misses", hour.row.misses)
        values |= _interval(f"{name}_batch_tokens_per_s", hour.row.batch)
    if found.gaps:
        gaps = {
            "event_fluid_attainment_gap": max(one.attainment for one in found.gaps),
            "event_fluid_batch_tokens_gap": max(one.batch for one in found.gaps),
        }
        values |= {name: gap for name, gap in gaps.items() if math.isfinite(gap)}
    for size, fleet in found.fleets.items():
        values[f"fleet_24h_{size}_replicas_s"] = fleet.seconds
        values[f"fleet_24h_{size}_replicas_gib"] = fleet.gib
    exponent = growth(found.fleets)
    if exponent is not None:
        values["fleet_cost_exponent"] = exponent
    return values


def growth(fleets: Mapping[int, FleetRun]) -> float | None:
    """The power of replicas that the seconds grow with: 1 is linear; None with fewer than three sizes."""
    if len(fleets) < 3:
        return None
    sizes = sorted(fleets)
    found = stats.linregress(
        [math.log(size) for size in sizes], [math.log(fleets[size].seconds) for size in sizes]
    )
    return float(found.slope)


def _panel(plan: Plan, found: Found, panel: Panel, best: Row) -> tuple[Row, ...]:
    """The contenders there, ours without backfill at its delay, and the best static split if it is new."""
    rows = [_row(found, plan.policy(panel.traffic, name, panel.delay_s)) for name in plan.names(panel)]
    if panel.delay_s == DELAY_S:
        rows.append(_row(found, plan.no_backfill(panel.traffic)))
    return tuple(rows) if best.contender in plan.contenders else (*rows, best)


def _row(found: Found, cells: Cells) -> Row:
    return Row(tuple(found.of(cells)))


def _interval(name: str, one: Interval) -> dict[str, float]:
    ends = {} if one.low is None or one.high is None else {f"{name}_low": one.low, f"{name}_high": one.high}
    return {name: one.value, **ends}


def _word(name: str) -> str:
    return name.replace("-", "_").replace(".", "_")
