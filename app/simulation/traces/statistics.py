"""What a trace is like, in a few numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from app.simulation.arrival import Arrival
from app.simulation.traces.errors import TraceError

WINDOW_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class Lengths:
    """Tokens of the prompts or of the answers."""

    mean: float
    p50: float
    p95: float


@dataclass(frozen=True, slots=True)
class TraceStatistics:
    """Of all requests together, whatever their tier; `None` where there are too few to say."""

    requests: int
    duration_s: float  # from 0 to the last arrival
    rate: float | None  # requests per second over that time
    prompt: Lengths
    answer: Lengths
    interarrival_cv: float | None  # standard deviation of the gaps over their mean
    peak_to_mean: float | None  # the fullest window of 10 s over the mean window, the last one included


def statistics(trace: Sequence[Arrival]) -> TraceStatistics:
    """The statistics of a sorted trace.  Raises TraceError when it is empty."""
    if not trace:
        raise TraceError("the trace has no request: there is nothing to describe")
    times = np.array([one.at_s for one in trace])
    gaps = np.diff(times)
    duration_s = float(times[-1])
    windows = np.bincount((times // WINDOW_S).astype(int))
    return TraceStatistics(
        requests=len(trace),
        duration_s=duration_s,
        rate=len(trace) / duration_s if duration_s > 0 else None,
        prompt=_lengths([one.prompt_tokens for one in trace]),
        answer=_lengths([one.answer_tokens for one in trace]),
        interarrival_cv=float(gaps.std() / gaps.mean()) if len(gaps) > 1 and gaps.mean() > 0 else None,
        peak_to_mean=float(windows.max() / windows.mean()) if len(windows) > 1 else None,
    )


def _lengths(tokens: Sequence[int]) -> Lengths:
    p50, p95 = np.percentile(tokens, [50, 95])
    return Lengths(float(np.mean(tokens)), float(p50), float(p95))
