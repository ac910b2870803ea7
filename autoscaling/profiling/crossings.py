"""The batch at which drafts stop to pay, by the cost models, and how sure that is.

The interval is a bootstrap: rounds are drawn anew for the costs and runs for the gains, and each draw of the
costs is off by what the fits were off, divided by the square root of the batches that they rest on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from autoscaling.goodput import Crossing, crossover
from autoscaling.profiling.cost_fit import resampled
from autoscaling.profiling.findings import Crossover, Estimate, Fit, SpeedUp, Verdict
from autoscaling.profiling.gains import MEAN, Gain, cost_at, drafting_by_length, gains_of
from autoscaling.profiling.measured import Drafting, Measurement
from autoscaling.routing_rules import StepCost
from autoscaling.types import Role

RESAMPLES: Final = 200
SEED: Final = 1
OUTSIDE: Final = 0.025  # of the draws on each side of a 95 % interval
BEYOND: Final = 2  # times the largest batch that was measured: further the models are not asked


@dataclass(frozen=True, slots=True)
class _Draw:
    """One way in which the costs could have come out."""

    plain: StepCost
    speculative: StepCost
    off: float  # by which the plain step is longer than the models say, beside the speculative one


def crossings(
    measurement: Measurement,
    names: Sequence[str],
    gains: Mapping[str, Mapping[int, Gain]],
    fits: Mapping[Role, Fit],
    context_tokens: Mapping[str, float],
    prior: Mapping[Role, StepCost] | None = None,
) -> tuple[Crossover, ...]:
    """For each kind of prompts and K > 0, at the context that is typical of them; empty without both fits.

    `prior` is that of the fits.
    """
    if set(fits) != set(Role):
        return ()
    most = largest_asked(measurement)
    draws = _draws(measurement, fits, prior or {})
    rng = np.random.default_rng(SEED)
    found = []
    for name in names:
        drafting = drafting_by_length(measurement, name)
        top = max(
            (run.cell.sequences for run in measurement.runs if name in (MEAN, run.cell.workload)), default=1
        )
        for length, gain in gains[name].items():
            if length == 0:
                continue
            context = context_tokens[name]
            costs = fits[Role.SPECULATIVE].cost, fits[Role.PLAIN].cost
            crossing = _crossing(*costs, gain, length, context, most)
            ends = _drawn(draws, drafting[length], length, context, most, rng)
            found.append(_crossover(name, length, crossing, ends, top))
    return tuple(found)


def beside_measured(found: Crossover, speed_ups: Sequence[SpeedUp]) -> Crossover:
    """The crossover with the batches that surely gain; not sure where a measured batch says otherwise.

    What is said of every batch is contradicted by any measured ratio on the other side of 1; where there is
    a crossover, by one that is there with 95 %.
    """
    measured = [
        (one.sequences, one.measured)
        for one in speed_ups
        if (one.workload, one.draft_length) == (found.workload, found.draft_length)
    ]
    gains = tuple(size for size, one in measured if one.low is not None and one.low > 1.0)
    sure = False if _contradicted(found, measured) else found.sure
    return replace(found, gains=gains, only=len(measured) == 1, sure=sure)


def _contradicted(found: Crossover, measured: Sequence[tuple[int, Estimate]]) -> bool:
    if found.verdict is Verdict.PAYS_ALWAYS or found.beyond:
        return any(one.value < 1.0 for _, one in measured)
    if found.verdict is Verdict.NEVER_PAYS:
        return any(one.value > 1.0 for _, one in measured)
    if found.sequences is None:
        return False
    at = found.sequences
    low, high = at.value if at.low is None else at.low, at.value if at.high is None else at.high
    return any(
        (size < low and one.high is not None and one.high < 1.0)
        or (size > high and one.low is not None and one.low > 1.0)
        for size, one in measured
    )


def largest_asked(measurement: Measurement) -> int:
    """The largest batch that the models are asked about."""
    return BEYOND * measurement.largest


def _crossing(
    speculative: StepCost,
    plain: StepCost,
    gain: Gain,
    length: int,
    context_tokens: float,
    most: int,
    off: float = 1.0,
) -> Crossing:
    cost = cost_at(speculative, length, gain)
    return crossover(cost, plain, context_tokens, gain.tokens * off, length, most)


def _draws(
    measurement: Measurement, fits: Mapping[Role, Fit], prior: Mapping[Role, StepCost]
) -> tuple[_Draw, ...]:
    """Empty where no cell has a second round."""
    costs = {
        role: resampled(role, measurement, prior.get(role), RESAMPLES, SEED + place)
        for place, role in enumerate(Role)
    }
    errors = [fit.error for fit in fits.values() if fit.error is not None]
    if not all(costs.values()) or len(errors) < len(fits):
        return ()
    batches = len({run.cell.sequences for run in measurement.runs if not run.cell.hold_out}) or 1
    spread = math.hypot(*errors) / math.sqrt(batches)
    rng = np.random.default_rng(SEED)
    return tuple(
        _Draw(plain, speculative, math.exp(spread * float(rng.standard_normal())))
        for plain, speculative in zip(costs[Role.PLAIN], costs[Role.SPECULATIVE], strict=True)
    )


def _drawn(
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
        crossing = _crossing(draw.speculative, draw.plain, gain, length, context_tokens, most, draw.off)
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


def _crossover(name: str, length: int, crossing: Crossing, ends: Sequence[float], top: int) -> Crossover:
    """With bounds where most draws say something; one that lies beyond all batches is open, None.

    That it always pays is said of the batches that were measured, up to `top`.
    """
    if len(ends) < RESAMPLES // 2:
        at = None if crossing.at is None else Estimate(crossing.at)
        return Crossover(name, length, crossing.kind, at, largest=top)
    low, high = (float(np.quantile(ends, share, method="nearest")) for share in (OUTSIDE, 1 - OUTSIDE))
    if crossing.at is None:
        sure = {Verdict.PAYS_ALWAYS: low >= top, Verdict.NEVER_PAYS: high == 0.0}
        return Crossover(name, length, crossing.kind, None, sure.get(crossing.kind), top)
    return Crossover(
        name,
        length,
        crossing.kind,
        Estimate(
            crossing.at,
            None if low == 0.0 else min(low, crossing.at),
            None if math.isinf(high) else max(high, crossing.at),
        ),
        sure=low > 0.0 or not math.isinf(high),
        largest=top,
    )
