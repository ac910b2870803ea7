"""How many engine steps answers take: drafts bring some of them sooner, and no two requests alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from app.simulation.acceptance import BLOCK, Acceptance, Draws
from app.simulation.fluid.load import Answers, Flow, Numbers

REQUESTS: Final = 1024  # drawn, to stand for all of a kind of work
DRAWN: Final = 4 * BLOCK  # steps of each; a longer answer goes on at its request's own mean
WAYS: Final = 8  # equally likely ways to generate an answer, from the fewest steps to the most
POINTS: Final = 10  # lengths of answers that stand for all, equally many requests each
BINS: Final = 384  # of steps, up to the longest answer's


@dataclass(frozen=True, slots=True, eq=False)
class Course:
    """Answers of one flow in one pool, as points of which each stands for a share of the requests."""

    steps: Numbers  # after the first token
    further: Numbers  # tokens after the first, 1 or more
    shares: Numbers  # together 1, less those of a single token


@dataclass(frozen=True, slots=True, eq=False)
class Stays:
    """How long the sequences of each flow decode in one pool.

    `summed[flow, n]` is the share of them that have ended after x steps, summed over x from 0 to n bins.
    """

    bin_steps: float
    summed: Numbers  # a bin for each unit of length: the last ones grow by 1

    def ended(self, bins: float) -> Numbers:
        """By flow: the share that ended, summed over the time from 0 to so many bins; 0 below 0."""
        if bins <= 0:
            return np.zeros(len(self.summed))
        whole = int(bins)
        last = self.summed.shape[1] - 1
        if whole >= last:
            return np.asarray(self.summed[:, last] + (bins - last))
        part = bins - whole
        return np.asarray(self.summed[:, whole] * (1.0 - part) + self.summed[:, whole + 1] * part)


def course_of(answers: Answers, acceptance: Acceptance, draft_lengths: Sequence[int], seed: int) -> Course:
    """The points of a flow's answers in engines that draft so many tokens; the largest K counts."""
    few = _few(answers)
    steps = steps_of(few.tokens, acceptance, max(draft_lengths), seed)
    further = np.broadcast_to(few.tokens - 1.0, steps.shape)
    shares = np.broadcast_to(few.shares / len(steps), steps.shape)
    several = further > 0
    return Course(steps[several], further[several], shares[several])


def stays_of(
    flows: Sequence[Flow], acceptances: Sequence[Acceptance], draft_lengths: Sequence[int], seed: int
) -> Stays:
    """The stays of all flows, whose answers are generated as these acceptances have it."""
    found = [
        steps_of(flow.answers.tokens, acceptance, max(draft_lengths), seed)
        for flow, acceptance in zip(flows, acceptances, strict=True)
    ]
    bin_steps = max(1.0, max(float(steps.max()) for steps in found) / BINS)
    ended = np.zeros((len(flows), BINS + 2))
    for place, (flow, steps) in enumerate(zip(flows, found, strict=True)):
        at = (steps / bin_steps).ravel()
        shares = np.broadcast_to(flow.answers.shares / len(steps), steps.shape).ravel()
        low = at.astype(int)
        # Between two edges a stay counts as a part of each, so that the mean stays.
        ended[place] += np.bincount(low, shares * (low + 1 - at), BINS + 2)
        ended[place] += np.bincount(low + 1, shares * (at - low), BINS + 2)
    ended = np.cumsum(ended, axis=1)
    return Stays(bin_steps, np.concatenate((np.zeros((len(flows), 1)), np.cumsum(ended, axis=1)), axis=1))


def steps_of(tokens: Numbers, acceptance: Acceptance, draft_length: int, seed: int) -> Numbers:
    """[way, length]: steps after the first token, for equally likely ways to generate answers so long."""
    further = tokens - 1.0
    if draft_length == 0:
        return np.asarray(further[None, :])
    gained = _gained(acceptance, draft_length, seed)
    found = np.empty((REQUESTS, len(further)))
    for place, request in enumerate(gained):
        whole = float(request[-1])
        found[place] = np.searchsorted(request, np.minimum(further, whole)) + 1.0
        found[place] += np.maximum(0.0, further - whole) * (DRAWN / whole)
    found[:, further <= 0] = 0.0
    found.sort(axis=0)
    return np.asarray(found.reshape(WAYS, REQUESTS // WAYS, -1).mean(axis=1))


@lru_cache(maxsize=32)
def _gained(acceptance: Acceptance, draft_length: int, seed: int) -> Numbers:
    """[request, step]: tokens that the steps up to this one bring, of requests as engines draw them."""
    draws = Draws(acceptance, draft_length, seed)
    accepted = np.empty((REQUESTS, DRAWN))
    for number in range(REQUESTS):
        outcomes = draws.request(number)
        for begin in range(0, DRAWN, BLOCK):
            accepted[number, begin : begin + BLOCK] = outcomes.more()[::-1]
    return np.cumsum(1.0 + np.maximum(accepted, 0.0), axis=1)


def _few(answers: Answers) -> Answers:
    """The same as at most `POINTS` lengths; single tokens stay apart, for they have no time per token."""
    single = answers.tokens <= 1
    middle = np.cumsum(answers.shares) - answers.shares / 2
    group = np.where(single, -1, np.minimum(middle * POINTS, POINTS - 1).astype(int))
    _, place = np.unique(group, return_inverse=True)
    shares = np.bincount(place, answers.shares)
    tokens: Numbers = np.asarray(np.bincount(place, answers.shares * answers.tokens) / shares, float)
    return Answers(tokens, np.asarray(shares, float))
