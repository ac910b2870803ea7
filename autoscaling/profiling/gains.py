"""What drafts bring and cost per step, by kind of prompts and K, pooled over batches and rounds.

Acceptance does not depend on the batch, so all of them say it together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from autoscaling.profiling.findings import Survival
from autoscaling.profiling.measured import CellRun, Drafting, Measurement, Steps
from autoscaling.profiling.survival import survival_of
from autoscaling.routing_rules import StepCost
from autoscaling.types import Role

MEAN: Final = "mean"  # over all kinds of prompts


@dataclass(frozen=True, slots=True)
class Gain:
    """One K: tokens that a sequence gets from a step, and draft tokens that are verified for it."""

    tokens: float
    drafted: float


NO_DRAFTS: Final = Gain(1.0, 0.0)


def drafting_by_length(measurement: Measurement, *workloads: str) -> dict[int, list[Drafting]]:
    """K -> the drafting of each run of the speculative engine; of these kinds, `MEAN` takes all of them."""
    found: dict[int, list[Drafting]] = {}
    for run in measurement.runs:
        if run.cell.engine is Role.SPECULATIVE and not {MEAN, run.cell.workload}.isdisjoint(workloads):
            found.setdefault(run.cell.draft_length, []).append(run.drafting)
    return found


def workloads_of(measurement: Measurement) -> tuple[str, ...]:
    """Kinds of prompts that were measured, in their order."""
    return tuple(dict.fromkeys(run.cell.workload for run in _in_order(measurement.runs)))


def survivals_of(measurement: Measurement) -> dict[str, Survival]:
    """By kind of prompts, and `MEAN` over all."""
    names = (*workloads_of(measurement), MEAN)
    return {name: survival_of(name, drafting_by_length(measurement, name)) for name in names}


def gains_of(drafting: Mapping[int, Sequence[Drafting]]) -> dict[int, Gain]:
    """K -> what it brings; K = 0 brings one token whatever was counted."""
    found = {0: NO_DRAFTS}
    for length, runs in sorted(drafting.items()):
        steps = sum(run.request_steps for run in runs)
        if length > 0 and steps:
            tokens = sum(run.tokens for run in runs) / steps
            found[length] = Gain(max(1.0, tokens), sum(run.drafted for run in runs) / steps)
    return found


def drafts_nothing(measurement: Measurement) -> bool:
    """Whether the speculative engine was measured at K = 0; what that costs follows from nothing else."""
    return any(
        run.cell.engine is Role.SPECULATIVE and run.cell.draft_length == 0 and steps_of(run) is not None
        for run in measurement.runs
    )


def cost_at(cost: StepCost, length: int, gain: Gain) -> StepCost:
    """The cost with K in force for prompts for which so much is drafted."""
    return replace(cost, draft_length=length, drafted=gain.drafted)


def steps_of(run: CellRun) -> Steps | None:
    """Its full steps; None where there was none, or none that took a time."""
    steps = run.steps
    if steps is None or steps.count < 1 or not math.isfinite(steps.step_s) or steps.step_s <= 0:
        return None
    return steps if math.isfinite(steps.context_tokens) else None


def _in_order(runs: Iterable[CellRun]) -> list[CellRun]:
    return sorted(runs, key=lambda run: (run.cell.workload, run.cell.sequences))
