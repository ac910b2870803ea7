"""The rows that a cost fit rests on: one engine's steps of a measurement, as plain numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass

from autoscaling.profiling.measured import Cell, Measurement
from autoscaling.types import Role


@dataclass(frozen=True, slots=True)
class Row:
    """One cell in one round, without any prefill."""

    cell: Cell
    tokens: float  # N, as it really was: with ragged drafts it is not B * (1 + K)
    context_tokens: float  # of all sequences together
    seconds: float


@dataclass(frozen=True, slots=True)
class PrefillRow:
    """One step that took a prompt alone: no sequence decoded beside it."""

    prompt_tokens: int
    seconds: float


def decode_rows(role: Role, measurement: Measurement) -> tuple[Row, ...]:
    """Of every run of the engine that had full steps, also those that are held out."""
    found = []
    for run in measurement.runs:
        steps = run.steps
        if run.cell.engine is not role or steps is None or steps.count < 1:
            continue
        if _positive(steps.tokens) and _positive(steps.step_s) and 0 <= steps.context_tokens < math.inf:
            found.append(Row(run.cell, steps.tokens, steps.context_tokens, steps.step_s))
    return tuple(found)


def prefill_rows(role: Role, measurement: Measurement) -> tuple[PrefillRow, ...]:
    """Of every prompt that the engine took alone."""
    return tuple(
        PrefillRow(run.prompt_tokens, run.step_s)
        for run in measurement.prefills
        if run.engine is role and run.prompt_tokens > 0 and _positive(run.step_s)
    )


def _positive(value: float) -> bool:
    return 0 < value < math.inf
