"""From a measurement to everything that it says."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Final

from autoscaling.goodput import break_even, capacity
from autoscaling.profiling.cost_fit import fit
from autoscaling.profiling.crossings import crossings
from autoscaling.profiling.findings import BreakEven, Capacity, Findings, Fit, PoolPrediction
from autoscaling.profiling.gains import MEAN, Gain, cost_at, drafting_by_length, gains_of, survivals_of
from autoscaling.profiling.measured import EngineFacts, Measurement
from autoscaling.profiling.notes import notes
from autoscaling.profiling.recommend import draft_table, policy_values
from autoscaling.profiling.speedups import frontier, k0_tax, speed_ups
from autoscaling.profiling.two_pools import GRID_S, Engine, Load, plain_engine, predict_grid
from autoscaling.routing_rules import StepCost
from autoscaling.step_cost import step_s
from autoscaling.types import Role, Tier

CAPACITY_GRID_S: Final = (0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.15, 0.2)
# The load that nobody has stated: two interactive answers open on average, and batch at the largest batch.
DEFAULT_OPEN: Final = 2.0
DEFAULT_ANSWER_TOKENS: Final = 64.0

Gains = Mapping[str, Mapping[int, Gain]]


def analyse(
    measurement: Measurement,
    prior: Mapping[Role, StepCost] | None,
    objectives: Mapping[Tier, float],
    load: Load | None,
    interactive: str = MEAN,
    batch: str = MEAN,
) -> Findings:
    """Fit and conclude.

    `prior` is where the fits begin, `objectives` are seconds per token, `interactive` and `batch` the kinds
    of prompts that the load has.  Raises FitError when an engine has no usable step.
    """
    fits = {role: fit(role, measurement, (prior or {}).get(role)) for role in Role}
    survivals = survivals_of(measurement)
    gains = {name: gains_of(drafting_by_length(measurement, name)) for name in survivals}
    contexts = {name: _context(measurement, name) for name in survivals}
    engines = {one.role: one for one in measurement.engines}
    most = {role: engines[role].max_num_seqs if role in engines else 1 for role in Role}
    context = contexts[MEAN]
    costs = {role: one.cost for role, one in fits.items()}
    return Findings(
        measurement=measurement,
        fits=fits,
        survivals=survivals,
        speed_ups=speed_ups(measurement, survivals, gains, fits),
        crossovers=crossings(measurement, tuple(survivals), gains, fits, contexts),
        break_evens=_break_evens(measurement, costs, gains[MEAN], context),
        capacities=_capacities(costs, gains[MEAN], context, engines),
        frontier=frontier(measurement, survivals),
        k0_tax=k0_tax(measurement),
        draft_s=_draft_s(costs[Role.SPECULATIVE], gains[MEAN], context),
        kv_loss=_kv_loss(engines),
        context_tokens=context,
        table=draft_table(costs[Role.SPECULATIVE], gains[MEAN], context, most[Role.SPECULATIVE]),
        policy=policy_values(fits, gains[MEAN], context, objectives, most),
        pools=_pools(measurement, fits, gains, context, load, interactive, batch),
        notes=tuple(notes(measurement, survivals, fits)),
    )


def _context(measurement: Measurement, name: str) -> float:
    """Context tokens per sequence, on average over the cells of these prompts."""
    found = [
        run.steps.context_tokens / run.cell.sequences
        for run in measurement.runs
        if run.steps is not None and name in (MEAN, run.cell.workload)
    ]
    return statistics.fmean(found) if found else 0.0


def _break_evens(
    measurement: Measurement, costs: Mapping[Role, StepCost], gains: Mapping[int, Gain], context: float
) -> tuple[BreakEven, ...]:
    length = max(gains)
    if length == 0 or gains[length].drafted <= 0:
        return ()
    cost = cost_at(costs[Role.SPECULATIVE], length, gains[length])
    sizes = sorted({run.cell.sequences for run in measurement.runs})
    return tuple(
        BreakEven(size, context, break_even(cost, costs[Role.PLAIN], size, context, length)) for size in sizes
    )


def _capacities(
    costs: Mapping[Role, StepCost],
    gains: Mapping[int, Gain],
    context: float,
    engines: Mapping[Role, EngineFacts],
) -> tuple[Capacity, ...]:
    if set(engines) != set(Role):
        return ()
    found = []
    for tpot_s in CAPACITY_GRID_S:
        sold = {}
        for role, one in engines.items():
            tokens = {0: 1.0} if role is Role.PLAIN else {k: gain.tokens for k, gain in gains.items()}
            cost = costs[role]
            if role is Role.SPECULATIVE and max(gains) > 0:
                cost = cost_at(cost, max(gains), gains[max(gains)])
            sold[role] = capacity(cost, tpot_s, context, tokens, one.max_num_seqs, one.kv_cache_tokens)
        plain, drafted = sold[Role.PLAIN], sold[Role.SPECULATIVE]
        found.append(
            Capacity(
                tpot_s=tpot_s,
                plain_sequences=plain.sequences,
                plain_tokens_per_s=plain.tokens_per_s,
                draft_length=drafted.draft_length,
                speculative_sequences=drafted.sequences,
                speculative_tokens_per_s=drafted.tokens_per_s,
                limited_by_kv=plain.limited_by_kv or drafted.limited_by_kv,
            )
        )
    return tuple(found)


def _draft_s(cost: StepCost, gains: Mapping[int, Gain], context: float) -> float | None:
    """What drafting alone costs one sequence's step at the largest K."""
    length = max(gains)
    if length == 0:
        return None
    drafted = cost_at(cost, length, gains[length])
    free = cost_at(
        StepCost(
            cost.base_s,
            cost.per_token_s,
            cost.per_context_s,
            hinge_tokens=cost.hinge_tokens,
            past_hinge_s=cost.past_hinge_s,
        ),
        length,
        gains[length],
    )
    return step_s(drafted, 1, context) - step_s(free, 1, context)


def _kv_loss(engines: Mapping[Role, EngineFacts]) -> float | None:
    found = {role: one.kv_cache_tokens for role, one in engines.items()}
    plain, drafted = found.get(Role.PLAIN), found.get(Role.SPECULATIVE)
    return None if not plain or drafted is None else 1.0 - drafted / plain


def _pools(
    measurement: Measurement,
    fits: Mapping[Role, Fit],
    gains: Gains,
    context: float,
    load: Load | None,
    interactive: str,
    batch: str,
) -> tuple[PoolPrediction, ...]:
    if not all(one.accepted for one in fits.values()):
        return ()
    plain = plain_engine(fits[Role.PLAIN].cost)
    speculative = Engine(fits[Role.SPECULATIVE].cost, gains[interactive], gains[batch])
    return predict_grid(
        plain, speculative, load or default_load(measurement, plain.cost, context), context, GRID_S
    )


def default_load(measurement: Measurement, plain: StepCost, context: float) -> Load:
    """As busy as two replicas can be: two interactive answers open, and batch at the largest batch measured."""
    per_token_s = step_s(plain, DEFAULT_OPEN, context)
    prompt = max(1.0, context - DEFAULT_ANSWER_TOKENS / 2)
    return Load(
        interactive_per_s=DEFAULT_OPEN / (DEFAULT_ANSWER_TOKENS * per_token_s),
        interactive_answer_tokens=DEFAULT_ANSWER_TOKENS,
        interactive_prompt_tokens=prompt,
        batch_streams=max((run.cell.sequences for run in measurement.runs), default=1),
        batch_answer_tokens=DEFAULT_ANSWER_TOKENS,
        batch_prompt_tokens=prompt,
    )
