"""How much the loads of replicas differ."""

from __future__ import annotations

import pytest

from app.simulation.fluid.crowd import Crowd
from app.simulation.fluid.uneven import Guests, Lately, Uneven


def crowding(crowd: Crowd, coming_per_s: float, stay_s: float) -> float:
    """Variance over mean of the sequences, each of which stays so long."""
    return crowd.variance(coming_per_s, 1.0 / stay_s) / (coming_per_s * stay_s)


def test_an_ingress_that_knows_all_keeps_loads_alike() -> None:
    """Less than chance would have it, 1; the more so the more sequences there are to even out."""
    alone = Crowd(1, 0.0)

    assert 0.4 < crowding(alone, 5.0, 1.0) < 0.7
    assert crowding(alone, 20.0, 2.5) < crowding(alone, 5.0, 1.0)


def test_several_that_hear_of_each_other_late_make_loads_swing() -> None:
    """Two with snapshots a second old are worse than chance; the later they hear, the worse."""
    found = [crowding(Crowd(2, delay_s), 10.0, 2.5) for delay_s in (0.0, 0.3, 1.0, 3.0)]

    assert found == sorted(found)
    assert found[0] < 1.0 < 1.5 < found[2]


def test_who_looks_for_emptier_replicas_makes_more_of_it() -> None:
    """Guests that see little room go all to the same replicas."""
    crowd = Crowd(2, 1.0)

    assert crowd.variance(10.0, 0.4) < crowd.variance(10.0, 0.4, picky=0.5)


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


def test_what_came_of_late_counts_for_some_seconds() -> None:
    """Long ticks count at once; idle replicas that join thin everything."""
    found = Lately().then(60.0, 600.0, Guests(60.0, 30.0, 90.0), 5.0)

    assert (10.0, 1.0, 0.5, 1.5, 5.0) == pytest.approx(
        (found.came_per_s, found.guests_per_s, found.picky_per_s, found.narrow_per_s, found.held), rel=1e-6
    )
    assert 5.0 == pytest.approx(found.thinned(0.5).came_per_s)


def test_the_emptier_of_two_gets_bursts() -> None:
    """Its share goes evenly from none to twice the mean: 1/3 of the square of the mean.

    Snapshots come every 1.25 s, so that bursts last half as long: 2 x 0.625 s x 12 a second / 3.
    """
    found = Lately(came_per_s=12.0, held=24.0).uneven(Crowd(2, 1.0), 12, 0.5, 1e6)

    assert (5.0, 0.625) == pytest.approx((found.burst, found.burst_s))


def test_guests_that_find_few_replicas_come_in_larger_bursts() -> None:
    """Half of the replicas for all who come: 4/3 x 2 - 1 in place of 1/3."""
    lately = Lately(came_per_s=12.0, guests_per_s=12.0, narrow_per_s=24.0, held=24.0)

    assert 25.0 == pytest.approx(lately.uneven(Crowd(2, 1.0), 12, 0.5, 1e6).burst)


def test_one_ingress_or_one_replica_makes_no_bursts() -> None:
    """It knows at once what it sent; and there is nothing to choose."""
    lately = Lately(came_per_s=12.0, held=24.0)

    assert 0.0 == lately.uneven(Crowd(1, 1.0), 12, 0.5, 1e6).burst
    assert 0.0 == lately.uneven(Crowd(2, 1.0), 1, 0.5, 1e6).burst


def test_guests_sit_where_others_are_few() -> None:
    """So those at home see fewer sequences than guests do."""
    found = Lately(came_per_s=16.0, guests_per_s=8.0, picky_per_s=12.0, held=40.0).uneven(
        Crowd(2, 1.0), 12, 0.4, 122.0
    )

    assert found.at_home < 0.0 < found.as_guest
