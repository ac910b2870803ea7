"""Who was served in time: the history of a fluid run against the objectives of its tiers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from app.simulation.fluid.course import Course
from app.simulation.fluid.history import History, Of
from app.simulation.fluid.load import FluidLoad, Numbers
from app.simulation.fluid.speeds import OF_CHANCE
from app.simulation.fluid.spread import FATES, tpot_s
from autoscaling.policy import TierObjective
from autoscaling.types import Role, Tier

COHORTS: Final = 10_000  # times of admission that are told apart at most
AT_ONCE: Final = 400  # of them that are judged together
SHORTEST_S, LONGEST_S, BINS = 1e-4, 1e3, 320  # of histograms of times, whose bins grow by 5 %


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """Requests by tier, in the order of `Tier`, and by interval of arrival; of histograms bins are last."""

    in_time: Numbers  # [interval, tier]
    ttft: Numbers  # [tier, bin]
    tpot: Numbers  # [interval, tier, bin]


def judge(
    load: FluidLoad,
    history: History,
    courses: Mapping[Role, Sequence[Course]],
    objectives: Mapping[Tier, TierObjective],
    interval_s: float,
    intervals: int,
) -> Judged:
    """Judge all that were let in, each by the clock of its pool from then on.

    A request that came behind the last interval, or had to wait beyond it, counts where it came.
    """
    ticks = history.ticks
    tiers = list(Tier)
    judged = Judged(
        np.zeros((intervals, len(tiers))),
        np.zeros((len(tiers), BINS)),
        np.zeros((intervals, len(tiers), BINS)),
    )
    begun = np.arange(ticks) * load.tick_s
    for place, role in enumerate(Role):
        pools = history.pools[:ticks, place]
        clock = _Clock(pools, load.tick_s)
        for flow, one in enumerate(load.flows):
            tier, objective = tiers.index(one.tier), objectives[one.tier]
            kinds = [number for number, kind in enumerate(load.kinds) if kind.flow == flow]
            taken = history.taken[:ticks, kinds, place]
            total = taken.sum(axis=1)
            if not total.any():
                continue
            came = np.maximum(begun[:, None] + load.tick_s / 2 - history.waited_s[:ticks, kinds], 0.0)
            interval = np.minimum((came / interval_s).astype(int), intervals - 1)
            lengths = [load.kinds[number].prompt_tokens for number in kinds]
            prompts = np.divide(taken @ lengths, total, np.zeros(ticks), where=total > 0)
            kept = _tpots(
                clock, courses[role][flow], total, prompts, interval, objective, judged.tpot[:, tier]
            )
            for column, number in enumerate(kinds):
                weights, waited_s = taken[:, column], history.waited_s[:ticks, number]
                first_s = pools[:, Of.BEFORE_S] + pools[:, Of.TOKEN_S] * load.kinds[number].prompt_tokens
                soon = _ttfts(
                    first_s + waited_s,
                    np.minimum(waited_s, load.tick_s),
                    pools[:, Of.CHANCE_S],
                    weights,
                    objective,
                    judged.ttft[tier : tier + 1],
                )
                judged.in_time[:, tier] += np.bincount(interval[:, column], weights * soon * kept, intervals)
    return judged


def quantile(histogram: Numbers, share: float) -> float | None:
    """The time below which so much of a histogram lies, in seconds; None where it is empty."""
    reached = np.cumsum(histogram)
    if reached[-1] <= 0:
        return None
    place = int(np.searchsorted(reached, share * reached[-1]))
    before = float(reached[place - 1]) if place else 0.0
    inside = (share * float(reached[-1]) - before) / max(float(histogram[place]), 1e-300)
    return SHORTEST_S * math.exp((place + min(1.0, inside)) * _BIN)


_BIN: Final = math.log(LONGEST_S / SHORTEST_S) / BINS


class _Clock:
    """The steps of a pool by time, and the other way round."""

    def __init__(self, pools: Numbers, tick_s: float) -> None:
        self.pools = pools
        self.tick_s = tick_s
        last = pools[-1]
        end = last[Of.CLOCK] + last[Of.STEPS_PER_S] * tick_s
        # Behind the end the clock goes on as it did: nearly nobody is left then.
        far_s = 1e6
        self._steps = np.concatenate((pools[:, Of.CLOCK], (end, end + far_s * last[Of.STEPS_PER_S])))
        self._at_s = np.concatenate((np.arange(len(pools) + 1) * tick_s, (len(pools) * tick_s + far_s,)))

    def time(self, steps: Numbers) -> Numbers:
        """When the clock shows so many steps."""
        return np.asarray(np.interp(steps, self._steps, self._at_s), float)


def _tpots(
    clock: _Clock,
    course: Course,
    total: Numbers,
    prompts: Numbers,
    interval: NDArray[np.int64],
    objective: TierObjective,
    histogram: Numbers,
) -> Numbers:
    """By tick of admission, the share that keeps the time per token; and the histogram of these times."""
    ticks = len(total)
    kept = np.ones(ticks)
    if not len(course.steps):  # single tokens have no time per token
        return kept
    stride = math.ceil(ticks / COHORTS)
    edges = np.arange(0, ticks, stride)
    masses = np.add.reduceat(total, edges)
    middles = np.minimum(edges + stride // 2, ticks - 1)
    chosen = np.flatnonzero(masses > 0)
    shares = np.ones(len(edges))
    single = 1.0 - float(course.shares.sum())
    weights = course.shares / FATES
    for begin in range(0, len(chosen), AT_ONCE):
        some = chosen[begin : begin + AT_ONCE]
        rows = clock.pools[middles[some]]
        own = prompts[middles[some]][:, None]
        start = rows[:, Of.CLOCK] + (clock.tick_s / 2 + rows[:, Of.FIRST_S]) * rows[:, Of.STEPS_PER_S]
        stay_s = clock.time(start[:, None] + course.steps) - clock.time(start)[:, None]
        values = tpot_s(stay_s, course.steps, course.further, own, rows[:, None, :])
        if objective.tpot_seconds is not None:
            inside = (values <= objective.tpot_seconds).sum(axis=2)
            shares[some] = single + inside @ weights
        each = masses[some, None, None] * weights[:, None]
        _count(histogram, interval[middles[some], 0][:, None, None], values, each)
    return np.asarray(np.repeat(shares, stride)[:ticks])


def _ttfts(
    first_s: Numbers,
    apart_s: Numbers,
    chance_s: Numbers,
    weights: Numbers,
    objective: TierObjective,
    histogram: Numbers,
) -> Numbers:
    """By tick of admission, the share whose first token comes in time; and the histogram of these times.

    The time is spread evenly: over twice the chance part, and by half of `apart_s` to each side.  So far are
    those apart who waited and were let in together: they come in turn, and within a tick.
    """
    width = 2 * chance_s + apart_s
    low = first_s - apart_s / 2
    for part in OF_CHANCE:
        _count(histogram, np.zeros(len(low), int), low + width * part, weights / len(OF_CHANCE))
    if objective.ttft_seconds is None:
        return np.ones(len(first_s))
    room = objective.ttft_seconds - low
    return np.asarray(np.clip(room / np.maximum(width, 1e-9), 0.0, 1.0))


def _count(histogram: Numbers, interval: NDArray[np.int64], values: Numbers, weights: Numbers) -> None:
    """Add times in seconds to the histogram of their interval; the arrays broadcast together."""
    bins = np.minimum(np.log(np.maximum(values / SHORTEST_S, 1.0)) / _BIN, BINS - 1).astype(int)
    low, high = int(interval.min()), int(interval.max()) + 1
    places = (interval - low) * BINS + bins
    found = np.bincount(places.ravel(), np.broadcast_to(weights, places.shape).ravel(), (high - low) * BINS)
    histogram[low:high] += found.reshape(high - low, BINS)
