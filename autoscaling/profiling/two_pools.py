"""Do two pools pay?  What two replicas sell at an objective, for each way to fill them, by the cost models.

Under our routing one replica is the home of interactive requests and the other that of batch.  Both may be
plain, both speculative with the engine's K table, or the home of interactive speculative and the other plain.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from scipy import stats

from autoscaling.profiling.findings import PoolAnswer, PoolPrediction
from autoscaling.profiling.gains import NO_DRAFTS, Gain, cost_at
from autoscaling.routing_rules import StepCost
from autoscaling.step_cost import churn_s, prefill_s, step_s

GRID_S: Final = (0.02, 0.025, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.15, 0.2)
# Answers of one kind differ in what drafts bring them, and steps in what disturbs them: the standard deviation
# of the logarithm of the time per token, as answers of one cell show it on two cores.
SPREAD: Final = 0.15
TIE: Final = 0.05  # less than this is no reason for a second pool
# In a tie the first one wins: fewest things that can go wrong.
SIMPLEST_FIRST: Final = (PoolAnswer.ONE_PLAIN, PoolAnswer.ONE_SPECULATIVE, PoolAnswer.TWO_POOLS)
# Public price lists sell a priority token at about four times a flex token.
WEIGHT: Final = 4.0


@dataclass(frozen=True, slots=True)
class Load:
    """What two replicas are asked for; rates per second, lengths in tokens."""

    interactive_per_s: float
    interactive_answer_tokens: float
    interactive_prompt_tokens: float
    batch_streams: int  # one request each at a time, without a pause
    batch_answer_tokens: float
    batch_prompt_tokens: float
    interactive_weight: float = WEIGHT  # of an interactive token in time, a batch token counts 1
    ttft_s: float | None = None  # an interactive prompt that takes longer is late


@dataclass(frozen=True, slots=True)
class Engine:
    """One kind of engine: its cost, and what each K that it can have brings interactive and batch work."""

    cost: StepCost
    interactive: Mapping[int, Gain]
    batch: Mapping[int, Gain]


def plain_engine(cost: StepCost) -> Engine:
    """An engine that drafts nothing."""
    return Engine(cost, {0: NO_DRAFTS}, {0: NO_DRAFTS})


def predict(
    plain: Engine, speculative: Engine, load: Load, tpot_s: float, context_tokens: float
) -> PoolPrediction:
    """Goodput of each configuration at one objective, and which one to take."""
    homes = {
        PoolAnswer.ONE_PLAIN: (plain, plain),
        PoolAnswer.ONE_SPECULATIVE: (speculative, speculative),
        PoolAnswer.TWO_POOLS: (speculative, plain),
    }
    goodput = {
        answer: interactive_goodput(first, load, tpot_s, context_tokens)
        + batch_tokens_per_s(second, load, context_tokens)
        for answer, (first, second) in homes.items()
    }
    best = max(goodput.values())
    answer = next(one for one in SIMPLEST_FIRST if goodput[one] >= best * (1 - TIE))
    others = max(value for one, value in goodput.items() if one is not answer)
    margin = goodput[answer] / others if others > 0 else math.inf
    return PoolPrediction(tpot_s=tpot_s, goodput=goodput, answer=answer, margin=margin)


def predict_grid(
    plain: Engine,
    speculative: Engine,
    load: Load,
    context_tokens: float,
    grid: Sequence[float] = GRID_S,
) -> tuple[PoolPrediction, ...]:
    """The prediction at each objective."""
    return tuple(predict(plain, speculative, load, tpot_s, context_tokens) for tpot_s in grid)


def interactive_goodput(engine: Engine, load: Load, tpot_s: float, context_tokens: float) -> float:
    """Weighted tokens per second of interactive answers in time at their home."""
    offered = load.interactive_per_s * load.interactive_answer_tokens
    if load.ttft_s is not None and prefill_s(engine.cost, load.interactive_prompt_tokens) > load.ttft_s:
        return 0.0
    beside = _concurrency(engine, load, context_tokens)
    share = 0.0
    # A request that arrives at random meets the average number of others.
    last = int(stats.poisson.ppf(0.999, beside)) if beside > 0 else 0
    for others in range(last + 1):
        found = _interactive_s(engine, load, 1 + others, context_tokens)
        in_time = float(stats.norm.cdf(math.log(tpot_s / found) / SPREAD))
        share += float(stats.poisson.pmf(others, beside)) * in_time
    return load.interactive_weight * offered * share


def batch_tokens_per_s(engine: Engine, load: Load, context_tokens: float) -> float:
    """Tokens per second of the batch streams at their home, its prompts included, with the best K."""
    if load.batch_streams == 0:
        return 0.0
    streams, answer = load.batch_streams, load.batch_answer_tokens
    best = 0.0
    for length, gain in engine.batch.items():
        cost = cost_at(engine.cost, length, gain)
        token_s = step_s(cost, streams, context_tokens, draft_length=length) / gain.tokens
        # A K that is not the cost's own changes nothing in what a prompt costs.
        token_s += churn_s(engine.cost, streams - 1, load.batch_prompt_tokens, answer)
        whole_s = prefill_s(engine.cost, load.batch_prompt_tokens) + answer * token_s
        best = max(best, streams * answer / whole_s)
    return best


def _interactive_s(engine: Engine, load: Load, sequences: float, context_tokens: float) -> float:
    """Seconds per token of one interactive answer in such a batch, with the best K."""
    step = min(
        step_s(cost_at(engine.cost, length, gain), sequences, context_tokens, draft_length=length)
        / gain.tokens
        for length, gain in engine.interactive.items()
    )
    return step + churn_s(
        engine.cost, sequences - 1, load.interactive_prompt_tokens, load.interactive_answer_tokens
    )


def _concurrency(engine: Engine, load: Load, context_tokens: float) -> float:
    """Open interactive answers on average, by Little's law; at most 1,000, where the home cannot keep up."""
    low, high = 0.0, 1000.0
    offered = load.interactive_per_s * load.interactive_answer_tokens
    for _ in range(60):
        middle = (low + high) / 2
        # More are open than arrive in the time that they take at this batch: the true number is lower.
        if middle > offered * _interactive_s(engine, load, 1 + middle, context_tokens):
            high = middle
        else:
            low = middle
    return low
