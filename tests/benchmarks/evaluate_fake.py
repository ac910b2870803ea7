"""Outcomes, rows and whole results of `benchmarks.evaluate` as a run would leave them, for tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from benchmarks.evaluate_cells import Plan
from benchmarks.evaluate_compare import Row
from benchmarks.evaluate_outcomes import Outcome
from benchmarks.evaluate_plan import Cell, Model, Traffic
from benchmarks.evaluate_records import FleetRun, Found

PLAN = Plan(
    contenders=("twinpool", "one-pool-k-table-our-routing", "static-50", "hindsight"),
    seeds=(1, 2),
    sensed_seeds=1,
    minutes=2.0,
    splits=(10, 16),
    fleets=(125, 500, 1000),
    long_minutes=50.0,
    delays_s=(1.0, 30.0, 90.0),
)
# Misses, and batch tokens per second, of each policy; a seed moves both by a little.
BROUGHT = {
    "twinpool": (0.05, 40_000.0),
    "one-pool-k-table-our-routing": (0.10, 45_000.0),
    "static-50": (0.02, 42_000.0),
    "static-31.25": (0.005, 44_000.0),
    "hindsight": (0.001, 50_000.0),
    "twinpool-no-backfill": (0.01, 30_000.0),
    "one-pool-k-table-our-routing-no-backfill": (0.01, 31_000.0),
}


def outcome(
    contender: str = "twinpool",
    seed: int = 1,
    misses: float = 0.05,
    batch: float = 40_000.0,
    **changes: object,
) -> Outcome:
    """Two minutes of conversations."""
    cell = Cell(Model.EVENT, Traffic.CONVERSATION, contender, seed, 2.0, 30.0)
    one = Outcome(
        cell=cell,
        attainment=1.0 - misses,
        refused=0.0,
        failed=0.0,
        interactive_tokens_per_s=30_000.0,
        batch_tokens_per_s=batch,
        moves=0,
        reversals=0,
        switching_share=0.0,
        short_share=0.0,
        plain_share=0.6,
        seconds=120.0,
    )
    return replace(one, **changes)  # type: ignore[arg-type]


def row(
    contender: str = "twinpool",
    misses: Sequence[float] = (0.05, 0.05),
    batch: Sequence[float] = (40_000.0, 40_000.0),
    **changes: object,
) -> Row:
    """One policy, a seed for each pair of figures."""
    pairs = enumerate(zip(misses, batch, strict=True), 1)
    return Row(tuple(outcome(contender, seed, missed, sold, **changes) for seed, (missed, sold) in pairs))


def found(plan: Plan = PLAN) -> Found:
    """Everything that a plan asks for, by `BROUGHT`."""
    kept = Found()
    for cell in plan.cells():
        misses, batch = BROUGHT[cell.name]
        one = outcome(cell.contender, cell.seed, misses + 0.001 * cell.seed, batch + 10.0 * cell.seed)
        kept.outcomes[cell] = replace(one, cell=cell)
    for size in plan.fleets:
        kept.fleets[size] = FleetRun(size, 24.0, 0.05 * size, 0.5, 0.9)
    for traffic in plan.traffics:
        kept.loads[traffic] = (f"Interactive: {traffic.value}.", "Batch: documents.")
    return kept
