"""What room there is for guests."""

from __future__ import annotations

import pytest

from app.simulation.fluid.level import Level


def level(load: float, ingresses: int = 1, others: float = 0.0, looks: float = 1.0) -> Level:
    """Ten replicas that are all alike."""
    return Level(load, load, 10, [0.5], 1e-4, 1 / ingresses, others, looks)


def test_guests_fill_up_to_where_they_are_refused() -> None:
    """Two places at each of ten replicas; none where they are as full."""
    assert 20.0 == pytest.approx(level(8.0).room(10.0), rel=0.02)
    assert 0.0 == pytest.approx(level(11.0).room(10.0), abs=1e-3)


def test_each_ingress_fills_what_it_does_not_see_of_the_others() -> None:
    """Both see the other's four of two seconds ago and their own three: three are free, for each of them."""
    assert 60.0 == pytest.approx(level(6.0, ingresses=2, others=8.0).room(10.0), rel=0.02)


def test_guests_that_were_let_in_take_room() -> None:
    """Half of the fifteen are gone when the tick ends, and their places count once."""
    one = level(8.0)
    one.let_in(15.0, 0)
    one.load += 0.75

    assert 5.0 == pytest.approx(one.room(10.0), rel=0.05)


def test_the_oftener_loads_change_the_more_room_is_found() -> None:
    """Each time that they are others' loads anew."""
    assert 60.0 == pytest.approx(level(8.0, looks=3.0).room(10.0), rel=0.02)


def test_guests_that_wait_come_in_bunches() -> None:
    """Two places are free at each replica: two and a half come at once; with room for all, each alone."""
    one = level(8.0)
    assert (0.0, 1.0) == (one.floor, one.bunch)

    one.close(10.0)
    assert (10.0, 2.5) == (one.floor, pytest.approx(one.bunch, rel=0.02))
    one.close(9.0)
    assert 10.0 == one.floor
