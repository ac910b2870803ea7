"""How fast a pool answered of late, as its engines' finished requests would tell; a share at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.simulation.fluid.course import Course
from app.simulation.fluid.history import Of, row_of
from app.simulation.fluid.load import FluidLoad, Numbers, summed
from app.simulation.fluid.pace import Pace
from app.simulation.fluid.spread import percentiles, tpot_s
from autoscaling.latencies import FEWEST, MOST, WINDOW_S
from autoscaling.routing_rules import PoolSpeed

STICKY = 0.05  # share by which a mean length has to change to be told anew, so that known routes hold longer
OF_CHANCE = (1 / 6, 3 / 6, 5 / 6)  # equally likely parts of the longest chance in a time to first token


@dataclass(frozen=True, slots=True)
class _Part:
    """What ended and began in one tick, and the pace it had."""

    at_s: float
    ended: Numbers  # by flow
    begun: Numbers  # by kind
    count: float  # of those that ended
    rows: Numbers  # the pace's columns, times the count


class Speeds:
    """Of one pool: times of the last minute or the last thousand requests, mean lengths of the minute."""

    def __init__(self, load: FluidLoad, courses: Sequence[Course]) -> None:
        self._courses = courses
        self._answers = np.array([flow.answers.mean for flow in load.flows])
        self._prompts = np.array([kind.prompt_tokens for kind in load.kinds])
        self._own = _own_prompts(load)
        self._parts: deque[_Part] = deque()
        self._ended: Numbers = np.zeros_like(self._answers)  # of all parts
        self._begun: Numbers = np.zeros_like(self._prompts)
        self._told: dict[str, float] = {}

    def add(self, at_s: float, ended: Numbers, begun: Numbers, pace: Pace) -> None:
        """Note a tick: sequences that ended, by flow, and that were let in, by kind."""
        count = float(summed(ended))
        self._parts.append(_Part(at_s, ended, begun, count, count * np.array(row_of(pace))))
        self._ended += ended
        self._begun += begun
        while at_s - self._parts[0].at_s > WINDOW_S:
            gone = self._parts.popleft()
            self._ended -= gone.ended
            self._begun -= gone.begun

    def speed(self) -> PoolSpeed:
        """Percentiles and means; unknown for fewer than 20 requests."""
        ended, begun = np.zeros_like(self._answers), np.zeros_like(self._prompts)
        total, rows = 0.0, np.zeros(len(Of))
        for part in reversed(self._parts):
            ended += part.ended
            begun += part.begun
            total += part.count
            rows += part.rows
            if total >= MOST:
                break
        if total < FEWEST:
            return PoolSpeed()
        row = rows / total
        middle, high = self._tpot(ended, row)
        first, late = self._ttft(begun, row)
        return PoolSpeed(
            first,
            late,
            middle,
            high,
            answer_tokens=self._mean("answer", self._ended, self._answers),
            prompt_tokens=self._mean("prompt", self._begun, self._prompts),
        )

    def _tpot(self, ended: Numbers, row: Numbers) -> tuple[float | None, float | None]:
        found, weights = [], []
        for course, count, prompts in zip(self._courses, ended, self._own, strict=True):
            if count <= 0 or not len(course.steps):
                continue
            values = tpot_s(course.steps * row[Of.STEP_S], course.steps, course.further, float(prompts), row)
            found.append(values.ravel())
            weights.append(np.repeat(course.shares * count, values.shape[-1]))
        if not found:
            return None, None
        middle, high = percentiles(np.concatenate(found), np.concatenate(weights), (0.5, 0.95))
        return middle, high

    def _ttft(self, begun: Numbers, row: Numbers) -> tuple[float | None, float | None]:
        if summed(begun) <= 0:
            return None, None
        chances = 2 * row[Of.CHANCE_S] * np.array(OF_CHANCE)
        values = row[Of.BEFORE_S] + row[Of.TOKEN_S] * self._prompts[:, None] + chances
        middle, high = percentiles(values.ravel(), np.repeat(begun, len(OF_CHANCE)), (0.5, 0.95))
        return middle, high

    def _mean(self, name: str, counts: Numbers, tokens: Numbers) -> float | None:
        """The mean length over the minute, as it was told before while it is about the same."""
        total = float(summed(counts))
        if total <= 0:
            return None
        mean = float(counts @ tokens) / total
        before = self._told.get(name)
        if before is None or abs(mean - before) > STICKY * before:
            self._told[name] = mean
        return self._told[name]


def _own_prompts(load: FluidLoad) -> Numbers:
    """The mean tokens of a prompt, by flow, over the whole load."""
    flows = [kind.flow for kind in load.kinds]
    counts = load.arrivals.sum(axis=0)
    tokens = counts * np.array([kind.prompt_tokens for kind in load.kinds])
    size = len(load.flows)
    return np.asarray(np.bincount(flows, tokens, size) / np.maximum(np.bincount(flows, counts, size), 1e-9))
