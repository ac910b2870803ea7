"""What `benchmarks.engine_check` measures, and what of it the fit does not see.

Pure.  Every cell answers the same prompts of its length, in one batch after the other, so that cells differ
by what an engine costs and not by the texts that fell to them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from types import MappingProxyType
from typing import Final

from app.bench.plan import SINGLE_ANSWERS, Pair
from app.bench.plan import Plan as Grid
from app.bench.prompts import Context, Prompt
from autoscaling.profiling.measured import Cell

SEED: Final = "engine-check-1"
PROMPTS: Final = 8  # of each length; a batch of 16 has each of them twice
TARGET: Final = 0.15  # of the tokens per second of any held-out cell


@dataclass(frozen=True, slots=True)
class Kind:
    """Prompts of one length: those of `workload` that come closest to it by the engine's own count."""

    workload: str
    contexts: tuple[Context, ...]
    tokens: int


# No built-in text of 32 tokens can be copied; what else is that short is a question.
KINDS: Final[Mapping[str, Kind]] = MappingProxyType(
    {
        "chat-32": Kind("chat", ("short",), 32),
        "copy-512": Kind("copy", ("short", "medium"), 512),
        "copy-1500": Kind("copy", ("long",), 1500),
    }
)


@dataclass(frozen=True, slots=True)
class Plan:
    """The grid."""

    kinds: tuple[str, ...]
    batches: tuple[int, ...]  # B
    lengths: tuple[int, ...]  # K
    rounds: int
    answer_tokens: int
    quick: bool = False

    @property
    def grid(self) -> Grid:
        """As the bench takes it, which then measures the pairs of `calls`."""
        return Grid(
            batches=self.batches,
            hold_out=(),
            lengths=self.lengths,
            workloads=self.kinds,
            rounds=self.rounds,
            quick=self.quick,
            answer_tokens=self.answer_tokens,
        )


BATCHES: Final = (1, 2, 4, 8, 16)
LENGTHS: Final = (0, 2, 4, 6)
FULL: Final = Plan(tuple(KINDS), BATCHES, LENGTHS, rounds=3, answer_tokens=32)
QUICK: Final = Plan(("chat-32", "copy-1500"), BATCHES, LENGTHS, rounds=1, answer_tokens=24, quick=True)


@dataclass(frozen=True, slots=True)
class Call:
    """One batch of a cell on both engines; a batch of one is `SINGLE_ANSWERS` of them."""

    pair: Pair
    part: int  # which of the prompts, as the bench numbers rounds


def held_out(cell: Cell) -> bool:
    """Every other cell, as on a chess board over batch, K and prompts.

    So each batch, K and length is fitted in other combinations.  To leave out all batches of two would ask
    the cost model for what it cannot know: on a CPU a step of two sequences may take longer than one of four.
    """
    kind = list(KINDS).index(cell.workload)
    return (BATCHES.index(cell.sequences) + LENGTHS.index(cell.draft_length) + kind) % 2 == 1


def calls(plan: Plan, round_: int) -> Iterator[Call]:
    """Everything that one round measures, in an order of its own: what drifts hits every cell alike."""
    found = [
        Call(Pair(size, kind, length), part)
        for kind in plan.kinds
        for length in plan.lengths
        for size in plan.batches
        for part in _parts(size)
    ]
    Random(f"{SEED}/{round_}").shuffle(found)
    return iter(found)


def _parts(sequences: int) -> Sequence[int]:
    """Numbers under which the bench takes each prompt once, or all of them in one batch."""
    if sequences == 1:
        return range(0, PROMPTS, SINGLE_ANSWERS)
    return range(max(1, PROMPTS // sequences))


def nearest(counted: Sequence[tuple[int, Prompt]], tokens: int) -> list[Prompt]:
    """The `PROMPTS` of them whose number of tokens comes closest, in their order."""
    closest = sorted(range(len(counted)), key=lambda at: abs(counted[at][0] - tokens))[:PROMPTS]
    return [counted[at][1] for at in sorted(closest)]


def expected_s(call: Call, plan: Plan) -> float:
    """Seconds that a call takes, roughly: the plain engine's steps, what is left of the prompts, the rest."""
    sequences = call.pair.sequences
    context_s = 4e-6 * sequences * KINDS[call.pair.workload].tokens
    step_s = 0.034 + 0.0015 * sequences + context_s
    times = SINGLE_ANSWERS if sequences == 1 else 1
    return times * (plan.answer_tokens * step_s + 0.1 * sequences) + 0.3
