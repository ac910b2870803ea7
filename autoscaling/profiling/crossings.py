"""The batch at which drafts stop to pay, by the cost models, and how sure that is.

The interval is a bootstrap: rounds are drawn anew for the costs and for the gains, and each engine's costs are
off by what its fit was off, divided by the square root of the different batches that it rests on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from autoscaling.goodput import crossover
from autoscaling.profiling.cost_fit import resampled
from autoscaling.profiling.findings import Crossover, Estimate, Fit, Verdict
from autoscaling.profiling.gains import Gain, cost_at, drafting_by_length, gains_of
from autoscaling.profiling.measured import Drafting, Measurement
from autoscaling.routing_rules import StepCost
from autoscaling.types import Role

RESAMPLES: Final = 200
SEED: Final = 1
BEYOND: Final = 2  # times the largest batch that was measured: further the models are not asked


@dataclass(frozen=True, slots=True)
class _Draw:
    """One way in which the costs could have come out."""

    plain: StepCost
    speculative: StepCost
    ratio: float  # by which the plain step is off beside the speculative one


def crossings(
    measurement: Measurement,
    names: Sequence[str],
    gains: Mapping[str, Mapping[int, Gain]],
    fits: Mapping[Role, Fit],
    context_tokens: Mapping[str, float],
) -> tuple[Crossover, ...]:
    """For each kind of prompts and K > 0, at the context that is typical of them."""
    if set(fits) != set(Role):
        return ()
    most = largest_asked(measurement)
    draws = _draws(measurement, fits)
    rng = np.random.default_rng(SEED)
    found = []
    for name in names:
        drafting = drafting_by_length(measurement, name)
        for length, gain in gains[name].items():
            if length == 0:
                continue
            cost = cost_at(fits[Role.SPECULATIVE].cost, length, gain)
            crossing = crossover(
                cost, fits[Role.PLAIN].cost, context_tokens[name], gain.tokens, length, most
            )
            ends = _resampled(draws, drafting[length], length, context_tokens[name], most, rng)
            found.append(_crossover(name, length, crossing.kind, crossing.at, ends, most))
    return tuple(found)


def largest_asked(measurement: Measurement) -> int:
    """The largest batch that the models are asked about."""
    measured = max((run.cell.sequences for run in measurement.runs), default=1)
    return min(BEYOND * measured, max((one.max_num_seqs for one in measurement.engines), default=measured) * BEYOND)


def _draws(measurement: Measurement, fits: Mapping[Role, Fit]) -> tuple[_Draw, ...]:
    costs = {}
    for place, role in enumerate(Role):
        costs[role] = resampled(role, measurement, None, RESAMPLES, SEED + place)
    if not all(costs.values()):
        return ()
    batches = len({run.cell.sequences for run in measurement.runs if not run.cell.hold_out}) or 1
    rng = np.random.default_rng(SEED)
    off = math.hypot(*(fit.error for fit in fits.values())) / math.sqrt(batches)
    return tuple(
        _Draw(plain, speculative, math.exp(off * float(rng.standard_normal())))
        for plain, speculative in zip(costs[Role.PLAIN], costs[Role.SPECULATIVE], strict=True)
    )


def _resampled(
    draws: Sequence[_Draw],
    runs: Sequence[Drafting],
    length: int,
    context_tokens: float,
    most: int,
    rng: np.random.Generator,
) -> list[float]:
    """Where each draw crosses: 0 where drafts never pay, infinite where they always do."""
    counted = [run for run in runs if run.request_steps]
    if len(counted) < 2:
        return []
    found = []
    for draw in draws:
        drawn = [counted[at] for at in rng.integers(0, len(counted), len(counted))]
        gain = gains_of({length: drawn})[length]
        crossing = crossover(
            cost_at(draw.speculative, length, gain),
            draw.plain,
            context_tokens,
            gain.tokens * draw.ratio,
            length,
            most,
        )
        match crossing.kind:
            case Verdict.PAYS_BELOW if crossing.at is not None:
                found.append(crossing.at)
            case Verdict.NEVER_PAYS:
                found.append(0.0)
            case Verdict.PAYS_ALWAYS:
                found.append(math.inf)
            case _:
                continue
    return found


def _crossover(
    name: str, length: int, verdict: Verdict, at: float | None, ends: Sequence[float], most: int
) -> Crossover:
    if verdict is not Verdict.PAYS_BELOW or at is None:
        return Crossover(name, length, verdict, None)
    if len(ends) < RESAMPLES // 2:
        return Crossover(name, length, verdict, Estimate(at))
    low, high = (float(np.quantile(ends, share, method="nearest")) for share in (0.025, 0.975))
    return Crossover(
        name,
        length,
        verdict,
        # Open above: some draws never cross within what the models are asked about.
        Estimate(at, min(low, at), float(most) if math.isinf(high) else max(high, at)),
    )
