"""How full replicas were a moment ago."""

from __future__ import annotations

import pytest

from app.simulation.fluid.past import Past


def test_between_two_ticks_it_is_in_proportion() -> None:
    """10 sequences now, 20 a second ago, 40 two seconds ago; before that nothing else is known."""
    past = Past(2.0).then(1.0, 40.0).then(1.0, 20.0).then(1.0, 10.0)

    assert [10.0, 15.0, 30.0, 40.0] == pytest.approx([past.at(age_s) for age_s in (0.0, 0.5, 1.5, 2.0)])


def test_no_more_is_kept_than_is_asked_for() -> None:
    """Of a hundred ticks those of the last two seconds, and one before."""
    past = Past(2.0)
    for load in range(100):
        past = past.then(1.0, float(load))

    assert (99.0, 97.0) == (past.at(0.0), past.at(2.0))
    assert len(past.loads) <= 4


def test_idle_replicas_that_join_thin_all_of_it() -> None:
    """The mean of twice as many."""
    assert 5.0 == Past(2.0).then(1.0, 10.0).thinned(0.5).at(0.0)
