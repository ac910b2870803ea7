"""Measured speed-ups, the tax of K = 0, and time per token against throughput, with intervals over rounds.

Steps of both engines are compared within a round, where they ran at the same time.  Intervals are Student's
of the rounds' logarithms, with the uncertainty of the tokens per step added.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from scipy import stats

from autoscaling.profiling.findings import Estimate, Fit, FrontierPoint, SpeedUp, Survival
from autoscaling.profiling.gains import Gain, cost_at
from autoscaling.profiling.losses import losses
from autoscaling.profiling.measured import CellRun, Measurement
from autoscaling.routing_rules import StepCost
from autoscaling.step_cost import step_s
from autoscaling.types import Role

CERTAIN: Final = Estimate(1.0, 1.0, 1.0)

Key = tuple[str, int]  # kind of prompts, sequences


def speed_ups(
    measurement: Measurement,
    survivals: Mapping[str, Survival],
    gains: Mapping[str, Mapping[int, Gain]],
    fits: Mapping[Role, Fit],
) -> tuple[SpeedUp, ...]:
    """One for every cell of the speculative engine with K > 0 that the plain one has a pair for."""
    plain = _steps(measurement.runs, Role.PLAIN)
    found = []
    for (workload, sequences, length), runs in sorted(_cells(measurement.runs).items()):
        gain = survivals[workload].tokens_per_step.get(length)
        ratios = _paired(runs, plain.get((workload, sequences), {}))
        if length == 0 or gain is None or not ratios:
            continue
        cost = {role: fit.cost for role, fit in fits.items()}
        context = _context(runs) / sequences
        parts = losses(cost, sequences, context, length, gains[workload][length])
        found.append(
            SpeedUp(
                workload=workload,
                sequences=sequences,
                draft_length=length,
                measured=_times(_over_rounds(ratios), gain),
                modelled=modelled(cost, sequences, context, length, gains[workload][length]),
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
    """Sequences, and the plain engine's tokens/s over the speculative one's that drafts nothing."""
    plain = _steps(measurement.runs, Role.PLAIN)
    by_batch: dict[int, list[float]] = {}
    for (workload, sequences, length), runs in _cells(measurement.runs).items():
        if length == 0:
            ratios = _paired(runs, plain.get((workload, sequences), {}))
            by_batch.setdefault(sequences, []).extend(1.0 / ratio for ratio in ratios)
    return tuple((size, _over_rounds(ratios)) for size, ratios in sorted(by_batch.items()) if ratios)


def frontier(measurement: Measurement, survivals: Mapping[str, Survival]) -> tuple[FrontierPoint, ...]:
    """Every cell as time per token and tokens per second of the whole batch."""
    groups: dict[tuple[Role, str, int, int], list[float]] = {}
    for run in measurement.runs:
        if run.steps is not None:
            cell = run.cell
            key = (cell.engine, cell.workload, cell.draft_length, cell.sequences)
            groups.setdefault(key, []).append(run.steps.step_s)
    found = []
    for (role, workload, length, sequences), steps in sorted(groups.items()):
        gain = CERTAIN if role is Role.PLAIN else survivals[workload].tokens_per_step.get(length)
        if gain is None:
            continue
        per_second = _times(_over_rounds([1.0 / one for one in steps]), gain)
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


def _steps(runs: Iterable[CellRun], role: Role) -> dict[Key, dict[int, float]]:
    """Kind of prompts and sequences -> round -> mean seconds of a step over the runs of that round."""
    found: dict[Key, dict[int, list[float]]] = {}
    for run in runs:
        if run.cell.engine is role and run.steps is not None:
            rounds = found.setdefault((run.cell.workload, run.cell.sequences), {})
            rounds.setdefault(run.round, []).append(run.steps.step_s)
    return {key: {r: statistics.fmean(times) for r, times in rounds.items()} for key, rounds in found.items()}


def _cells(runs: Iterable[CellRun]) -> dict[tuple[str, int, int], list[CellRun]]:
    found: dict[tuple[str, int, int], list[CellRun]] = {}
    for run in runs:
        if run.cell.engine is Role.SPECULATIVE and run.steps is not None:
            key = (run.cell.workload, run.cell.sequences, run.cell.draft_length)
            found.setdefault(key, []).append(run)
    return found


def _paired(runs: Sequence[CellRun], plain: Mapping[int, float]) -> list[float]:
    """Plain step over speculative step, of each round that has both."""
    return [plain[run.round] / run.steps.step_s for run in runs if run.steps and run.round in plain]


def _context(runs: Sequence[CellRun]) -> float:
    return statistics.fmean(run.steps.context_tokens for run in runs if run.steps is not None)


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
