"""A fleet of four replicas, and a minute of traffic with a rush in it, for tests of contenders."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from app.simulation.arrival import Arrival
from app.simulation.contenders import Scene
from app.simulation.fleet import Delays
from autoscaling.types import Tier
from tests.app.simulation.services import ENGINES, policy, steady, together

REPLICAS, TRACE_S = 4, 60.0


def rush() -> list[Arrival]:
    """Batch work all the time, a few interactive requests, and many more from second 20 to 40."""
    burst = [replace(one, at_s=one.at_s + 20.0) for one in steady(Tier.INTERACTIVE, 20, 20, answer=150)]
    return together(
        steady(Tier.INTERACTIVE, 2, TRACE_S, answer=100), burst, steady(Tier.BATCH, 2, TRACE_S, answer=300)
    )


def scene(**changes: Any) -> Scene:
    """Moves of five seconds, and a policy that moves after five; and what is given."""
    fields: dict[str, Any] = {
        "engines": ENGINES,
        "policy": policy(REPLICAS, window_s=5, cooldown_s=5),
        "replicas": REPLICAS,
        "delays": Delays(start_s=3.0, stop_s=2.0, drain_limit_s=300.0),
        "trace": rush(),
    }
    return Scene(**(fields | changes))
