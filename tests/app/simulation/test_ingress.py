"""What a simulated ingress knows, and when."""

from __future__ import annotations

import pytest

from app.simulation.service import simulate
from autoscaling.request_line import Outcome
from autoscaling.types import Tier
from tests.app.simulation.services import setup, steady


def test_an_ingress_has_a_snapshot_before_it_takes_requests() -> None:
    """However old those are that come later: the first requests wait for nothing."""
    found = simulate(setup(snapshot_delay_s=30.0), steady(Tier.BATCH, 5, 2))

    assert [(Outcome.OK, 0.0)] * 10 == [(one.outcome, round(one.waited_s, 9)) for one in found.served]


@pytest.mark.parametrize("tier", [Tier.INTERACTIVE, Tier.BATCH])
@pytest.mark.parametrize("delay_s", [0.5, 1.0, 10.0])
def test_a_lone_ingress_needs_no_snapshot_to_know_the_load(tier: Tier, delay_s: float) -> None:
    """All that is open is its own: old snapshots change nothing while answers are as long as is assumed."""
    trace = steady(tier, 20, 4, answer=256)

    fresh, old = (simulate(setup(slots=8, snapshot_delay_s=one), trace) for one in (0.0, delay_s))
    assert fresh.served == old.served
