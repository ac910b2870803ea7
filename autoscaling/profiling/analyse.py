"""From a measurement to everything that it says."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from autoscaling.goodput import break_even
from autoscaling.profiling.capacities import capacities
from autoscaling.profiling.cost_fit import fit
from autoscaling.profiling.crossings import beside_measured, crossings
from autoscaling.profiling.findings import BreakEven, Findings, Fit, PoolPrediction, PoolsAt
from autoscaling.profiling.gains import (
    MEAN,
    NO_DRAFTS,
    Gain,
    cost_at,
    drafting_by_length,
    drafts_nothing,
    gains_of,
    steps_of,
    survivals_of,
    workloads_of,
)
from autoscaling.profiling.homes import Engine, plain_engine
from autoscaling.profiling.load import Load, Mix
from autoscaling.profiling.losses import drafting_s, kv_loss
from autoscaling.profiling.measured import Measurement
from autoscaling.profiling.notes import notes
from autoscaling.profiling.recommend import draft_table, policy_values
from autoscaling.profiling.speedups import frontier, k0_tax, speed_ups
from autoscaling.profiling.two_pools import predict_grid
from autoscaling.routing_rules import StepCost
from autoscaling.step_cost import step_s
from autoscaling.types import Role, Tier

DEFAULT_ANSWER_TOKENS: Final = 64.0
OTHER_LOADS: Final = (0.5, 2.0, 4.0)  # times the batch requests of the load that is judged first


def analyse(
    measurement: Measurement,
    prior: Mapping[Role, StepCost] | None,
    objectives: Mapping[Tier, float],
    load: Load | None,
    mix: Mix = Mix(),  # noqa: B008  # frozen
) -> Findings:
    """Fit and conclude.

    `prior` is where the fits begin, `objectives` are seconds per token, `load` is what the pools are judged
    for, or follows from `mix`, which has the kinds of prompts in any case.  Raises FitError when an engine
    has no usable step, ValueError for a kind that was not measured.
    """
    fits = {role: fit(role, measurement, (prior or {}).get(role)) for role in Role}
    costs = {role: one.cost for role, one in fits.items()}
    survivals = survivals_of(measurement)
    for kind in (*mix.interactive, *mix.batch):
        if kind not in survivals:
            known = list(survivals)
            names = f"{', '.join(known[:-1])} or {known[-1]}" if known[1:] else known[0]
            raise ValueError(f"no prompts of kind {kind!r} were measured: name {names}")
    longest = costs[Role.SPECULATIVE].draft_length
    idle = drafts_nothing(measurement)
    gains = {
        name: _priced(gains_of(drafting_by_length(measurement, name)), longest, idle=idle)
        for name in survivals
    }
    contexts = {name: _context(measurement, name) for name in survivals}
    context = contexts[MEAN]
    engines = {one.role: one for one in measurement.engines}
    largest = measurement.largest
    most = {role: engines[role].max_num_seqs if role in engines else largest for role in Role}
    table = draft_table(costs[Role.SPECULATIVE], gains[MEAN], context, most[Role.SPECULATIVE])
    # A model that is not relied on predicts nothing, whoever reads the findings.
    relied = fits if all(one.accepted for one in fits.values()) else {}
    trusted = {role: one.cost for role, one in relied.items()}
    compared = speed_ups(measurement, survivals, gains, relied)
    crossed = crossings(measurement, tuple(survivals), gains, relied, contexts, prior)
    judged: tuple[PoolsAt, ...] = ()
    if relied:
        asked = load or default_load(measurement, costs[Role.PLAIN], context, mix)
        first, second = (
            _priced(gains_of(drafting_by_length(measurement, *(kinds or (MEAN,)))), longest, idle=idle)
            for kinds in (mix.interactive, mix.batch)
        )
        judged = tuple(
            PoolsAt(one, _pools(fits, most, first, second, one)) for one in (asked, *other_loads(asked))
        )
    return Findings(
        measurement=measurement,
        fits=fits,
        survivals=survivals,
        speed_ups=compared,
        crossovers=tuple(beside_measured(one, compared) for one in crossed),
        break_evens=_break_evens(measurement, trusted, gains, contexts),
        capacities=capacities(trusted, gains[MEAN], context, engines),
        frontier=frontier(measurement, survivals, gains, relied),
        k0_tax=k0_tax(measurement),
        draft_s=drafting_s(trusted[Role.SPECULATIVE], gains[MEAN], context) if trusted else None,
        kv_loss=kv_loss(engines),
        context_tokens=context,
        table=table,
        policy=policy_values(fits, gains[MEAN], table, context, objectives, most, largest),
        pools=judged[0].pools if judged else (),
        mix=mix,
        load=judged[0].load if judged else None,
        other_loads=judged[1:],
        notes=tuple(notes(measurement, survivals, fits, prior=prior is not None)),
    )


def default_load(measurement: Measurement, plain: StepCost, context: float, mix: Mix = Mix()) -> Load:  # noqa: B008
    """So many answers and requests at once as `mix` says, or as many batch requests as were measured.

    Answers have 64 tokens, and prompts the length that makes the context that of the measurement.
    """
    per_token_s = step_s(plain, max(1.0, mix.interactive_at_once), context)
    prompt = max(1.0, context - DEFAULT_ANSWER_TOKENS / 2)
    return Load(
        interactive_per_s=mix.interactive_at_once / (DEFAULT_ANSWER_TOKENS * per_token_s),
        interactive_answer_tokens=DEFAULT_ANSWER_TOKENS,
        interactive_prompt_tokens=prompt,
        batch_streams=measurement.largest if mix.batch_at_once is None else mix.batch_at_once,
        batch_answer_tokens=DEFAULT_ANSWER_TOKENS,
        batch_prompt_tokens=prompt,
    )


def other_loads(load: Load) -> tuple[Load, ...]:
    """The same with less and with more batch work: whether a second pool pays depends on it."""
    sizes = [round(times * load.batch_streams) for times in OTHER_LOADS]
    return tuple(replace(load, batch_streams=size) for size in sizes if size not in (0, load.batch_streams))


def _priced(gains: Mapping[int, Gain], longest: int, *, idle: bool) -> dict[int, Gain]:
    """Those of which steps were fitted: what a longer draft costs, or none at all, is not known."""
    found = {length: gain for length, gain in gains.items() if length <= longest and (idle or length > 0)}
    return found or {0: NO_DRAFTS}


def _context(measurement: Measurement, name: str) -> float:
    """Context tokens per sequence, on average over the cells of these prompts."""
    found = [
        steps.context_tokens / run.cell.sequences
        for run in measurement.runs
        if name in (MEAN, run.cell.workload) and (steps := steps_of(run)) is not None
    ]
    return statistics.fmean(found) if found else 0.0


def _break_evens(
    measurement: Measurement,
    costs: Mapping[Role, StepCost],
    gains: Mapping[str, Mapping[int, Gain]],
    contexts: Mapping[str, float],
) -> tuple[BreakEven, ...]:
    """Of each kind of prompts at the batches that it was measured at, and the largest K.

    Kinds for which nothing was drafted are left out; empty without both cost models.
    """
    found: list[BreakEven] = []
    if set(costs) != set(Role):
        return ()
    for name in workloads_of(measurement):
        length = max(gains[name])
        gain = gains[name][length]
        if length == 0 or gain.drafted <= 0:
            continue
        cost, context = cost_at(costs[Role.SPECULATIVE], length, gain), contexts[name]
        sizes = {run.cell.sequences for run in measurement.runs if run.cell.workload == name}
        found += [
            BreakEven(name, size, context, break_even(cost, costs[Role.PLAIN], size, context, length))
            for size in sorted(sizes)
        ]
    return tuple(found)


def _pools(
    fits: Mapping[Role, Fit],
    most: Mapping[Role, int],
    interactive: Mapping[int, Gain],
    batch: Mapping[int, Gain],
    load: Load,
) -> tuple[PoolPrediction, ...]:
    plain = plain_engine(fits[Role.PLAIN].cost, most[Role.PLAIN])
    speculative = Engine(fits[Role.SPECULATIVE].cost, interactive, batch, most[Role.SPECULATIVE])
    return predict_grid(plain, speculative, load)
