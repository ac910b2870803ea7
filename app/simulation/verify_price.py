"""What a draft token costs for the context before it: the price that the cost model of a profile lacks.

Attention looks from every verified token over its whole context.  The profile has one price for each context
token of a sequence, drafts or not, so that long prompts with many drafts take longer than it says.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from autoscaling.profiling.cost_fit import fit, predicted_s
from autoscaling.profiling.measured import CellRun, Measurement
from autoscaling.profiling.rows import Row, decode_rows
from autoscaling.types import Role

TRIED: Final = 11  # prices, evenly from none to the highest, and then as many around the best of them
HIGHEST: Final = 0.9  # of any measured step that the price may explain


def verify_price(measurement: Measurement) -> float:
    """Seconds of the speculative engine's step for each draft token and each context token before it.

    The price with which the cost model, fitted to what is left of the steps, comes closest to them by
    relative errors; 0 where nothing was drafted.  Raises FitError when no step was measured.
    """
    rows = decode_rows(Role.SPECULATIVE, measurement)
    bounds = [row.seconds / pairs for row in rows if (pairs := _pairs(row)) > 0]
    if not bounds:
        return 0.0
    highest = HIGHEST * min(bounds)
    best = _best(measurement, rows, 0.0, highest)
    apart = highest / (TRIED - 1)
    return _best(measurement, rows, max(0.0, best - apart), min(highest, best + apart))


def without(measurement: Measurement, price: float) -> Measurement:
    """The measurement with the steps of the speculative engine as they were without this price."""
    return replace(measurement, runs=tuple(_cheaper(run, price) for run in measurement.runs))


def _cheaper(run: CellRun, price: float) -> CellRun:
    if run.steps is None or run.cell.engine is not Role.SPECULATIVE:
        return run
    row = Row(run.cell, run.steps.tokens, run.steps.context_tokens, run.steps.step_s)
    return replace(run, steps=replace(run.steps, step_s=run.steps.step_s - price * _pairs(row)))


def _best(measurement: Measurement, rows: tuple[Row, ...], low: float, high: float) -> float:
    prices = [float(price) for price in np.linspace(low, high, TRIED)]
    return min(prices, key=lambda price: _squares(measurement, rows, price))


def _squares(measurement: Measurement, rows: tuple[Row, ...], price: float) -> float:
    cost = fit(Role.SPECULATIVE, without(measurement, price), None).cost
    return sum(((predicted_s(cost, row) + price * _pairs(row)) / row.seconds - 1.0) ** 2 for row in rows)


def _pairs(row: Row) -> float:
    """Draft tokens of the step, each with the context of its sequence."""
    return max(0.0, row.tokens - row.cell.sequences) * row.context_tokens / row.cell.sequences
