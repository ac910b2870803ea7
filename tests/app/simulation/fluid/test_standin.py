"""The replica that stands for its pool."""

from __future__ import annotations

import pytest

from app.routing.standin import replica_like
from app.simulation.fluid.standin import below, candidate
from app.simulation.replica import Limits
from autoscaling.types import Role


def test_the_emptiest_is_below_the_mean_by_what_is_seen() -> None:
    """The least of twelve normal values is 1.68 deviations below; one alone is the mean."""
    assert [1.7, 0.8, 0.0] == pytest.approx([below(12, 1.0), below(12, 0.25), below(1, 1.0)])


def test_it_has_the_room_of_the_mean_and_the_sequences_of_the_emptiest() -> None:
    """Sixteen on average, and 16 - 0.8 x 4 at the emptiest; of a limit of twenty, four are free."""
    found = candidate(replica_like(Role.PLAIN, "plain"), Limits(20, 64), 16, 0.8)

    assert (13, 4, True) == (found.load, found.free, found.hard_room)
