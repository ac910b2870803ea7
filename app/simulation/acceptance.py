"""How many draft tokens are accepted, step by step: by class, with requests that differ and a memory.

Each step of a request has a latent value, normal over all steps.  A part of its variance belongs to the
request, the rest goes from step to step with a correlation.  A draft is accepted as far as the value lies
above one threshold for each position.  So every share of `survival` holds exactly on average, whatever the
requests and the memory are: positions fall one after the other, as with a hazard for each.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from autoscaling.goodput import tokens_per_step

SPREAD_AT = 5  # the K that `spread` is told for
# In the reference's data the mean of a request's first eight steps predicts the rest with R2 -0.69, so it
# errs by 1.69 of the variance between requests: twice what eight independent steps would.  0.4 does that.
PERSISTENCE = 0.4
MOST_SHARED = 0.9  # of the latent variance that a request can own; with more its steps hardly differ
BLOCK = 64  # steps that are drawn at once
_EFFECTS = 2048  # equally likely requests that stand for all

Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Acceptance:
    """How drafts fare for one class of work.

    `spread` is the standard deviation between requests of the tokens per step at K = 5; where steps vary too
    little for it, requests differ as much as they can.  Raises ValueError for shares that cannot be.
    """

    survival: tuple[float, ...]  # [i]: share of drafts whose first i+1 tokens are all accepted
    draft_rate: float = 1.0  # share of steps that carry a draft; the others bring one token
    spread: float = 0.0
    persistence: float = PERSISTENCE  # correlation of a step with the next of its request, 0..1
    source: str = ""
    undrafted: float | None = None  # steps without a draft for each token; None: always the same share

    def __post_init__(self) -> None:
        for before, share in pairwise((1.0, *self.survival, 0.0)):
            if not 0.0 <= share <= before:
                raise ValueError(
                    f"survival: {share:g} after {before:g}: give shares 0..1 that never rise with position"
                )
        shares = {"draft_rate": self.draft_rate, "persistence": self.persistence}
        for name, value in (shares | {"undrafted": self.undrafted or 0.0}).items():
            if not 0.0 <= value <= 1.0:
                raise ValueError(f"{name}: {value:g}: must be within 0..1")
        if not (self.spread >= 0.0 and math.isfinite(self.spread)):
            raise ValueError(f"spread: {self.spread:g}: must be 0 or more tokens per step")

    def tokens_per_step(self, draft_length: int) -> float:
        """Tokens that a step at K brings a sequence on average, drafts or not."""
        return tokens_per_step(self.survival, draft_length, self.draft_rate)

    def drafting(self, draft_length: int) -> float:
        """Share of steps at K that carry a draft.

        Where drafts are looked up, new text has none: the longer drafts are, the more of the steps that are
        left are of new text.
        """
        if self.undrafted is None:
            return self.draft_rate
        accepting = self.tokens_per_step(1) - 1.0
        return max(accepting, 1.0 - self.undrafted * self.tokens_per_step(draft_length))


def by_length(
    gains: Iterable[float], draft_rate: float = 1.0, spread: float = 0.0, source: str = ""
) -> Acceptance:
    """The acceptance with these tokens per step at K = 1, 2, ...

    Survival depends a little on the K in force; this one gives the right mean at each K.  Raises ValueError
    where a longer draft would bring less, or more than its tokens.
    """
    shares = tuple((after - before) / draft_rate for before, after in pairwise((1.0, *gains)))
    return Acceptance(shares, draft_rate, spread, source=source)


class Outcomes:
    """What the steps of one request accept, drawn as they are needed."""

    __slots__ = ("_drawn", "_draws", "_effect", "_latest", "_request")

    def __init__(self, draws: Draws, request: int) -> None:
        self._draws, self._request = draws, request
        self._drawn = 0
        self._effect = self._latest = 0.0

    def more(self) -> list[int]:
        """The next `BLOCK` steps, the last one first; -1 is a step without a draft."""
        draws = self._draws
        source = draws.source(self._request, self._drawn)
        noise = source.standard_normal(BLOCK + 1)
        if self._drawn == 0:
            effects = draws.effects
            self._effect = effects[int(source.random() * len(effects))]
            self._latest = float(noise[BLOCK])
        self._drawn += 1
        values = draws.carry @ noise[:BLOCK] + draws.fading * self._latest
        self._latest = float(values[-1])
        return draws.outcomes(values, self._effect)


class Draws:
    """Draws the outcomes of requests of one class; a request's depend on `seed` and its number only."""

    def __init__(self, acceptance: Acceptance, longest: int, seed: int) -> None:
        shared = shared_part(acceptance)
        self.effects = _effects(acceptance, longest)
        lags = np.subtract.outer(np.arange(BLOCK), np.arange(BLOCK))
        kept = np.power(acceptance.persistence, np.maximum(lags, 0))
        self.carry = np.where(lags >= 0, kept, 0.0) * math.sqrt(1.0 - acceptance.persistence**2)
        self.fading = np.power(acceptance.persistence, np.arange(1, BLOCK + 1))
        self._thresholds = _thresholds(acceptance, longest)
        self._own, self._shared = math.sqrt(1.0 - shared), math.sqrt(shared)
        self._bits = np.random.Philox(key=0)
        self._state = self._bits.state
        self._generator = np.random.Generator(self._bits)
        self._seed = seed % 2**64

    def request(self, number: int) -> Outcomes:
        """The outcomes of the request of this number, from its first step on."""
        return Outcomes(self, number % 2**64)

    def source(self, request: int, block: int) -> np.random.Generator:
        """The generator at the beginning of a block of a request, whatever was drawn before."""
        state = self._state
        inner = state["state"]
        inner["key"] = np.array((self._seed, request), np.uint64)
        inner["counter"] = np.array((0, 0, 0, block), np.uint64)
        state["buffer_pos"], state["has_uint32"] = 4, 0
        self._bits.state = state
        return self._generator

    def outcomes(self, values: Numbers, effect: float) -> list[int]:
        """Accepted tokens for each latent value, the last one first."""
        latent = values * self._own + self._shared * effect
        found: list[int] = (self._thresholds.searchsorted(latent) - 1)[::-1].tolist()
        return found


@cache
def shared_part(acceptance: Acceptance) -> float:
    """The part of the latent variance that belongs to the request, so that requests spread as told."""
    if acceptance.spread == 0.0:
        return 0.0
    nodes, density = np.polynomial.hermite_e.hermegauss(40)
    low, high = 0.0, MOST_SHARED
    for _ in range(40):
        middle = (low + high) / 2
        means = _means(acceptance, SPREAD_AT, middle, nodes)
        weights = density * means / (density @ means)  # as requests come, see `_effects`
        spread = math.sqrt(float(weights @ (means - weights @ means) ** 2))
        low, high = (middle, high) if spread < acceptance.spread else (low, middle)
    return (low + high) / 2


@cache
def _effects(acceptance: Acceptance, longest: int) -> list[float]:
    """Effects of equally likely requests, the better ones more often.

    Of two answers of one length that with more tokens per step has fewer steps.  Requests come in proportion
    to their tokens per step, so that the mean over all steps is the profile's.
    """
    shared = shared_part(acceptance)
    if shared == 0.0:
        return [0.0]
    wanted = (np.arange(_EFFECTS) + 0.5) / _EFFECTS
    effects = ndtri(wanted)
    weights = _means(acceptance, longest, shared, effects)
    reached = (np.cumsum(weights) - weights / 2) / weights.sum()
    found: list[float] = np.interp(wanted, reached, effects).tolist()
    return found


def _means(acceptance: Acceptance, longest: int, shared: float, effects: Numbers) -> Numbers:
    """Tokens per step of requests with these effects."""
    thresholds = _thresholds(acceptance, longest)[1:, None]
    above = (math.sqrt(shared) * effects - thresholds) / math.sqrt(1.0 - shared)
    means: Numbers = 1.0 + ndtr(above).sum(axis=0)
    return means


def _thresholds(acceptance: Acceptance, longest: int) -> Numbers:
    """Of carrying a draft, and of accepting 1 to `longest` tokens of it; infinite for never and always."""
    gains = [acceptance.tokens_per_step(length) for length in range(longest + 1)]
    shares = [acceptance.drafting(longest), *(after - before for before, after in pairwise(gains))]
    thresholds: Numbers = -ndtri(np.clip(shares, 0.0, 1.0))
    return thresholds
