"""A trace in a few numbers."""

from __future__ import annotations

import pytest

from app.simulation.arrival import Arrival
from app.simulation.traces.errors import TraceError
from app.simulation.traces.statistics import statistics
from autoscaling.types import Tier
from tests.app.simulation.traces.made import arrivals


def test_the_numbers_of_a_small_trace() -> None:
    """Gaps of 1, 1 and 28 s; windows of 10 s with three, none, none and one request."""
    trace = tuple(
        Arrival(at_s, Tier.BATCH, "code", prompt, answer)
        for at_s, prompt, answer in [(0.0, 10, 1), (1.0, 20, 1), (2.0, 30, 1), (30.0, 100, 5)]
    )
    found = statistics(trace)
    assert (4, 30.0, 4 / 30, 3.0) == (found.requests, found.duration_s, found.rate, found.peak_to_mean)
    assert (40.0, 25.0, 89.5) == pytest.approx((found.prompt.mean, found.prompt.p50, found.prompt.p95))
    assert (2.0, 1.0, 4.4) == pytest.approx((found.answer.mean, found.answer.p50, found.answer.p95))
    assert pytest.approx(1.272792) == found.interarrival_cv  # sqrt(162) / 10


def test_too_few_requests_leave_numbers_unknown() -> None:
    """One request has no rate, no gaps and no windows to compare; none has nothing at all."""
    found = statistics(arrivals(0.0))
    assert (1, None, None, None) == (found.requests, found.rate, found.interarrival_cv, found.peak_to_mean)
    assert None is statistics(arrivals(0.0, 0.0, 0.0)).interarrival_cv
    with pytest.raises(TraceError, match="has no request"):
        statistics(())
