"""How much the loads of replicas differ."""

from __future__ import annotations

import math

import numpy as np
import pytest

from app.simulation.fluid.crowd import Crowd
from app.simulation.fluid.load import Answers
from app.simulation.fluid.uneven import Lately, Uneven, hidden_share, levelled


def crowding(crowd: Crowd, coming_per_s: float, stay_s: float) -> float:
    """Variance over mean of the sequences, each of which stays so long."""
    return crowd.loads(coming_per_s, 1.0 / stay_s, stay_s).there / (coming_per_s * stay_s)


def test_an_ingress_that_knows_all_keeps_loads_alike() -> None:
    """Less than chance would have it, 1; the more so the more sequences there are to even out."""
    alone = Crowd(1, 0.0)

    assert 0.2 < crowding(alone, 5.0, 1.0) < 0.6
    assert crowding(alone, 20.0, 2.5) < crowding(alone, 5.0, 1.0)


def test_what_one_sent_itself_it_knows_however_late_reports_come() -> None:
    """An ingress alone needs none, and sees what is there."""
    soon, late = (Crowd(1, delay_s).loads(10.0, 0.4, 2.5) for delay_s in (0.0, 5.0))

    assert soon.there == pytest.approx(late.there, rel=0.05)
    assert soon.there == pytest.approx(soon.seen)


def test_the_more_ingresses_the_less_alike_are_loads() -> None:
    """Each evens out its own part alone, and what it sees of the others is less than what is there."""
    found = [Crowd(ingresses, 1.0).loads(10.0, 0.4, 2.5) for ingresses in (1, 2, 4)]
    there = [one.there for one in found]

    assert there == sorted(there)
    assert found[1].seen < found[1].there


def test_the_later_ingresses_hear_of_each_other_the_less_alike_are_loads() -> None:
    """But what is old counts for little, so that loads are not worse than chance would have them."""
    found = [crowding(Crowd(2, delay_s), 10.0, 2.5) for delay_s in (0.0, 1.0, 3.0)]

    assert found[0] < found[1]
    assert max(found) < 1.0


def test_nothing_is_known_of_idle_replicas() -> None:
    """They are taken for alike as chance has it."""
    assert Uneven() == Lately().uneven(Crowd(1, 0.0), 4, 1.0, 8.0)


def test_one_replica_takes_whoever_comes() -> None:
    """Ten a second that stay for one: as random arrivals do, and more where steps grow with the load."""
    one = Lately(came_per_s=10.0, held=10.0)

    assert 1.0 == pytest.approx(one.uneven(Crowd(2, 1.0), 1, 1.0, 1e6).crowding)
    assert 2.0 == pytest.approx(one.uneven(Crowd(2, 1.0), 1, 0.5, 1e6).crowding)


def test_replicas_at_their_limit_are_alike() -> None:
    """One place is left on average."""
    one = Lately(came_per_s=10.0, held=63.0)

    assert one.uneven(Crowd(2, 1.0), 20, 0.5, 64.0).crowding < 0.02


def test_guests_that_fill_all_replicas_make_them_alike() -> None:
    """The nearer the mean is to what they fill up to; far above it hardly any replica is that empty."""
    shares = [levelled(above) for above in (0.1, 0.4, 1.0, 3.0)]

    assert shares == sorted(shares)
    assert levelled(-1.0) == levelled(0.0) < 0.05
    # By hand, for a mean at the floor before: the excess is 1 / sqrt(2 pi), the variance 1 / 2 - 1 / (2 pi).
    assert 0.341 == pytest.approx(levelled(0.399), abs=0.002)
    assert 1.0 == pytest.approx(shares[-1], abs=0.01)
    assert [1.0] * 3 == pytest.approx([levelled(above) for above in (7.999, 8.5, math.inf)])


def test_what_came_of_late_counts_for_some_seconds() -> None:
    """Long ticks count at once; idle replicas that join thin everything."""
    found = Lately().then(60.0, 600.0, 5.0)

    assert (10.0, 5.0) == pytest.approx((found.came_per_s, found.held), rel=1e-6)
    assert (5.0, 2.5) == pytest.approx((found.thinned(0.5).came_per_s, found.thinned(0.5).held), rel=1e-6)


def test_work_left_tells_less_of_a_load_the_more_lengths_differ() -> None:
    """By hand: 1 - (1/2)^2 / (1/3) for equal ones, 1 - exp(-2) / (1 - 2 / e) for exponential ones."""
    shares = (np.arange(1000) + 0.5) / 1000
    even = Answers(np.array([100.0]), np.array([1.0]))
    uneven = Answers(-np.log(shares), np.full(1000, 1e-3))

    assert [0.25, 0.488] == pytest.approx([hidden_share(even), hidden_share(uneven)], abs=0.005)


def test_what_work_does_not_tell_is_as_chance_has_it() -> None:
    """All of it hidden: the variance is the mean, of which one of two ingresses sees its half."""
    one = Lately(came_per_s=10.0, held=25.0)
    found = one.uneven(Crowd(2, 1.0), 20, 1.0, 1e6, hidden=1.0)

    assert (1.0, 0.5) == pytest.approx((found.crowding, found.seen), rel=1e-3)
