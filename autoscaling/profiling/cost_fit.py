"""The cost model of one engine, fitted to its measured steps, and whether it may be relied on.

Non-negative least squares on relative errors: a step of 5 ms counts as much as one of 500 ms.  Every cell and
round counts alike, however many steps it had: measured rounds differ as much with 40 steps as with 10.
The prices of decode steps are fitted first and on those alone; a prompt's token then costs what the prompts
left over.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, replace

import numpy as np

from autoscaling.profiling.cost_columns import Columns, columns_of
from autoscaling.profiling.findings import Fit
from autoscaling.profiling.measured import Cell, Measurement
from autoscaling.profiling.rows import PrefillRow, Row, decode_rows, prefill_rows
from autoscaling.routing_rules import StepCost
from autoscaling.step_cost import step_s
from autoscaling.types import Role

# A hinge is taken when it at least halves the squared error and brings the mean error down by a hundredth:
# where there is none, the best of all hinges does the one by chance, but not the other as well.
HINGE_SQUARES = 0.5
HINGE_ERROR = 0.01
HINGE_BELOW, HINGE_BEYOND = 3, 2  # cells of different N that have to lie on its sides
MOST_HINGES = 24  # that are tried: steps are not measured so finely that more would differ


class FitError(ValueError):
    """A measurement without a single step of the engine, and no prior; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Gate:
    """What a fit has to reach to be accepted."""

    rows: int = 6  # cells and rounds
    batches: int = 3  # different B
    error: float = 0.15  # mean relative error on what was fitted
    hold_out_error: float = 0.15  # and on what was held out, where anything was


GATE = Gate()


def fit(role: Role, measurement: Measurement, prior: StepCost | None, gate: Gate = GATE) -> Fit:
    """The prices in seconds of the engine's steps, with errors on the real tokens of each cell and round.

    Cells that are held out only judge.  Toward the `prior` the prices are drawn a little, and those that the
    measurement cannot tell apart are its.  When no step was measured, the cost is the prior's and refused, of
    no points and without an error; without a prior, raises FitError.
    """
    fitted, held = _parted(role, measurement, prior)
    prompts = prefill_rows(role, measurement)
    only_prior = None if fitted else prior
    cost = _columns(fitted, prompts, prior).cost(fitted, prompts) if only_prior is None else only_prior
    error = _error(cost, fitted) if fitted else None
    hold_out_error = _error(cost, held) if held else None
    refused = _no_step(role) if error is None else _refused(cost, fitted, held, error, hold_out_error, gate)
    return Fit(
        role=role,
        cost=cost,
        points=len(fitted),
        error=error,
        hold_out_error=hold_out_error,
        hold_out_points=len(held),
        accepted=refused is None,
        refused_because=refused,
    )


def resampled(
    role: Role, measurement: Measurement, prior: StepCost | None, count: int, seed: int
) -> tuple[StepCost, ...]:
    """`count` costs as the fit could have come out, by drawing rounds anew within each cell.

    Which prices there are, and the hinge, are those of the fit.  Empty when no cell has a second round, or
    there is only the prior: how far the fit can be trusted is then unknown.  Raises FitError when no step was
    measured and there is no prior.
    """
    fitted, _ = _parted(role, measurement, prior)
    if not fitted:
        return ()
    prompts = prefill_rows(role, measurement)
    columns = _columns(fitted, prompts, prior)
    cells = list(_groups(row.cell for row in fitted))
    if all(len(rounds) < 2 for rounds in cells):
        return ()
    lengths = list(_groups(row.prompt_tokens for row in prompts))
    draw = np.random.default_rng(seed)
    return tuple(
        columns.cost(
            [fitted[at] for rounds in cells for at in draw.choice(rounds, len(rounds))],
            [prompts[at] for rounds in lengths for at in draw.choice(rounds, len(rounds))],
        )
        for _ in range(count)
    )


def predicted_s(cost: StepCost, row: Row) -> float:
    """Seconds that the step should take, by the tokens that it really had."""
    # With no drafts of its own the sequences of `step_s` are its tokens, at a K that was not fitted as well.
    return step_s(
        replace(cost, drafted=0.0, draft_length=max(1, cost.draft_length)),
        row.tokens,
        row.context_tokens / row.tokens,
        draft_length=row.cell.draft_length,
    )


def _parted(
    role: Role, measurement: Measurement, prior: StepCost | None
) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
    """What is fitted, empty only beside a prior, and what is held out."""
    rows = decode_rows(role, measurement)
    fitted = tuple(row for row in rows if not row.cell.hold_out)
    if not fitted and prior is None:
        raise FitError(_no_step(role))
    return fitted, tuple(row for row in rows if row.cell.hold_out)


def _no_step(role: Role) -> str:
    return f"no step of the {role} engine was measured with all sequences in it: measure longer answers"


def _columns(rows: Sequence[Row], prompts: Sequence[PrefillRow], prior: StepCost | None) -> Columns:
    """Without a hinge, or with the best one where that is clearly better."""
    best = columns_of(rows, prior)
    cost = best.cost(rows, prompts)
    least, error = _squares(cost, rows) * HINGE_SQUARES, _error(cost, rows)
    if error <= HINGE_ERROR:
        return best
    for hinge in _hinges(rows):
        bent = columns_of(rows, prior, hinge)
        cost = bent.cost(rows, prompts)
        # A hinge so dear that prompts, alone in a step, would cost less than nothing is refuted by them.
        refuted = bool(prompts) and cost.per_prefill_s == 0
        squares = _squares(cost, rows)
        if not refuted and squares <= least and _error(cost, rows) <= error - HINGE_ERROR:
            best, least = bent, squares
    return best


def _hinges(rows: Sequence[Row]) -> list[float]:
    """The mean N of each cell and what lies half-way to the next one, with enough cells on either side."""
    cells = [[rows[at].tokens for at in rounds] for rounds in _groups(row.cell for row in rows)]
    means = sorted({round(sum(tokens) / len(tokens), 1) for tokens in cells})
    found = []
    for at in range(HINGE_BELOW - 1, len(means) - HINGE_BEYOND):
        found += [means[at], (means[at] + means[at + 1]) / 2]
    return found[:: 1 + len(found) // MOST_HINGES]


def _groups(keys: Iterable[Cell | int]) -> Iterable[list[int]]:
    """Positions of equal keys together, in the order in which the keys came."""
    found: dict[Cell | int, list[int]] = {}
    for at, key in enumerate(keys):
        found.setdefault(key, []).append(at)
    return found.values()


def _squares(cost: StepCost, rows: Sequence[Row]) -> float:
    return sum((predicted_s(cost, row) / row.seconds - 1.0) ** 2 for row in rows)


def _error(cost: StepCost, rows: Sequence[Row]) -> float:
    return sum(abs(predicted_s(cost, row) / row.seconds - 1.0) for row in rows) / len(rows)


def _refused(
    cost: StepCost,
    fitted: Sequence[Row],
    held: Sequence[Row],
    error: float,
    hold_out_error: float | None,
    gate: Gate,
) -> str | None:
    batches = sorted({row.cell.sequences for row in fitted})
    if len(fitted) < gate.rows:
        return f"only {len(fitted)} cells and rounds were measured: measure at least {gate.rows}"
    if len(batches) < gate.batches:
        return f"only batches of {_words(batches)} were measured: measure at least {gate.batches} different"
    prices = [price for price in astuple(cost) if price is not None]
    if not all(math.isfinite(price) for price in prices) or not cost.base_s + cost.per_token_s > 0:
        return "the fit gives a step of one token no duration: measure more rounds, of more batches"
    if not error <= gate.error:
        return (
            f"predicted steps of the batches that were fitted are {error:.1%} off on average, more than "
            f"{gate.error:.0%}: measure more rounds, with nothing else on the machine"
        )
    if hold_out_error is not None and not hold_out_error <= gate.hold_out_error:
        unseen = _words(sorted({row.cell.sequences for row in held}))
        return (
            f"predicted steps of {unseen} sequences, which the fit has not seen, are {hold_out_error:.1%} "
            f"off on average, more than {gate.hold_out_error:.0%}: "
            "measure more batches around those, or more rounds"
        )
    return None


def _words(batches: Sequence[int]) -> str:
    return ", ".join(str(batch) for batch in batches)
