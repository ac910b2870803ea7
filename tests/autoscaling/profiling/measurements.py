"""Measurements that known step costs and survivals would have given, with noise that a seed decides."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from autoscaling.goodput import tokens_per_step
from autoscaling.profiling.gains import Gain
from autoscaling.profiling.measured import (
    Cell,
    CellRun,
    Drafting,
    EngineFacts,
    Fingerprint,
    Measurement,
    PrefillRun,
    Steps,
)
from autoscaling.routing_rules import StepCost
from autoscaling.step_cost import prefill_s, step_s
from autoscaling.types import Role

REQUEST_STEPS = 400  # of each run
PROMPTS = (128, 512, 1500)


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of prompts as it truly is."""

    survival: tuple[float, ...]
    draft_rate: float = 1.0
    context: float = 200.0  # tokens per sequence

    def gain(self, length: int) -> Gain:
        """What K truly brings, and what is drafted for it."""
        return Gain(tokens_per_step(self.survival, length, self.draft_rate), self.draft_rate * length)


@dataclass(frozen=True, slots=True)
class Truth:
    """Two engines, and the kinds of prompts that they are measured with."""

    plain: StepCost
    speculative: StepCost
    kinds: Mapping[str, Kind]

    def step_s(self, cell: Cell) -> float:
        """Seconds of a full step."""
        kind = self.kinds[cell.workload]
        if cell.engine is Role.PLAIN:
            return step_s(self.plain, cell.sequences, kind.context)
        drafted = kind.gain(cell.draft_length).drafted
        cost = replace(self.speculative, draft_length=cell.draft_length, drafted=drafted)
        return step_s(cost, cell.sequences, kind.context)


def measured(
    truth: Truth,
    *,
    noise: float = 0.0,  # standard deviation of the logarithm of a step; 0 makes the counts exact too
    seed: int = 1,
    rounds: int = 3,
    batches: Sequence[int] = (1, 4, 16),
    hold_out: Sequence[int] = (2, 8),
    lengths: Sequence[int] = (0, 2, 4),
    max_num_seqs: int = 32,
    kv_tokens: tuple[int | None, int | None] = (9_000, 10_000),  # speculative, plain
    synthetic: bool = False,
) -> Measurement:
    """Every cell on both engines in every round, a plain run beside each K."""
    draw = np.random.default_rng(seed)
    runs = []
    sizes = sorted({*batches, *hold_out})
    for round_, name, sequences, length in product(range(rounds), truth.kinds, sizes, lengths):
        for role, drafts in ((Role.SPECULATIVE, length), (Role.PLAIN, 0)):
            cell = Cell(role, drafts, sequences, name, hold_out=sequences in hold_out)
            runs.append(_run(truth, cell, round_, noise, draw))
    return Measurement(
        made_at="2026-11-30T00:00:00Z",
        took_s=60.0,
        quick=True,
        synthetic_acceptance=synthetic,
        fingerprint=Fingerprint("model", draft_length_max=max(lengths)),
        engines=(
            EngineFacts(Role.SPECULATIVE, max_num_seqs, kv_tokens[0], start_s=20.0, stop_s=2.0),
            EngineFacts(Role.PLAIN, max_num_seqs, kv_tokens[1], start_s=18.0, stop_s=1.0),
        ),
        runs=tuple(runs),
        prefills=tuple(
            PrefillRun(role, round_, tokens, prefill_s(cost, tokens) * _off(noise, draw))
            for round_, tokens in product(range(rounds), PROMPTS)
            for role, cost in ((Role.SPECULATIVE, truth.speculative), (Role.PLAIN, truth.plain))
        ),
    )


def _run(truth: Truth, cell: Cell, round_: int, noise: float, draw: np.random.Generator) -> CellRun:
    kind = truth.kinds[cell.workload]
    step = truth.step_s(cell) * _off(noise, draw)
    drafting = _drafting(kind, cell.draft_length, noise, draw)
    steps = Steps(
        count=20,
        step_s=step,
        spread_s=noise * step,
        tokens=cell.sequences * (1 + kind.gain(cell.draft_length).drafted),
        context_tokens=cell.sequences * kind.context,
    )
    tokens = drafting.tokens / drafting.request_steps
    return CellRun(
        cell=cell,
        round=round_,
        steps=steps,
        drafting=drafting,
        tokens_per_s=cell.sequences * tokens / step,
        tpot_s=step / tokens,
        ttft_s=0.2,
        answers=cell.sequences,
        failed=0,
    )


def _drafting(kind: Kind, length: int, noise: float, draw: np.random.Generator) -> Drafting:
    if length == 0:
        return Drafting(REQUEST_STEPS, REQUEST_STEPS, 0, 0, 0)
    drafts = round(REQUEST_STEPS * kind.draft_rate)
    at_risk, survived, before = [], [], 1.0
    left = drafts
    for share in kind.survival[:length]:
        at_risk.append(left)
        kept = share / before if before else 0.0
        left = int(draw.binomial(left, kept)) if noise else round(drafts * share)
        survived.append(left)
        before = share
    return Drafting(
        request_steps=REQUEST_STEPS,
        tokens=REQUEST_STEPS + sum(survived),
        drafts=drafts,
        drafted=drafts * length,
        accepted=sum(survived),
        at_risk=tuple(at_risk),
        survived=tuple(survived),
    )


def _off(noise: float, draw: np.random.Generator) -> float:
    return math.exp(noise * float(draw.standard_normal()))
