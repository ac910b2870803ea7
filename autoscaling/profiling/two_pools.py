"""Do two pools pay?  What two replicas sell at an objective, for each way to fill them, by the cost models.

Under our routing one replica is the home of interactive requests and the other that of batch.  Both may be
plain, both speculative with the engine's K table, or the home of interactive speculative and the other plain.
Batch that does not fit into its home waits: what it would find beside interactive requests is left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy import stats

from autoscaling.profiling.findings import PoolAnswer, PoolPrediction
from autoscaling.profiling.gains import NO_DRAFTS, Gain, cost_at
from autoscaling.routing_rules import StepCost
from autoscaling.step_cost import churn_s, prefill_s, step_s

GRID_S: Final = (0.02, 0.025, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.15, 0.2)
# Answers of one kind differ in what drafts bring them, and steps in what disturbs them: the standard
# deviation of the logarithm of the time per token.  An assumption: 0.15 means that of 20 answers one takes
# 28 % longer than the middle one.
SPREAD: Final = 0.15
TIE: Final = 0.05  # less than this is no reason for a second pool
# In a tie the first one wins: fewest things that can go wrong.
SIMPLEST_FIRST: Final = (PoolAnswer.ONE_PLAIN, PoolAnswer.ONE_SPECULATIVE, PoolAnswer.TWO_POOLS)
# Public price lists sell a priority token at about four times a flex token.
WEIGHT: Final = 4.0
MOST_OPEN: Final = 1000.0  # interactive answers at a home that cannot keep up
RARE: Final = 0.001  # of the arrivals: those that meet more than the others are left out


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

    @property
    def interactive_context(self) -> float:
        """Context tokens of an interactive answer, on average while it is written."""
        return self.interactive_prompt_tokens + self.interactive_answer_tokens / 2

    @property
    def batch_context(self) -> float:
        """The same of a batch answer."""
        return self.batch_prompt_tokens + self.batch_answer_tokens / 2


@dataclass(frozen=True, slots=True)
class Engine:
    """One kind of engine: its cost, and what each K that it can have brings interactive and batch work."""

    cost: StepCost
    interactive: Mapping[int, Gain]
    batch: Mapping[int, Gain]
    most: int | None = None  # sequences that it runs at once; None: any number


def plain_engine(cost: StepCost, most: int | None = None) -> Engine:
    """An engine that drafts nothing."""
    return Engine(cost, {0: NO_DRAFTS}, {0: NO_DRAFTS}, most)


def predict(
    plain: Engine, speculative: Engine, load: Load, tpot_s: float, spread: float = SPREAD
) -> PoolPrediction:
    """Goodput of each configuration at one objective, and which one to take.

    `spread` is the standard deviation of the logarithm of the time per token of answers at one batch.
    """
    homes = {
        PoolAnswer.ONE_PLAIN: (plain, plain),
        PoolAnswer.ONE_SPECULATIVE: (speculative, speculative),
        PoolAnswer.TWO_POOLS: (speculative, plain),
    }
    goodput = {
        answer: interactive_goodput(first, load, tpot_s, spread) + batch_tokens_per_s(second, load)
        for answer, (first, second) in homes.items()
    }
    best = max(goodput.values())
    answer = next(one for one in SIMPLEST_FIRST if goodput[one] * (1 + TIE) >= best)
    others = max(value for one, value in goodput.items() if one is not answer)
    margin = goodput[answer] / others if others > 0 else math.inf
    return PoolPrediction(tpot_s=tpot_s, goodput=goodput, answer=answer, margin=margin)


def predict_grid(
    plain: Engine, speculative: Engine, load: Load, grid: Sequence[float] = GRID_S, spread: float = SPREAD
) -> tuple[PoolPrediction, ...]:
    """The prediction at each objective, in seconds per token."""
    return tuple(predict(plain, speculative, load, tpot_s, spread) for tpot_s in grid)


def interactive_goodput(engine: Engine, load: Load, tpot_s: float, spread: float = SPREAD) -> float:
    """Weighted tokens per second of interactive answers in time at their home."""
    offered = load.interactive_per_s * load.interactive_answer_tokens
    open_ = open_answers(engine, load)
    cost, _ = _in_force(engine, load, 1 + open_)
    first_s = prefill_s(cost, load.interactive_prompt_tokens, open_, load.interactive_context)
    if load.ttft_s is not None and first_s > load.ttft_s:
        return 0.0
    # A request that arrives at random meets the average number of others.
    others = np.arange(int(stats.poisson.ppf(1 - RARE, open_)) + 1)
    token_s = np.array([_interactive_s(engine, load, 1 + float(count)) for count in others])
    in_time = stats.norm.cdf(np.log(tpot_s / token_s) / spread)
    share = float(stats.poisson.pmf(others, open_) @ in_time)
    return load.interactive_weight * offered * min(1.0, share)


def batch_tokens_per_s(engine: Engine, load: Load) -> float:
    """Tokens per second of the batch streams at their home, its prompts included, with the best K."""
    streams = load.batch_streams if engine.most is None else min(load.batch_streams, engine.most)
    if streams < 1:
        return 0.0
    answer, context = load.batch_answer_tokens, load.batch_context
    best = 0.0
    for length, gain in engine.batch.items():
        cost = cost_at(engine.cost, length, gain)
        token_s = step_s(cost, streams, context) / gain.tokens
        token_s += churn_s(cost, streams - 1, load.batch_prompt_tokens, answer)
        whole_s = prefill_s(cost, load.batch_prompt_tokens) + answer * token_s
        best = max(best, streams * answer / whole_s)
    return best


def open_answers(engine: Engine, load: Load) -> float:
    """Open interactive answers on average, by Little's law; at most 1,000, where the home cannot keep up."""
    low, high = 0.0, MOST_OPEN
    offered = load.interactive_per_s * load.interactive_answer_tokens
    for _ in range(60):
        middle = (low + high) / 2
        # More are open than arrive in the time that they take at this batch: the true number is lower.
        if middle > offered * _interactive_s(engine, load, 1 + middle):
            high = middle
        else:
            low = middle
    return low


def _interactive_s(engine: Engine, load: Load, sequences: float) -> float:
    """Seconds per token of one interactive answer in such a batch, with the best K."""
    cost, token_s = _in_force(engine, load, sequences)
    prompt, answer = load.interactive_prompt_tokens, load.interactive_answer_tokens
    return token_s + churn_s(cost, sequences - 1, prompt, answer)


def _in_force(engine: Engine, load: Load, sequences: float) -> tuple[StepCost, float]:
    """The cost with the best K in such a batch of interactive answers, and its seconds per token."""
    offers = []
    for length, gain in engine.interactive.items():
        cost = cost_at(engine.cost, length, gain)
        offers.append((cost, step_s(cost, sequences, load.interactive_context) / gain.tokens))
    return min(offers, key=lambda offer: offer[1])
