"""What `benchmarks.goodput` compares, under which load and in which order; committed before the run.

Pure.  Load, objectives to judge at and weight stand since before the very first run; a change makes all
results void.  In that first run our rules obeyed 50 ms whatever they were judged at, and kept batch out of
the speculative slot until the plain one was full: they lost to the least loaded slot, and both were mended.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

TPOTS_S: Final = (0.02, 0.025, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1)  # objectives that answers are judged at
TTFT_S: Final = 3.0
# Objectives that our rules obey, each in conditions of its own, and are judged at: the ends of the grid and
# its middle.  Curves show all answers at all objectives.
IN_FORCE_S: Final = (0.02, 0.05, 0.1)
WEIGHT: Final = 4.0  # of an interactive token: price lists sell a priority token at about 4 x a flex token
FLAT: Final = 1.0  # the other weight that is shown

RATE_PER_S: Final = 0.5  # interactive arrivals, at random
INTERACTIVE_TOKENS: Final = 64
BATCH_STREAMS: Final = 12  # one request each at a time, without a pause
BATCH_TOKENS: Final = 96
SEED: Final = "goodput-1"

MAX_NUM_SEQS: Final = 16  # of every engine: one of them holds the whole batch load
UNMEASURED_LIMIT: Final = (
    8  # soft limit of slot 0 where not even one sequence keeps the objective: the default
)
# Soft limit of slot 1, whatever engine lies there: a plain replica's default is 32, and its engine holds 16.
BATCH_SLOT_LIMIT: Final = MAX_NUM_SEQS
INTERACTIVE_DEADLINE_S, BATCH_DEADLINE_S = 5.0, 300.0
RESERVE: Final = 2
# Sequences at which our rules read a K table, since they know one K per pool: the reserve and two callers at
# slot 0, the batch streams at slot 1.
TABLE_AT: Final = (4, BATCH_STREAMS)

SURE_WIN: Final = 1.2  # predicted: two pools over the best single one
WIN: Final = 1.1  # measured, where a win was predicted


class Method(StrEnum):
    """How the speculative engines draft."""

    NGRAM = "ngram"
    DRAFT_MODEL = "draft_model"
    EAGLE = "eagle"

    @property
    def synthetic(self) -> bool:
        """Whether the acceptance of drafts is prescribed: the drafter that there is would have none."""
        return self is Method.DRAFT_MODEL

    @property
    def in_words(self) -> str:
        """As pages call it; prescribed acceptance is named wherever the method is."""
        return f"{self.value} (synthetic acceptance)" if self.synthetic else self.value


class Configuration(StrEnum):
    """Which engines lie at slots 0 and 1."""

    ALL_PLAIN = "all_plain"
    ALL_SPECULATIVE = "all_speculative"  # K fixed at the method's largest
    ONE_POOL_TABLE = "one_pool_table"  # both speculative, K by the engine's table
    TWO_POOLS = "two_pools"  # slot 0 speculative with the table, slot 1 plain


class RoutingKind(StrEnum):
    """How requests find a slot."""

    LEAST_LOADED = "least_loaded"
    OURS = "ours"


@dataclass(frozen=True, slots=True)
class Condition:
    """One configuration under one routing."""

    configuration: Configuration
    routing: RoutingKind
    in_force_s: float | None = None  # the objective that our rules obey; the least loaded slot obeys none

    @property
    def name(self) -> str:
        """As results call it."""
        obeyed = "" if self.in_force_s is None else f"_{1000 * self.in_force_s:.0f}_ms"
        return f"{self.configuration}_{self.routing}{obeyed}"


def ours_at(configuration: Configuration, tpot_s: float) -> Condition:
    """A configuration under our rules, which obey this objective."""
    return Condition(configuration, RoutingKind.OURS, tpot_s)


CONDITIONS: Final = tuple(
    condition
    for one in Configuration
    for condition in (
        Condition(one, RoutingKind.LEAST_LOADED),
        *(ours_at(one, tpot_s) for tpot_s in IN_FORCE_S),
    )
)


@dataclass(frozen=True, slots=True)
class Window:
    """Seconds of one condition: warm load, what counts, and arrivals beyond, so that the last meet full load.

    Batch streams go on until every interactive answer that counts has ended.
    """

    warm_s: float
    measured_s: float
    tail_s: float = 8.0
    rate_per_s: float = RATE_PER_S  # of interactive arrivals

    @property
    def end_s(self) -> float:
        """When the counted part ends."""
        return self.warm_s + self.measured_s

    def holds(self, at_s: float) -> bool:
        """Whether an instant lies in the counted part."""
        return self.warm_s <= at_s < self.end_s


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured."""

    rounds: int
    window: Window
    methods: tuple[Method, ...]
    conditions: tuple[Condition, ...] = CONDITIONS


FULL: Final = Plan(5, Window(3.0, 20.0), tuple(Method))
QUICK: Final = Plan(
    2, Window(3.0, 8.0), (Method.NGRAM,), tuple(one for one in CONDITIONS if one.in_force_s in (None, 0.05))
)


def order(conditions: Sequence[Condition], index: int) -> tuple[Condition, ...]:
    """The order of one round: each condition has the same mean place in every two rounds.

    An even round is a row of a Williams square, in which over as many even rounds as there are conditions
    each is once at every place and once after every other; the next one is it backwards.
    """
    shuffled = list(conditions)
    random.Random(SEED).shuffle(shuffled)
    count = len(shuffled)
    zigzag = [(place + 1) // 2 if place % 2 else (count - place // 2) % count for place in range(count)]
    row = tuple(shuffled[(at + index // 2) % count] for at in zigzag)
    return tuple(reversed(row)) if index % 2 else row
