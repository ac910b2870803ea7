"""Who is let in, and in which order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from app.simulation.fluid.door import Door
from app.simulation.fluid.history import History
from app.simulation.fluid.level import Level
from app.simulation.fluid.load import load_of
from app.simulation.fluid.route import Router
from app.simulation.replica import Limits
from autoscaling.routing_rules import RoutingRules, TierRules
from autoscaling.types import Role, Tier
from tests.app.simulation.services import steady, together

LOAD = load_of(together(steady(Tier.INTERACTIVE, 1, 50), steady(Tier.BATCH, 1, 50)), 1.0)
ONE_EACH, SEEN = dict.fromkeys(Role, 1), dict.fromkeys(Role, 1.0)
RULES = RoutingRules(tiers={tier: TierRules(deadline_s=100.0, max_waiting=1000) for tier in Tier})


def door(soft: int) -> tuple[Door, History]:
    router = Router(LOAD)
    router.renew(RULES, dict.fromkeys(Role, Limits(soft, 100)), ONE_EACH, SEEN)
    return Door(LOAD, router), History(LOAD)


def free(load: float) -> list[Level]:
    """Replicas with so many sequences each, which stay."""
    return [Level(load, load, 1, [1.0, 1.0]) for _ in Role]


def test_all_are_let_in_while_there_is_room() -> None:
    """Nobody waits."""
    made, history = door(soft=10)
    made.let_in(0.5, 0, [3.0, 4.0], free(0.0), RULES, history)

    assert [[3.0, 0.0], [0.0, 4.0]] == history.taken[0].tolist()
    assert [0.0, 0.0] == history.waited_s[0].tolist()
    assert not made.queue.busy


def test_interactive_requests_come_first_and_batch_gets_its_share() -> None:
    """Ten seats of which batch, while it waits, gets a tenth of as many as there were before."""
    made, history = door(soft=10)
    made.let_in(0.5, 0, [30.0, 20.0], free(0.0), RULES, history)
    assert np.allclose([[10.0, 10.0], [0.0, 0.0]], history.taken[0])

    made.let_in(1.5, 1, [0.0, 0.0], free(5.0), RULES, history)
    assert [8.0, 2.0] == pytest.approx(history.taken[1].sum(axis=1).tolist())
    assert [2.0, 18.0] == pytest.approx(made.queue.waiting)


def test_within_a_tier_whoever_came_first_has_the_next_seat() -> None:
    """Long and short documents wait for the same pool: all of the ten seats are those of the first."""
    load = load_of(together(steady(Tier.BATCH, 1, 50, prompt=100), steady(Tier.BATCH, 1, 50, prompt=4000)))
    router = Router(load)
    rules = replace(RULES, backfill=False)
    router.renew(rules, dict.fromkeys(Role, Limits(10, 10)), ONE_EACH, SEEN)
    made, history = Door(load, router), History(load)
    made.let_in(0.5, 0, [6.0, 0.0], free(10.0), rules, history)
    made.let_in(1.5, 1, [8.0, 8.0], free(10.0), rules, history)
    made.let_in(2.5, 2, [8.0, 8.0], free(0.0), rules, history)

    assert [0.0, 0.0] == history.taken[1].sum(axis=1).tolist()
    assert [10.0, 0.0] == pytest.approx(history.taken[2].sum(axis=1).tolist())
    made.let_in(3.5, 3, [0.0, 0.0], free(0.0), rules, history)
    assert [4.0, 6.0] == pytest.approx(history.taken[3].sum(axis=1).tolist())


def test_waits_follow_from_the_pace() -> None:
    """Twenty wait when the tick begins and ten when it ends, while ten are let in: 1.5 s."""
    made, history = door(soft=10)
    made.let_in(0.5, 0, [40.0, 0.0], free(0.0), RULES, history)
    assert 0.5 == pytest.approx(history.waited_s[0, 0])

    made.let_in(1.5, 1, [0.0, 0.0], free(5.0), RULES, history)
    assert 1.5 == pytest.approx(history.waited_s[1, 0])
