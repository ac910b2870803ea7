"""Measured speed-ups, the tax of K = 0, and time per token against throughput, with intervals over rounds.

The speculative engine's steps are compared with the plain one's of the same round, batch and prompts.
Intervals are Student's of the rounds' logarithms; half the width of that of the tokens per step is added as
squares add (delta method), since the two vary independently.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Final

from scipy import stats

from autoscaling.profiling.findings import Estimate, Fit, FrontierPoint, SpeedUp, Survival
from autoscaling.profiling.gains import Gain, cost_at, steps_of
from autoscaling.profiling.losses import losses
from autoscaling.profiling.measured import CellRun, Measurement, Steps
from autoscaling.profiling.whole_answers import whole_step_s
from autoscaling.routing_rules import StepCost
from autoscaling.step_cost import step_s
from autoscaling.types import Role

CERTAIN: Final = Estimate(1.0, 1.0, 1.0)

Beside = list[tuple[CellRun, Steps, float]]  # of speculative runs, each with the seconds of the plain step


def speed_ups(
    measurement: Measurement,
    survivals: Mapping[str, Survival],
    gains: Mapping[str, Mapping[int, Gain]],
    fits: Mapping[Role, Fit],
) -> tuple[SpeedUp, ...]:
    """One for every cell of the speculative engine with K > 0 that the plain one has a pair for."""
    costs = {role: fit.cost for role, fit in fits.items()}
    found = []
    for (workload, sequences, length), pairs in sorted(_beside(measurement.runs).items()):
        estimate, gain = survivals[workload].tokens_per_step.get(length), gains[workload].get(length)
        if length == 0 or estimate is None or gain is None:
            continue
        context = statistics.fmean(steps.context_tokens for _, steps, _ in pairs) / sequences
        cost = costs.get(Role.SPECULATIVE)
        ratios = [plain / whole_step_s(run.cell, steps, cost, gain) for run, steps, plain in pairs]
        # Without K = 0 nothing tells what drafting costs from what the engine costs that could draft.
        parts = losses(costs, sequences, context, length, gain) if 0 in gains[workload] else None
        found.append(
            SpeedUp(
                workload=workload,
                sequences=sequences,
                draft_length=length,
                measured=_times(_over_rounds(ratios), estimate),
                modelled=modelled(costs, sequences, context, length, gain),
                verification=None if parts is None else parts.verification,
                drafting=None if parts is None else parts.drafting,
                rest=None if parts is None else parts.rest,
            )
        )
    return tuple(found)


def modelled(
    costs: Mapping[Role, StepCost], sequences: float, context_tokens: float, length: int, gain: Gain
) -> float | None:
    """The speed-up by the cost models; None without both."""
    if Role.PLAIN not in costs or Role.SPECULATIVE not in costs:
        return None
    plain = step_s(costs[Role.PLAIN], sequences, context_tokens)
    drafted = step_s(cost_at(costs[Role.SPECULATIVE], length, gain), sequences, context_tokens)
    return gain.tokens * plain / drafted


def k0_tax(measurement: Measurement) -> tuple[tuple[int, Estimate], ...]:
    """Sequences, and the plain engine's tokens/s over the speculative one's that drafts nothing.

    Every kind of prompts in every round counts as one value: what a step costs hardly depends on the kind.
    """
    by_batch: dict[int, list[float]] = {}
    for (_, sequences, length), pairs in _beside(measurement.runs).items():
        if length == 0:
            ratios = [steps.step_s / plain for _, steps, plain in pairs]
            by_batch.setdefault(sequences, []).extend(ratios)
    return tuple((size, _over_rounds(ratios)) for size, ratios in sorted(by_batch.items()))


def frontier(
    measurement: Measurement,
    survivals: Mapping[str, Survival],
    gains: Mapping[str, Mapping[int, Gain]],
    fits: Mapping[Role, Fit],
) -> tuple[FrontierPoint, ...]:
    """Every cell as time per token and tokens per second of the whole batch."""
    # Several plain runs of one round, one beside each K, count as one: what slows a round slows all of them.
    groups: dict[tuple[Role, str, int, int], dict[int, list[float]]] = {}
    for run in measurement.runs:
        if (steps := steps_of(run)) is not None:
            cell = run.cell
            key = (cell.engine, cell.workload, cell.draft_length, cell.sequences)
            cost = fits[cell.engine].cost if cell.engine in fits else None
            taken = whole_step_s(cell, steps, cost, gains[cell.workload].get(cell.draft_length))
            groups.setdefault(key, {}).setdefault(run.round, []).append(taken)
    found = []
    for (role, workload, length, sequences), rounds in sorted(groups.items()):
        gain = CERTAIN if role is Role.PLAIN else survivals[workload].tokens_per_step.get(length)
        if gain is None:
            continue
        per_second = _times(_over_rounds([1.0 / statistics.fmean(steps) for steps in rounds.values()]), gain)
        found.append(
            FrontierPoint(
                engine=role,
                draft_length=length,
                workload=workload,
                sequences=sequences,
                tpot_s=_inverse(per_second),
                tokens_per_s=_scaled(per_second, sequences),
            )
        )
    return tuple(found)


def _beside(runs: Sequence[CellRun]) -> dict[tuple[str, int, int], Beside]:
    """Kind of prompts, sequences and K -> each run of the speculative engine, and the plain step beside it.

    That is the mean over the plain runs of the round, one of which ran beside each K: what disturbs the
    engines is their own, so that a single one would only be noisier.
    """
    plain: dict[tuple[str, int, int], list[float]] = {}
    for run in runs:
        if run.cell.engine is Role.PLAIN and (steps := steps_of(run)) is not None:
            plain.setdefault(_place(run), []).append(steps.step_s)
    found: dict[tuple[str, int, int], Beside] = {}
    for run in runs:
        steps = steps_of(run)
        if run.cell.engine is Role.SPECULATIVE and steps is not None and _place(run) in plain:
            key = (run.cell.workload, run.cell.sequences, run.cell.draft_length)
            found.setdefault(key, []).append((run, steps, statistics.fmean(plain[_place(run)])))
    return found


def _place(run: CellRun) -> tuple[str, int, int]:
    return run.cell.workload, run.cell.sequences, run.round


def _over_rounds(values: Sequence[float]) -> Estimate:
    """The geometric mean and its interval; without bounds from one value."""
    logs = [math.log(value) for value in values]
    mean = statistics.fmean(logs)
    if len(logs) < 2:
        return Estimate(math.exp(mean))
    half = float(stats.t.ppf(0.975, len(logs) - 1)) * statistics.stdev(logs) / math.sqrt(len(logs))
    return Estimate(math.exp(mean), math.exp(mean - half), math.exp(mean + half))


def _times(one: Estimate, other: Estimate) -> Estimate:
    """The product; half widths of the logarithms add as squares."""
    value = one.value * other.value
    halves = [_half(one), _half(other)]
    if None in halves or value <= 0:
        return Estimate(value)
    half = math.hypot(*(found for found in halves if found is not None))
    return Estimate(value, value * math.exp(-half), value * math.exp(half))


def _half(found: Estimate) -> float | None:
    """Half the width of the interval of the logarithm."""
    if found.low is None or found.high is None or found.low <= 0:
        return None
    return (math.log(found.high) - math.log(found.low)) / 2


def _inverse(found: Estimate) -> Estimate:
    if found.low is None or found.high is None:
        return Estimate(1.0 / found.value)
    return Estimate(1.0 / found.value, 1.0 / found.high, 1.0 / found.low)


def _scaled(found: Estimate, by: float) -> Estimate:
    if found.low is None or found.high is None:
        return Estimate(found.value * by)
    return Estimate(found.value * by, found.low * by, found.high * by)
