"""The batch from which no engine gains any more; pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from autoscaling.profiling.measured import CellRun
from autoscaling.types import Role

ENOUGH_GAIN: Final = 1.03  # a larger batch that brings less than 3 % shows nothing new


def saturated_at(runs: Sequence[CellRun]) -> int | None:
    """The smallest measured batch at which both engines gain less than 3 % over the next smaller one.

    None where an engine still gains everywhere, or a gain is not known.
    """
    sizes = sorted({run.cell.sequences for run in runs})
    for smaller, larger in pairwise(sizes):
        gains = [_gain(runs, role, smaller, larger) for role in Role]
        if all(gain is not None and gain < ENOUGH_GAIN for gain in gains):
            return larger
    return None


def _gain(runs: Sequence[CellRun], role: Role, smaller: int, larger: int) -> float | None:
    """The best throughput of an engine at the larger batch over that at the smaller."""
    best = [
        max((run.tokens_per_s or 0.0 for run in runs if _is(run, role, size)), default=0.0)
        for size in (smaller, larger)
    ]
    return best[1] / best[0] if min(best) > 0 else None


def _is(run: CellRun, role: Role, sequences: int) -> bool:
    return run.cell.engine is role and run.cell.sequences == sequences
