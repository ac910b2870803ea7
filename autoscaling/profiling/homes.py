"""What one replica sells: as the home of interactive requests, alone or with batch guests, or of batch.

By the cost models, for a stated load; pure.  Interactive answers are open on average by Little's law, and an
arrival meets the others at random.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy import stats

from autoscaling.profiling.gains import NO_DRAFTS, Gain, cost_at
from autoscaling.profiling.load import Load
from autoscaling.routing_rules import StepCost
from autoscaling.step_cost import churn_s, prefill_s, step_s

# Answers of one kind differ in what drafts bring them, and steps in what disturbs them: the standard
# deviation of the logarithm of the time per token.  An assumption: 0.15 means that of 20 answers one takes
# 28 % longer than the middle one.
SPREAD: Final = 0.15
MOST_OPEN: Final = 1000.0  # interactive answers at a home that cannot keep up
RARE: Final = 0.001  # of the arrivals: those that meet more than the others are left out


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


@dataclass(frozen=True, slots=True)
class Home:
    """The home of interactive requests: its engine, its batch guests, and the answers that are open."""

    engine: Engine
    load: Load
    guests: int
    open_: float

    def interactive_goodput(self, tpot_s: float, spread: float = SPREAD) -> float:
        """Weighted tokens per second of interactive answers in time."""
        return self.interactive_goodputs((tpot_s,), spread)[0]

    def interactive_goodputs(self, grid: Sequence[float], spread: float = SPREAD) -> tuple[float, ...]:
        """The same at each objective, in seconds per token."""
        load, open_ = self.load, self.open_
        cost, _, _ = _in_force(self.engine, load, 1 + open_ + self.guests)
        first_s = prefill_s(
            cost, load.interactive_prompt_tokens, open_ + self.guests, load.interactive_context
        )
        if load.ttft_s is not None and first_s > load.ttft_s:
            return (0.0,) * len(grid)
        # A request that arrives at random meets the average number of others.
        others = np.arange(int(stats.poisson.ppf(1 - RARE, open_)) + 1)
        token_s = np.array(
            [_interactive_s(self.engine, load, 1 + float(count), self.guests) for count in others]
        )
        met = stats.poisson.pmf(others, open_)
        offered = load.interactive_weight * load.interactive_per_s * load.interactive_answer_tokens
        in_time = stats.norm.cdf(np.log(np.array(grid)[:, None] / token_s) / spread)
        return tuple(offered * min(1.0, float(share)) for share in (in_time * met).sum(axis=1))

    def guest_tokens_per_s(self) -> float:
        """Tokens per second of the guests, at the K that interactive answers want."""
        if self.guests < 1:
            return 0.0
        load = self.load
        cost, step, length = _in_force(self.engine, load, self.open_ + self.guests)
        token_s = step / self.engine.batch.get(length, NO_DRAFTS).tokens
        token_s += churn_s(cost, self.guests - 1, load.batch_prompt_tokens, load.batch_answer_tokens)
        token_s += churn_s(cost, self.open_, load.interactive_prompt_tokens, load.interactive_answer_tokens)
        whole_s = prefill_s(cost, load.batch_prompt_tokens) + load.batch_answer_tokens * token_s
        return self.guests * load.batch_answer_tokens / whole_s


def home(engine: Engine, load: Load, guests: int = 0) -> Home:
    """The home with so many guests, in balance: at most 1,000 answers open, where it cannot keep up."""
    low, high = 0.0, MOST_OPEN
    offered = load.interactive_per_s * load.interactive_answer_tokens
    for _ in range(60):
        middle = (low + high) / 2
        # More are open than arrive in the time that they take at this batch: the true number is lower.
        if middle > offered * _interactive_s(engine, load, 1 + middle, guests):
            high = middle
        else:
            low = middle
    return Home(engine, load, guests, low)


def batch_tokens_per_s(engine: Engine, load: Load, streams: int | None = None) -> float:
    """Tokens per second of batch streams, all or so many, at a home of their own with the best K.

    Prompts are included; what the engine does not run at once waits.
    """
    streams = load.batch_streams if streams is None else streams
    streams = streams if engine.most is None else min(streams, engine.most)
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


def _interactive_s(engine: Engine, load: Load, sequences: float, guests: int) -> float:
    """Seconds per token of one of so many interactive answers beside guests, with the best K."""
    cost, step, length = _in_force(engine, load, sequences + guests)
    token_s = step / engine.interactive[length].tokens
    token_s += churn_s(cost, sequences - 1, load.interactive_prompt_tokens, load.interactive_answer_tokens)
    return token_s + churn_s(cost, guests, load.batch_prompt_tokens, load.batch_answer_tokens)


def _in_force(engine: Engine, load: Load, sequences: float) -> tuple[StepCost, float, int]:
    """The cost with the K that is best for interactive answers in such a batch, its step, and K."""
    offers = []
    for length, gain in engine.interactive.items():
        cost = cost_at(engine.cost, length, gain)
        offers.append((cost, step_s(cost, sequences, load.interactive_context), length))
    return min(offers, key=lambda offer: offer[1] / engine.interactive[offer[2]].tokens)
