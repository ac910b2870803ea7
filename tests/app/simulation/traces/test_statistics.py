"""A trace in a few numbers."""

from __future__ import annotations

import pytest

from app.simulation.arrival import Arrival
from app.simulation.traces.errors import TraceError
from app.simulation.traces.statistics import Lengths, TraceStatistics, statistics
from autoscaling.types import Tier
from tests.app.simulation.traces.made import arrivals


def test_the_numbers_of_a_small_trace() -> None:
    """Gaps of 1, 1 and 28 s; windows of 10 s with three, none, none and one request."""
    trace = tuple(
        Arrival(at_s, Tier.BATCH, "code", prompt, answer)
        for at_s, prompt, answer in [(0.0, 10, 1), (1.0, 20, 1), (2.0, 30, 1), (30.0, 100, 5)]
    )
    found = statistics(trace)
    assert (
        TraceStatistics(
            requests=4,
            duration_s=30.0,
            rate=4 / 30,
            prompt=Lengths(mean=40.0, p50=25.0, p95=pytest.approx(89.5)),
            answer=Lengths(mean=2.0, p50=1.0, p95=pytest.approx(4.4)),
            interarrival_cv=pytest.approx(1.272792),  # sqrt(162) / 10
            peak_to_mean=3.0,
        )
        == found
    )


def test_too_few_requests_leave_numbers_unknown() -> None:
    """One request has no rate, no gaps and no windows to compare; none has nothing at all."""
    found = statistics(arrivals(0.0))
    assert (1, None, None, None) == (found.requests, found.rate, found.interarrival_cv, found.peak_to_mean)
    assert None is statistics(arrivals(0.0, 0.0, 0.0)).interarrival_cv
    with pytest.raises(TraceError, match="has no request"):
        statistics(())
