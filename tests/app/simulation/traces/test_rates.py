"""Requests per second of a trace."""

from __future__ import annotations

import pytest

from app.simulation.arrival import Arrival
from app.simulation.traces.rates import Rate, rates
from autoscaling.types import Tier


def arrival(at_s: float, tier: Tier = Tier.INTERACTIVE) -> Arrival:
    return Arrival(at_s, tier, "chat", 5, 5)


def test_mean_and_peak_are_told_for_all_and_for_each_tier() -> None:
    """The peak is the fullest ten seconds, where the tiers need not meet."""
    trace = [
        *(arrival(0.1 * at) for at in range(30)),
        *(arrival(12.0 + 0.1 * at, Tier.BATCH) for at in range(50)),
        arrival(39.0),
    ]

    assert (
        Rate(None, 81, pytest.approx(2.025), 5.0),
        Rate(Tier.INTERACTIVE, 31, pytest.approx(0.775), 3.0),
        Rate(Tier.BATCH, 50, 1.25, 5.0),
    ) == rates(trace, 40.0)
