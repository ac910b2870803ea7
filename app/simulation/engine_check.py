"""The simulated engine held against real ones: made from some measured cells, it simulates the others."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Final

from app.bench.plan import ANSWER_TOKENS
from app.bench.steps import together
from app.simulation.engine_cell import Asked, Pace, pace, simulated
from app.simulation.engine_profile import SPREAD, EngineProfile, Engines, from_profile
from app.simulation.verify_price import verify_price, without
from autoscaling.profile import read_profile
from autoscaling.profiling.analyse import analyse
from autoscaling.profiling.measured import Cell, CellRun, Drafting, Measurement
from autoscaling.profiling.profile_text import profile_text

# Simulated answers of each cell: their tokens per step are known to about 1 % then.
ANSWERS: Final = 1024
NAME: Final = "measured"

HeldOut = Callable[[Cell], bool]


@dataclass(frozen=True, slots=True)
class Checked:
    """One cell that the fit has not seen."""

    cell: Cell
    measured: Pace
    simulated: Pace

    @property
    def error(self) -> float:
        """Of the simulated tokens per second, as a share of the measured ones; above 0 they are too many."""
        return self.simulated.tokens_per_s / self.measured.tokens_per_s - 1.0

    @property
    def tpot_error(self) -> float | None:
        """The same of the time per token that a caller sees; None where it was not measured."""
        if self.measured.tpot_s is None or self.simulated.tpot_s is None:
            return None
        return self.simulated.tpot_s / self.measured.tpot_s - 1.0


def compare(
    measurement: Measurement,
    held_out: HeldOut,
    answer_tokens: int = ANSWER_TOKENS,
    answers: int = ANSWERS,
) -> list[Checked]:
    """Every held-out cell as it was measured, beside what engines made from the other cells do with it.

    `answer_tokens` are those of the measurement's answers.  Raises FitError when nothing is left to fit an
    engine to, and ValueError for a cell that the simulated engine cannot run.
    """
    profile = fitted(measurement, held_out)
    return [
        _checked(profile, run, answer_tokens, answers)
        for run in settled(measurement).runs
        if held_out(run.cell)
    ]


def fitted(measurement: Measurement, held_out: HeldOut) -> EngineProfile:
    """The engines by the cells that are not held out: the fit and the profile are those of `twinpool bench`.

    Only the price of `verify_price` and how answers differ come beside the profile.  Neither steps nor drafts
    of a held-out cell are in it.  Raises FitError.
    """
    runs = [run for run in measurement.runs if not held_out(run.cell)]
    kept = settled(replace(measurement, runs=tuple(_for_fit(run) for run in runs)))
    price = verify_price(kept)
    findings = analyse(without(kept, price), None, {}, None)
    engines = Engines(
        max_num_seqs=max(run.cell.sequences for run in measurement.runs),
        spread={**SPREAD, **spreads(runs)},
        verify_s=price,
    )
    return from_profile(read_profile(profile_text(findings), NAME), NAME, engines)


def spreads(runs: Sequence[CellRun]) -> dict[str, float]:
    """Standard deviation between answers of tokens per step at the largest K, by kind of prompts.

    By the runs with fewest answers, two or more; what differs from step to step is in it.
    """
    found = {}
    for kind in dict.fromkeys(run.cell.workload for run in runs):
        here = [run for run in runs if run.cell.workload == kind and run.answers and run.drafting.drafts]
        longest = max((run.cell.draft_length for run in here), default=0)
        here = [run for run in here if run.cell.draft_length == longest]
        fewest = min((run.answers for run in here), default=0)
        gains = [run.drafting.tokens / run.drafting.request_steps for run in here if run.answers == fewest]
        if len(gains) > 1:
            found[kind] = statistics.stdev(gains) * math.sqrt(fewest)
    return found


def settled(measurement: Measurement) -> Measurement:
    """Each cell once, by the median of its rounds: what slowed the machine down for one round is not in it.

    Runs of one cell in one round count as one.  Tokens per step are those of all rounds together.  A cell
    without a full step, or without an answer, is left out.
    """
    cells: dict[Cell, dict[int, list[CellRun]]] = {}
    for run in measurement.runs:
        cells.setdefault(run.cell, {}).setdefault(run.round, []).append(run)
    found = (_settled(cell, list(rounds.values())) for cell, rounds in cells.items())
    return replace(measurement, runs=tuple(run for run in found if run is not None))


def _for_fit(run: CellRun) -> CellRun:
    """Fitted, whatever its flag; with what its steps brought before the last was cut off at the answer's end.

    The simulated engine cuts it off itself.
    """
    drafting = replace(run.drafting, tokens=run.drafting.request_steps + run.drafting.accepted)
    return replace(run, cell=replace(run.cell, hold_out=False), drafting=drafting)


def _settled(cell: Cell, rounds: Sequence[Sequence[CellRun]]) -> CellRun | None:
    runs = [run for round_ in rounds for run in round_]
    each = (together([run.steps for run in round_ if run.steps is not None]) for round_ in rounds)
    known = sorted((steps for steps in each if steps is not None), key=lambda steps: steps.step_s)
    steps = together(known[(len(known) - 1) // 2 : len(known) // 2 + 1])  # the middle one, or two
    drafting = _summed([run.drafting for run in runs])
    if steps is None or not drafting.request_steps:
        return None
    tpot_s = _median(run.tpot_s for run in runs)
    return CellRun(
        cell=cell,
        round=0,
        steps=steps,
        drafting=drafting,
        tokens_per_s=pace(
            cell.sequences, steps, drafting.tokens, drafting.request_steps, tpot_s
        ).tokens_per_s,
        tpot_s=tpot_s,
        ttft_s=_median(run.ttft_s for run in runs),
        answers=sum(run.answers for run in runs),
        failed=sum(run.failed for run in runs),
    )


def _checked(profile: EngineProfile, run: CellRun, answer_tokens: int, answers: int) -> Checked:
    assert run.steps is not None  # it is settled
    drafting, sequences = run.drafting, run.cell.sequences
    # The mean context of a full step is that in the middle of the answers.
    prompt = max(1, round(run.steps.context_tokens / sequences - answer_tokens / 2))
    return Checked(
        cell=run.cell,
        measured=pace(sequences, run.steps, drafting.tokens, drafting.request_steps, run.tpot_s),
        simulated=simulated(
            profile,
            run.cell,
            Asked(prompt, answer_tokens, answers, whole=run.steps.decoded is not None),
        ),
    )


def _summed(parts: Sequence[Drafting]) -> Drafting:
    return Drafting(
        request_steps=sum(part.request_steps for part in parts),
        tokens=sum(part.tokens for part in parts),
        drafts=sum(part.drafts for part in parts),
        drafted=sum(part.drafted for part in parts),
        accepted=sum(part.accepted for part in parts),
        at_risk=_by_position(part.at_risk for part in parts),
        survived=_by_position(part.survived for part in parts),
    )


def _by_position(counts: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(sum(found) for found in zip_longest(*counts, fillvalue=0))


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None
