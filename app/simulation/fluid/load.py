"""What comes, per tick: requests by tier, kind of work and length of prompt; of a trace, or of a day."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from app.admission.turns import BY_RANK
from app.simulation.arrival import Arrival
from app.simulation.traces.generated import DAY_CV, DAY_PEAK, DAY_PEAK_AT_S
from app.simulation.traces.renewal import Swing
from autoscaling.types import Tier

PROMPT_GROUPS: Final = 4  # lengths of prompt that routing tells apart, with equally many requests each
EXACT: Final = 64  # answers up to so many tokens are told apart by the token
PER_DOUBLING: Final = 24  # groups of longer ones
# Bursts fill replicas within a second, and answers to short requests are whole in half of one.
TICK_S: Final = 0.5
LONG_TICK_S: Final = 1.0  # a day of any fleet takes about a minute then
LONG_S: Final = 6 * 3600.0
_GRID_S: Final = 600.0  # the day's rate is followed in steps of ten minutes, the window of the published peak

Numbers = NDArray[np.float64]
# The same as the method sum, in half its time on arrays as short as those of a tick.
summed: Final = np.add.reduce


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """How long answers are: groups by growing length in tokens, and the share of each."""

    tokens: Numbers
    shares: Numbers

    @property
    def mean(self) -> float:
        """Tokens of those that come."""
        return float(self.tokens @ self.shares)

    @property
    def mean_in_flight(self) -> float:
        """Tokens of those that run at one moment, done and to do: long answers run for longer."""
        return float(self.tokens**2 @ self.shares) / self.mean


@dataclass(frozen=True, slots=True, eq=False)
class Flow:
    """Requests of one tier and one kind of work."""

    tier: Tier
    workload: str
    answers: Answers


@dataclass(frozen=True, slots=True)
class Kind:
    """Requests that routing cannot tell apart: of one flow, with prompts of about one length."""

    flow: int  # its place in the load
    prompt_tokens: float  # mean
    prompt_square: float  # mean of the squares


@dataclass(frozen=True, slots=True, eq=False)
class FluidLoad:
    """How many requests of each kind come in each tick; flows by rank of tier, kinds by flow."""

    tick_s: float
    flows: tuple[Flow, ...]
    kinds: tuple[Kind, ...]
    arrivals: Numbers  # [tick, kind]

    @property
    def seconds(self) -> float:
        """From the beginning to the end of the last tick."""
        return len(self.arrivals) * self.tick_s


def load_of(
    trace: Sequence[Arrival],
    tick_s: float | None = None,
    longest: int | None = None,
    until_s: float = 0.0,
) -> FluidLoad:
    """A trace as a fluid load, whose last tick is that of the last request, or the one before `until_s`.

    Without `tick_s` ticks take `TICK_S`, or `LONG_TICK_S` where the trace is longer than `LONG_S`.

    `longest` is what an engine holds of prompt and answer together, in tokens: requests whose prompt reaches
    it are left out, answers are cut to it, as engines do.  Raises ValueError where nothing is left, and for
    ticks of no length.
    """
    if tick_s is None:
        tick_s = LONG_TICK_S if trace and trace[-1].at_s > LONG_S else TICK_S
    if not tick_s > 0:
        raise ValueError(f"tick_s: {tick_s:g}: give seconds above 0")
    kept = [one for one in trace if longest is None or one.prompt_tokens < longest]
    if not kept:
        raise ValueError(f"trace: {len(trace)} requests, of which none can be served: give another trace")
    names = sorted({(BY_RANK.index(one.tier), one.workload) for one in kept})
    place = {name: number for number, name in enumerate(names)}
    flow_of = np.array([place[BY_RANK.index(one.tier), one.workload] for one in kept])
    prompts = np.array([one.prompt_tokens for one in kept], float)
    answers = np.array([one.answer_tokens for one in kept], float)
    if longest is not None:
        answers = np.minimum(answers, longest - prompts)
    kinds: list[Kind] = []
    kind_of = np.empty(len(kept), int)
    for flow in range(len(names)):
        mine = np.flatnonzero(flow_of == flow)
        groups = _groups(prompts[mine])
        kind_of[mine] = groups + len(kinds)
        for group in range(int(groups.max()) + 1):
            tokens = prompts[mine[groups == group]]
            kinds.append(Kind(flow, float(tokens.mean()), float((tokens**2).mean())))
    ticks = np.array([int(one.at_s / tick_s) for one in kept])
    arrivals = np.zeros((max(int(ticks.max()) + 1, math.ceil(until_s / tick_s)), len(kinds)))
    np.add.at(arrivals, (ticks, kind_of), 1.0)
    flows = tuple(
        Flow(BY_RANK[rank], workload, answers_of(answers[flow_of == flow]))
        for flow, (rank, workload) in enumerate(names)
    )
    return FluidLoad(tick_s, flows, tuple(kinds), arrivals)


def day_of(
    load: FluidLoad, rng: Generator, *, hours: float = 24.0, scale: float = 1.0, tick_s: float | None = None
) -> FluidLoad:
    """Hours of the same requests at `scale` times their mean rate, which swings once a day from midnight on.

    The rate's fullest ten minutes have 3.1 times the day's mean, and gaps vary by a CV of 2, the middle of
    what ServeGen (alibaba/ServeGen) publishes for its clients; the load is that of many such clients.
    Raises ValueError for hours, scale or ticks that are not above 0.
    """
    seconds = load.tick_s if tick_s is None else tick_s
    for name, value in (("hours", hours), ("scale", scale), ("tick_s", seconds)):
        if not value > 0:
            raise ValueError(f"{name}: {value:g}: give a number above 0")
    edges = np.arange(round(hours * 3600 / seconds) + 1) * seconds
    grid = np.arange(0.0, edges[-1] + _GRID_S, _GRID_S)
    swing = Swing(DAY_PEAK, DAY_PEAK_AT_S)
    passed = np.interp(edges, grid, [swing.elapsed(float(at_s)) for at_s in grid])
    means = np.diff(passed)[:, None] * (load.arrivals.mean(axis=0) / load.tick_s * scale)
    # Counts of a renewal process scatter, over many gaps, by the square of the gaps' CV times their mean.
    arrivals = rng.gamma(means / DAY_CV**2, DAY_CV**2)
    return FluidLoad(seconds, load.flows, load.kinds, arrivals)


def answers_of(tokens: Numbers) -> Answers:
    """Groups of answers of about one length, whose means stay."""
    longer = np.maximum(tokens / EXACT, 1.0)
    keys = np.where(tokens <= EXACT, tokens, EXACT + np.ceil(PER_DOUBLING * np.log2(longer))).astype(int)
    _, group = np.unique(keys, return_inverse=True)
    counts = np.bincount(group)
    return Answers(np.bincount(group, tokens) / counts, counts / len(tokens))


def _groups(prompts: Numbers) -> NDArray[np.int64]:
    """The group of each prompt, from 0, by growing length; as many as differ, at most `PROMPT_GROUPS`."""
    edges = np.quantile(prompts, np.arange(1, PROMPT_GROUPS) / PROMPT_GROUPS)
    found: NDArray[np.int64] = np.unique(np.searchsorted(edges, prompts), return_inverse=True)[1]
    return found
