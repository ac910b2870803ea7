"""Whether drafting pays: tokens per step, break-even, the best K, capacity and crossover over `StepCost`.

`plain` is the engine that stands in where nothing is drafted: a plain one, or the same engine at K = 0.
Every speed-up is tokens per second over its, at the same batch and context.  Seconds, tokens, sequences.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from autoscaling.profiling.findings import Verdict
from autoscaling.routing_rules import StepCost
from autoscaling.step_cost import at_length, drafted_tokens, largest_batch, step_s, tpot_s

# Deeper than measured, a draft is taken to fare as at the last position, but never better than this.
MOST_BEYOND = 0.8


@dataclass(frozen=True, slots=True)
class Crossing:
    """Where the speed-up passes 1; `at` lies between two whole batches, None unless it pays below."""

    kind: Verdict
    at: float | None = None


@dataclass(frozen=True, slots=True)
class Sellable:
    """What one replica can sell at an objective; no sequences when not even one is in time."""

    draft_length: int
    sequences: int  # B*
    tokens_per_s: float
    limited_by_kv: bool  # whether more sequences would be in time, but do not fit


def tokens_per_step(survival: Sequence[float], draft_length: int, draft_rate: float = 1.0) -> float:
    """Tokens that a step brings each sequence on average: 1 and the accepted drafts.

    `survival[i]` is the share of drafts whose first i+1 tokens are all accepted, `draft_rate` the share of
    steps that carry a draft.  Beyond what is known the last conditional acceptance goes on, at most 0.8;
    where nothing is known, nothing is accepted.
    """
    return 1.0 + draft_rate * sum(_survival_at(survival, position) for position in range(draft_length))


def speed_up(
    cost: StepCost,
    plain: StepCost,
    sequences: float,
    context_tokens: float,
    tokens_per_step: float,
    draft_length: int,
) -> float:
    """Tokens per second at K over those of `plain`; 1 or less: drafting does not pay."""
    with_drafts = step_s(cost, sequences, context_tokens, draft_length=draft_length)
    return tokens_per_step * _plain_s(plain, sequences, context_tokens) / with_drafts


def break_even(
    cost: StepCost,
    plain: StepCost,
    sequences: float,
    context_tokens: float,
    draft_length: int | None = None,
) -> float:
    """Theta*: the draft acceptance rate above which K pays; 1 or more: none can.

    The seconds that one draft token of each sequence adds, in plain steps.  It is the same for every K where
    the drafter works in turn and cost is linear.  `draft_length` stands in for the cost's own.  Raises
    ValueError where nothing is drafted, for then there is nothing to accept.
    """
    length = cost.draft_length if draft_length is None else draft_length
    drafted = drafted_tokens(cost, length)
    if drafted <= 0:
        raise ValueError(f"draft_length: {length}: nothing is drafted: give 1 or more")
    with_drafts = step_s(cost, sequences, context_tokens, draft_length=length)
    return (with_drafts / _plain_s(plain, sequences, context_tokens) - 1.0) / drafted


def best_draft_length(
    cost: StepCost,
    plain: StepCost,
    survival: Sequence[float],
    sequences: float,
    context_tokens: float,
    longest: int,
    draft_rate: float = 1.0,
) -> int:
    """The K of 1..`longest` with most tokens per second, or 0 where `plain` is as good.

    Compares all, so that a fixed cost of drafting and a hinge are seen past; of equals the shortest.
    """
    best, most = 0, 1.0
    for length in range(1, longest + 1):
        gain = tokens_per_step(survival, length, draft_rate)
        ratio = speed_up(cost, plain, sequences, context_tokens, gain, length)
        if ratio > most:
            best, most = length, ratio
    return best


def marginal_draft_length(
    cost: StepCost,
    plain: StepCost,
    survival: Sequence[float],
    sequences: float,
    context_tokens: float,
    longest: int,
    draft_rate: float = 1.0,
) -> int:
    """The K at which one more draft token no longer brings more than it costs.

    K grows while survival at K+1 > seconds of one more draft token x tokens per step / seconds of a step.
    The best K where cost is linear in K with `plain` at K = 0 and survival never rises; with a fixed cost of
    drafting or a hinge it may stop too early: use `best_draft_length`.
    """
    taken, gain = _plain_s(plain, sequences, context_tokens), 1.0
    for length in range(longest):
        longer = step_s(cost, sequences, context_tokens, draft_length=length + 1)
        more = draft_rate * _survival_at(survival, length)
        if more * taken <= (longer - taken) * gain:
            return length
        taken, gain = longer, gain + more
    return longest


def capacity(
    cost: StepCost,
    tpot_s_objective: float,
    context_tokens: float,
    gains: Mapping[int, float],
    most: int,
    kv_tokens: float | None = None,
) -> Sellable:
    """X(tau): most tokens per second within the objective, over the K of `gains` (K -> tokens per step).

    At each K the largest batch in time, at most `most` sequences and what `kv_tokens` hold (None: no bound).
    """
    fitting = most
    if kv_tokens is not None and context_tokens > 0:
        fitting = min(most, int(kv_tokens // context_tokens))
    best = Sellable(0, 0, 0.0, False)
    for length in sorted(gains):
        there = at_length(cost, length)
        in_time = largest_batch(there, tpot_s_objective, context_tokens, gains[length], most)
        batch = min(in_time, fitting)
        if batch < 1:
            if in_time > 0 and best.sequences == 0:
                best = Sellable(0, 0, 0.0, True)
            continue
        sold = batch / tpot_s(there, batch, context_tokens, gains[length])
        if sold > best.tokens_per_s:
            best = Sellable(length, batch, sold, in_time > batch)
    return best


def crossover(
    cost: StepCost,
    plain: StepCost,
    context_tokens: float,
    tokens_per_step: float,
    draft_length: int,
    most: int,
) -> Crossing:
    """At which batches of 1..`most` sequences K pays, and where it stops; `mixed` where it only starts."""
    ratios = [
        speed_up(cost, plain, sequences, context_tokens, tokens_per_step, draft_length)
        for sequences in range(1, most + 1)
    ]
    pays = [one > 1.0 for one in ratios]
    if not any(pays):
        return Crossing(Verdict.NEVER_PAYS)
    if all(pays):
        return Crossing(Verdict.PAYS_ALWAYS)
    last = sum(pays)
    if not all(pays[:last]):
        return Crossing(Verdict.MIXED)
    above, below = ratios[last - 1], ratios[last]
    return Crossing(Verdict.PAYS_BELOW, last + (above - 1.0) / (above - below))


def rule_of_thumb(alpha: float, draft_length: int) -> float:
    """The speed-up by the folk formula 1 / (1 - alpha (1 - 1/K)), for comparison only: it is wrong.

    At alpha 0.7 and K = 4 it says 2.105 where 2.773 tokens come out of a step; at K = 1 it says 1 whatever
    alpha is.  It knows neither batch nor cost of drafting, and so it never says that drafting does not pay.
    """
    if draft_length < 1:
        return 1.0
    return 1.0 / (1.0 - alpha * (1.0 - 1.0 / draft_length))


def leviathan(alpha: float, draft_length: int, cost_ratio: float = 0.0) -> float:
    """The exact speed-up at one sequence: (1 - alpha^(K+1)) / ((1 - alpha) (c K + 1)).

    `alpha` is the acceptance of each draft token given those before it, `cost_ratio` (c) the seconds of one
    draft pass over those of a step; with 0 the result is tokens per step.
    """
    return sum(alpha**power for power in range(draft_length + 1)) / (cost_ratio * draft_length + 1.0)


def effective_alpha(tokens_per_step: float, draft_length: int) -> float:
    """The alpha that gives these tokens per step at K, were it the same at every position; 0..1.

    By bisection.  Raises ValueError for K = 0, where every alpha does.
    """
    if draft_length < 1:
        raise ValueError(f"draft_length: {draft_length}: nothing is drafted: give 1 or more")
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if leviathan(middle, draft_length) < tokens_per_step:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _plain_s(plain: StepCost, sequences: float, context_tokens: float) -> float:
    return step_s(plain, sequences, context_tokens, draft_length=0)


def _survival_at(survival: Sequence[float], position: int) -> float:
    if position < len(survival):
        return survival[position]
    if not survival:
        return 0.0
    before = survival[-2] if len(survival) > 1 else 1.0
    conditional = min(MOST_BEYOND, survival[-1] / before) if before > 0 else 0.0
    return survival[-1] * math.pow(conditional, position - len(survival) + 1)
