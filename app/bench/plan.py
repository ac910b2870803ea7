"""What a measurement does, and in which order; pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

ANSWER_TOKENS: Final = 40
SINGLE_ANSWERS: Final = 2  # of a batch of one, one after the other: one text alone says little
ALWAYS_ROUNDS: Final = 2  # whatever time there is: from two on ranges can be given
LONG_BATCH: Final = 4  # of long prompts: more would not stay in a small KV cache from one K to the next
QUICK_BUDGET_S: Final = 490.0  # of rounds; with start, stop and warm-up it stays within 10 minutes


@dataclass(frozen=True, slots=True)
class Plan:
    """The grid of a measurement."""

    batches: tuple[int, ...]  # B, fitted
    hold_out: tuple[int, ...]  # B, kept out of the fit to judge it
    lengths: tuple[int, ...]  # K
    workloads: tuple[str, ...]
    rounds: int
    quick: bool = False
    answer_tokens: int = ANSWER_TOKENS
    hold_out_rounds: int = 2
    long_context: str | None = None  # kind of long prompts that tells what context costs, at one batch
    prefill_tokens: tuple[int, ...] = (128, 512, 1500)
    budget_s: float | None = None  # of the rounds; a round that would not fit is left out
    seed: int = 1

    @property
    def all_workloads(self) -> tuple[str, ...]:
        """Every kind of prompts that the plan asks for."""
        return self.workloads if self.long_context is None else (*self.workloads, self.long_context)

    @property
    def longest(self) -> int:
        """The largest K."""
        return max(self.lengths)


@dataclass(frozen=True, slots=True)
class Pair:
    """Both engines at one batch with the same prompts, at the same time."""

    sequences: int
    workload: str
    draft_length: int  # of the speculative engine
    hold_out: bool = False


QUICK: Final = Plan(
    batches=(1, 4, 16),
    hold_out=(2, 8),
    lengths=(0, 2, 4),
    workloads=("chat", "copy"),
    rounds=4,
    quick=True,
    long_context="copy-long",
    budget_s=QUICK_BUDGET_S,
)
FULL_BATCHES: Final = (1, 4, 16, 32, 64, 128)
FULL_HOLD_OUT: Final = (2, 8, 24)


def full(draft_length_max: int, workloads: Sequence[str]) -> Plan:
    """The whole grid for an engine that drafts up to so many tokens: K is halved down to 1, and 0."""
    lengths = {0, draft_length_max}
    while min(lengths - {0}) > 1:
        lengths.add(min(lengths - {0}) // 2)
    return Plan(
        batches=FULL_BATCHES,
        hold_out=FULL_HOLD_OUT,
        lengths=tuple(sorted(lengths)),
        workloads=tuple(workloads),
        rounds=5,
    )


def pairs(plan: Plan, round_: int, lengths: Sequence[int]) -> Iterator[Pair]:
    """Everything that one round measures, in an order of its own: what drifts hits every cell alike.

    `lengths` are the K that the running engine can have.
    """
    batches = [(size, False) for size in plan.batches]
    if round_ < plan.hold_out_rounds:
        batches += [(size, True) for size in plan.hold_out]
    found = [
        Pair(size, workload, length, hold_out)
        for size, hold_out in batches
        for workload in plan.workloads
        for length in lengths
    ]
    if plan.long_context is not None and round_ < plan.hold_out_rounds:
        ends = sorted({min(lengths), max(lengths)})
        found += [Pair(LONG_BATCH, plan.long_context, length) for length in ends]
    Random(f"{plan.seed}/{round_}").shuffle(found)  # noqa: S311  # an order, not a secret
    return iter(found)


def expected_s(pair: Pair, plan: Plan) -> float:
    """Seconds that a pair takes, roughly, on two CPU cores with the embedded model."""
    answers = SINGLE_ANSWERS if pair.sequences == 1 else 1
    prompts_s = 2.0 if pair.workload.endswith("-long") else 0.1
    return answers * (plan.answer_tokens * (0.04 + 0.003 * pair.sequences) + prompts_s * pair.sequences)
