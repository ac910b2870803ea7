"""One cell of a measurement in the simulated engine: its batch again and again, read as the bench does."""

from __future__ import annotations

import statistics
from collections.abc import Sequence as Several
from dataclasses import dataclass, replace

from app.bench.steps import full_steps, together
from app.simulation.engine import Engine
from app.simulation.engine_profile import EngineProfile
from app.simulation.sequence import Sequence
from autoscaling.profiling.measured import Cell, Steps
from deployments.engine import StepRecord


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast a cell is, measured or simulated."""

    tokens_per_s: float  # of the batch, from its first step to the last token of an answer
    step_s: float  # mean of a step in which the whole batch decodes and nothing else runs
    step_tokens: float  # verified in such a step, all sequences together
    tokens_per_step: float  # that a sequence gets, over whole answers
    tpot_s: float | None = None  # mean over the answers, as a caller sees it


@dataclass(frozen=True, slots=True)
class Asked:
    """What each sequence of a cell asks for, and how many sequences are simulated."""

    prompt_tokens: int  # all but the last in the prefix cache: the bench sends the same prompts at every K
    answer_tokens: int
    answers: int
    seed: int = 1
    whole: bool = True  # whether tokens per second are those of whole answers; else of full steps alone


def pace(sequences: int, steps: Steps, tokens: int, request_steps: int, tpot_s: float | None) -> Pace:
    """What full steps come to, and whole answers.

    An older measurement does not know the seconds of all steps: there the full ones are taken to have brought
    as much as all others, as in `CellRun`.
    """
    tokens_per_step = tokens / request_steps
    if steps.decoded is None or not steps.decoded_s:
        per_s = sequences * tokens_per_step / steps.step_s
    else:
        per_s = steps.decoded / steps.decoded_s
    return Pace(
        tokens_per_s=per_s,
        step_s=steps.step_s,
        step_tokens=steps.tokens,
        tokens_per_step=tokens_per_step,
        tpot_s=tpot_s,
    )


def simulated(profile: EngineProfile, cell: Cell, asked: Asked) -> Pace:
    """All sequences of the cell begin together, and the next batch when the last of them has ended.

    Raises ValueError when no batch had enough full steps, or a sequence never fits.
    """
    engine = Engine(profile, cell.engine, asked.seed, (cell.draft_length,))
    now, tokens, request_steps = 0.0, 0, 0
    full: list[Steps] = []
    tpots: list[float] = []
    for first in range(0, asked.answers, cell.sequences):
        batch = [
            Sequence(
                str(number),
                cell.workload,
                asked.prompt_tokens,
                asked.answer_tokens,
                number,
                cached_tokens=asked.prompt_tokens - 1,
            )
            for number in range(first, first + cell.sequences)
        ]
        records = _run(engine, batch, now)
        now = records[-1].at
        tokens += sum(one.decode_tokens for one in records)
        request_steps += sum(one.sequences for one in records)
        tpots += [found for one in batch if (found := _tpot_s(one)) is not None]
        if (part := full_steps(records, cell.sequences, cell.sequences * asked.prompt_tokens)) is not None:
            full.append(part)
    steps = together(full)
    if steps is None:
        raise ValueError(
            f"{cell.sequences} sequences of {asked.answer_tokens} tokens at K = {cell.draft_length}: no "
            "batch had enough steps with all of them: simulate longer answers"
        )
    if not asked.whole:
        steps = replace(steps, decoded=None)
    return pace(cell.sequences, steps, tokens, request_steps, statistics.fmean(tpots) if tpots else None)


def _run(engine: Engine, batch: Several[Sequence], now: float) -> list[StepRecord]:
    """Every step from the first prompt to the last token, as a real engine tells its own."""
    for sequence in batch:
        engine.add(sequence, now)
    records: list[StepRecord] = []
    before = engine.counters
    while (seconds := engine.begin(now)) is not None:
        now += seconds
        engine.finish(now)
        after = engine.counters
        records.append(
            StepRecord(
                at=now,
                step_s=seconds,
                sequences=after.sequence_steps - before.sequence_steps,
                started=sum(one.first_token_at == now for one in batch),
                prompt_tokens=after.prompt_tokens - before.prompt_tokens,
                decode_tokens=after.decoded_tokens - before.decoded_tokens,
                drafts=after.drafts - before.drafts,
                drafted=after.drafted - before.drafted,
                accepted=after.accepted - before.accepted,
            )
        )
        before = after
    return records


def _tpot_s(one: Sequence) -> float | None:
    """Seconds per token after the first; None for one token."""
    if one.first_token_at is None or one.finished_at is None or one.generated < 2:
        return None
    return (one.finished_at - one.first_token_at) / (one.generated - 1)
