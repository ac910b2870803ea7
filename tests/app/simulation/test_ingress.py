"""What a simulated ingress knows, and when."""

from __future__ import annotations

from app.simulation.service import simulate
from autoscaling.request_line import Outcome
from autoscaling.types import Tier
from tests.app.simulation.services import setup, steady


def test_an_ingress_has_a_snapshot_before_it_takes_requests() -> None:
    """However old those are that come later: the first requests wait for nothing."""
    found = simulate(setup(snapshot_delay_s=30.0), steady(Tier.BATCH, 5, 2))

    assert [(Outcome.OK, 0.0)] * 10 == [(one.outcome, round(one.waited_s, 9)) for one in found.served]
