"""A series of moments as points to draw: few enough for a page, and times in the unit of its axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from app.report.words import number
from app.simulation.scores import Moment, Scores

POINTS = 300  # a plot has no room for more
MINUTES_UP_TO_S = 2 * 3600.0  # longer traces are shown in hours

Value = Callable[[Moment], float | None]


def unit(seconds: float) -> tuple[float, str]:
    """Seconds of one unit of the time axis, and its label."""
    return (60.0, "minutes") if seconds <= MINUTES_UP_TO_S else (3600.0, "hours")


def together(scores: Scores) -> int:
    """How many intervals of the series are one point of a plot."""
    return max(1, math.ceil(len(scores.series) / POINTS))


def line(scores: Scores, value: Value) -> tuple[list[float], list[float]]:
    """Times in the axis' unit, and the mean of what is known in each point; NaN, a gap, where nothing is.

    The last point stands for its whole interval, so its value is there twice.
    """
    groups = _groups(scores)
    if not groups:
        return [], []
    per, _ = unit(scores.seconds)
    x = [group[0].at_s / per for group in groups]
    y = [_mean(group, value) for group in groups]
    return [*x, (groups[-1][-1].at_s + scores.interval_s) / per], [*y, y[-1]]


def resolution(scores: Scores) -> str:
    """What one point stands for, as a sentence."""
    seconds = together(scores) * scores.interval_s
    if together(scores) == 1:
        return f"One point is {number(seconds)} s of the trace."
    return f"One point is the mean of {together(scores)} intervals of {number(scores.interval_s)} s."


def _groups(scores: Scores) -> list[Sequence[Moment]]:
    size = together(scores)
    return [scores.series[at : at + size] for at in range(0, len(scores.series), size)]


def _mean(group: Sequence[Moment], value: Value) -> float:
    known = [found for moment in group if (found := value(moment)) is not None]
    return float(np.mean(known)) if known else math.nan
