"""Do two pools pay?  What two replicas sell at an objective, for each way to fill them, by the cost models.

Under our routing one replica is the home of interactive requests and the other that of batch, of which some
may be guests beside the interactive ones.  Both may be plain, both speculative with the engine's K table, or
the home of interactive speculative and the other plain.  As many are guests as sell most; routing, which
knows neither load nor weight, only comes near that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from autoscaling.profiling.findings import TIE, PoolAnswer, PoolPrediction
from autoscaling.profiling.homes import SPREAD, Engine, Home, batch_tokens_per_s, home
from autoscaling.profiling.load import Load

GRID_S: Final = (0.02, 0.025, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.15, 0.2)
# In a tie the first one wins: fewest things that can go wrong.
SIMPLEST_FIRST: Final = (PoolAnswer.ONE_PLAIN, PoolAnswer.ONE_SPECULATIVE, PoolAnswer.TWO_POOLS)
EACH: Final = 16  # numbers of guests that are tried one by one; larger ones in steps of an eighth


@dataclass(frozen=True, slots=True)
class Way:
    """One way to fill the replicas with one number of guests."""

    first: Home  # of interactive requests and the guests
    batch_tokens_per_s: float  # of the guests, and at the second replica


def ways(first: Engine, second: Engine, load: Load) -> tuple[Way, ...]:
    """One for each number of guests that is tried."""
    most = load.batch_streams if first.most is None else min(load.batch_streams, first.most)
    found = []
    guests = 0
    while guests <= most:
        at_home = home(first, load, guests)
        others = batch_tokens_per_s(second, load, load.batch_streams - guests)
        found.append(Way(at_home, at_home.guest_tokens_per_s() + others))
        guests += 1 if guests < EACH else guests // 8
    return tuple(found)


def predict(
    plain: Engine, speculative: Engine, load: Load, tpot_s: float, spread: float = SPREAD
) -> PoolPrediction:
    """Goodput of each configuration at one objective, and which one to take.

    `spread` is the standard deviation of the logarithm of the time per token of answers at one batch.
    """
    (found,) = predict_grid(plain, speculative, load, (tpot_s,), spread)
    return found


def predict_grid(
    plain: Engine, speculative: Engine, load: Load, grid: Sequence[float] = GRID_S, spread: float = SPREAD
) -> tuple[PoolPrediction, ...]:
    """The prediction at each objective, in seconds per token."""
    homes = {
        PoolAnswer.ONE_PLAIN: ways(plain, plain, load),
        PoolAnswer.ONE_SPECULATIVE: ways(speculative, speculative, load),
        PoolAnswer.TWO_POOLS: ways(speculative, plain, load),
    }
    offered = load.interactive_weight * load.interactive_per_s * load.interactive_answer_tokens
    interactive = {
        answer: [way.first.interactive_goodputs(grid, spread) for way in some]
        for answer, some in homes.items()
    }
    found = []
    for place, tpot_s in enumerate(grid):
        sold = {
            answer: [
                (in_time[place], way.batch_tokens_per_s)
                for in_time, way in zip(interactive[answer], some, strict=True)
            ]
            for answer, some in homes.items()
        }
        goodput = {answer: max(sum(both) for both in some) for answer, some in sold.items()}
        in_time = max(interactive for some in sold.values() for interactive, _ in some)
        found.append(_prediction(tpot_s, goodput, in_time / offered if offered > 0 else 1.0))
    return tuple(found)


def _prediction(tpot_s: float, goodput: dict[PoolAnswer, float], in_time: float) -> PoolPrediction:
    best = max(goodput.values())
    answer = next(one for one in SIMPLEST_FIRST if goodput[one] * (1 + TIE) >= best)
    others = max(value for one, value in goodput.items() if one is not answer)
    margin = goodput[answer] / others if others > 0 else math.inf
    return PoolPrediction(tpot_s, goodput, answer, margin, in_time)
