"""Who waits, and whose waiting ends."""

from __future__ import annotations

import pytest

from app.simulation.fluid.load import load_of
from app.simulation.fluid.queue import Queue
from autoscaling.routing_rules import RoutingRules, TierRules
from autoscaling.types import Tier
from tests.app.simulation.services import steady, together

LOAD = load_of(together(steady(Tier.INTERACTIVE, 1, 5), steady(Tier.BATCH, 1, 5)))
RULES = RoutingRules(
    tiers={
        Tier.INTERACTIVE: TierRules(deadline_s=2.0, max_waiting=10),
        Tier.BATCH: TierRules(deadline_s=100.0, max_waiting=10),
    }
)


def test_first_come_first_served() -> None:
    """What is taken is taken from those who came first; the rest keeps its place."""
    queue = Queue(LOAD)
    queue.settle(0, 0.5, 3.0, 0.0)
    queue.settle(0, 1.5, 2.0, 1.5)

    assert [3.5, 0.0] == queue.waiting
    assert [(0, 0.5, 1.5)] == queue.refuse(2.5, RULES, stranded=False)
    assert [(0, 1.5, 2.0)] == queue.refuse(3.5, RULES, stranded=False)
    assert not queue.busy


def test_nobody_waits_where_all_are_taken() -> None:
    """Also by less than a rounding error."""
    queue = Queue(LOAD)
    queue.settle(0, 0.5, 3.0, 3.0 - 1e-12)

    assert not queue.busy
    assert [0.0, 0.0] == queue.waiting


def test_too_many_are_turned_away_the_newest_first() -> None:
    """Ten may wait: of twelve the last two go, whatever came before stays."""
    queue = Queue(LOAD)
    queue.settle(1, 0.5, 8.0, 0.0)
    queue.settle(1, 1.5, 4.0, 0.0)

    assert [(1, 1.5, 2.0)] == queue.refuse(1.5, RULES, stranded=False)
    assert 10.0 == queue.of(Tier.BATCH)


def test_without_any_replica_nobody_waits_long() -> None:
    """Two seconds, though the tier's deadline is a hundred."""
    queue = Queue(LOAD)
    queue.settle(1, 0.5, 1.0, 0.0)

    assert [] == queue.refuse(2.0, RULES, stranded=True)
    assert [(1, 0.5, pytest.approx(1.0))] == queue.refuse(2.5, RULES, stranded=True)
