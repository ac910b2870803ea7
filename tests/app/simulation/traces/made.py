"""Arrivals for tests of traces, and where the public data lies."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.simulation.arrival import Arrival
from autoscaling.types import Tier

DATA = Path(__file__).parents[5] / "shared" / "data"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason=f"there is no public data at {DATA}")


def arrivals(
    *times: float, conversation: str | None = None, tier: Tier = Tier.INTERACTIVE
) -> tuple[Arrival, ...]:
    """A request of 100 and 10 tokens at each of these times."""
    return tuple(Arrival(at_s, tier, "chat", 100, 10, conversation) for at_s in times)


def times(trace: tuple[Arrival, ...]) -> list[float]:
    """When its requests come."""
    return [one.at_s for one in trace]
