"""Replicas of a fluid that start, run, drain and go."""

from __future__ import annotations

import numpy as np
import pytest

from app.simulation.fleet import Delays
from app.simulation.fluid.fleet import Fleet, Pool
from autoscaling.types import Role
from tests.app.simulation.fluid.cells import cell, feed

DELAYS = Delays(start_s=30.0, stop_s=3.0, drain_limit_s=300.0)


def pool(replicas: int, delays: Delays = DELAYS, known_after_s: float = 0.0) -> Pool:
    return Pool(cell()._nature, delays, known_after_s, replicas)


def counts(one: Pool) -> tuple[int, int, int]:
    return one.running, one.starting, one.draining


def test_a_replica_runs_after_its_start() -> None:
    """30 s after it was asked for, not sooner."""
    one = pool(2)
    one.aim(4, 100.0)
    one.come(129.9)

    assert (2, 2, 0) == counts(one)
    one.come(130.0)
    assert (4, 0, 0) == counts(one)
    assert 4 == one.cell.replicas


def test_ingresses_know_it_later() -> None:
    """It runs, and takes nothing before a snapshot has told of it."""
    one = pool(2, known_after_s=5.0)
    one.aim(3, 0.0)
    one.come(30.0)

    assert ((3, 0, 0), 2) == (counts(one), one.cell.replicas)
    one.come(35.0)
    assert ((3, 0, 0), 3) == (counts(one), one.cell.replicas)


def test_what_starts_is_given_up_first() -> None:
    """Then what runs."""
    one = pool(2)
    one.aim(4, 0.0)
    one.aim(1, 10.0)

    assert (1, 0, 1) == counts(one)
    one.come(60.0)
    assert (1, 0, 1) == counts(one)


def test_a_drain_takes_as_long_as_its_answers_and_a_stop() -> None:
    """Answers of 100 steps of 11 ms or more, then 3 s; the others go on with theirs."""
    one = pool(10)
    feed(one.cell, 40.0, 50)
    before = one.cell.total
    one.aim(5, 50.0)
    gone_s = next(second for second in range(1, 100) if [one.drain(1.0, 49.0 + second)] and one.draining == 0)

    assert before / 2 == pytest.approx(one.cell.total)
    assert 3 + 1 <= gone_s <= 3 + 5
    assert 0.0 == one.failed.sum()


def test_an_idle_replica_goes_after_its_stop() -> None:
    """Nothing is left to wait for."""
    one = pool(2)
    one.aim(1, 0.0)
    one.drain(1.0, 0.0)
    one.drain(1.0, 1.0)
    one.drain(1.0, 2.0)

    assert (1, 0, 1) == counts(one)
    one.drain(1.0, 3.0)
    assert (1, 0, 0) == counts(one)


def test_a_drain_that_takes_too_long_breaks_off() -> None:
    """What is open at the limit has failed."""
    one = pool(10, Delays(start_s=30.0, stop_s=1.0, drain_limit_s=1.0))
    feed(one.cell, 100.0, 50)
    before = one.cell.total
    one.aim(5, 50.0)
    one.drain(0.5, 50.0)
    one.drain(0.5, 50.5)

    assert 0.0 < one.failed.sum() < before / 2
    assert before / 2 == pytest.approx(one.in_flight.sum())


def test_a_plan_is_followed_by_both_pools() -> None:
    """One gives, the other starts."""
    nature = cell()._nature
    fleet = Fleet(dict.fromkeys(Role, nature), DELAYS, 0.0, {Role.SPECULATIVE: 2, Role.PLAIN: 2})
    fleet.apply({Role.SPECULATIVE: 3, Role.PLAIN: 1}, 0.0)

    assert (2, 1, 0) == counts(fleet.pools[Role.SPECULATIVE])
    assert (1, 0, 1) == counts(fleet.pools[Role.PLAIN])
    assert np.array_equal([0.0], fleet.in_flight)
