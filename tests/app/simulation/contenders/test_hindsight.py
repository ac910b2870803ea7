"""The hindsight optimum: the load that it foresees, the cheapest course, and when moves begin."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.simulation.acceptance import Acceptance
from app.simulation.arrival import Arrival
from app.simulation.contenders.hindsight_course import Course, cheapest, costs, course
from app.simulation.contenders.hindsight_load import PoolLoad, loads
from autoscaling.types import Role, Tier
from tests.app.simulation.contenders.scenes import scene
from tests.app.simulation.engines import engine_profile
from tests.app.simulation.services import policy as simulated
from tests.autoscaling.worlds import policy

tables = st.integers(1, 4).flatmap(
    lambda places: st.lists(
        st.lists(st.integers(0, 9), min_size=places, max_size=places), min_size=1, max_size=5
    )
)


def total(path: tuple[int, ...], table: list[list[int]], per_step: int) -> int:
    """What a course costs."""
    moved = sum(abs(after - before) for before, after in pairwise(path))
    return per_step * moved + sum(row[place] for row, place in zip(table, path, strict=True))


@given(table=tables, per_step=st.integers(0, 5))
def test_the_course_is_the_cheapest_of_all(table: list[list[int]], per_step: int) -> None:
    """Against every course there is."""
    found = tuple(cheapest(np.array(table, dtype=float), per_step))
    every = product(range(len(table[0])), repeat=len(table))

    assert min(total(path, table, per_step) for path in every) == total(found, table, per_step)


@pytest.mark.parametrize(("per_step", "expected"), [(0, [0, 1, 0]), (3, [0, 1, 0]), (5, [0, 0, 0])])
def test_a_move_that_does_not_pay_is_not_made(per_step: int, expected: list[int]) -> None:
    """There and back costs twice; what is missed in between costs nine."""
    assert expected == cheapest(np.array([[0.0, 6.0], [9.0, 0.0], [0.0, 6.0]]), per_step)


def test_a_move_begins_as_early_as_it_takes() -> None:
    """45 s before the interval that needs it; one that gives back waits for the interval's end."""
    found = Course((2, 2, 4, 2), lead_s=45.0)

    assert [2, 2, 4, 4, 4, 2, 2] == [found.at(at_s) for at_s in (-3.0, 14.0, 15.0, 30.0, 89.0, 90.0, 500.0)]


def test_open_sequences_are_arrivals_times_stay() -> None:
    """A batch request of 91 tokens, alone in a plain engine of one sequence: 111 ms, and 11 ms a token.

    A step takes 10 ms and 1 ms per token, so the prompt beside one sequence takes 10 + 100 + 1 ms.
    """
    trace = [Arrival(1.0, Tier.BATCH, "chat", 100, 91), Arrival(2.5, Tier.BATCH, "chat", 100, 91)]
    found = loads(trace, engine_profile(), dict.fromkeys(Role, 1), None)[Role.PLAIN]

    assert pytest.approx(0.111 + 91 * 0.011) == found.stay_s
    assert [pytest.approx(0.0), pytest.approx(1.0), pytest.approx(0.112 + 0.5)] == found.open.tolist()


def test_a_pool_that_nobody_prefers_has_no_load() -> None:
    """Interactive requests are the speculative pool's."""
    trace = [Arrival(0.0, Tier.INTERACTIVE, "chat", 100, 91)]
    found = loads(trace, engine_profile(), dict.fromkeys(Role, 4), 0.01)

    assert 0.0 == found[Role.PLAIN].stay_s
    assert [0.0] == found[Role.PLAIN].open.tolist()
    assert found[Role.SPECULATIVE].open[0] > 0.0


def test_requests_are_late_where_the_batch_is_too_large() -> None:
    """Three tokens for each sequence from steps of 12 ms and 3 ms for each; 1.1 ms for a neighbour's prompt.

    So two sequences have a token in 7.1 ms each, and three in 9.2 ms.
    """
    trace = [Arrival(0.0, Tier.INTERACTIVE, "chat", 100, 91)]
    found = loads(trace, engine_profile(), dict.fromkeys(Role, 4), 0.0071)[Role.SPECULATIVE]

    assert [0.0, 0.0, 0.0, 1.0, 1.0] == found.late.tolist()
    assert pytest.approx(0.012 + 0.003 * 2 + 0.1 + 91 * 0.0070989, rel=1e-4) == found.stay_s


def test_requests_that_differ_are_late_by_share() -> None:
    """Where the mean request is just in time, half of them are; where it has time to spare, fewer."""
    trace = [Arrival(0.0, Tier.INTERACTIVE, "chat", 100, 91)]
    engines = engine_profile(Acceptance((0.8, 0.6), spread=0.3))
    # 2.4 tokens for a step of 15 ms: 6.25 ms each.
    found = loads(trace, engines, dict.fromkeys(Role, 1), 0.00625)[Role.SPECULATIVE]

    assert pytest.approx(0.5) == found.late[1]
    assert 0.0 < found.late[0] < 0.5


def test_misses_of_callers_weigh_thirty_times_those_of_batch_work() -> None:
    """Twenty sequences on each pool for thirty seconds, ten to a replica, eight replicas in all."""
    load = {role: PoolLoad(np.full(30, 20.0), 1.0, np.zeros(11)) for role in Role}
    found = costs(load, range(1, 8), policy())

    # One or seven speculative replicas leave ten sequences of one of the pools without room.
    assert pytest.approx([9000.0, 0.0, 0.0, 0.0, 0.0, 0.0, 300.0], abs=0.3) == found[0].tolist()
    # What nobody misses had better speculate.
    assert 5 == int(found[0].argmin())


def test_what_is_late_is_missed() -> None:
    """Half of those on replicas of ten are late, none of those on emptier ones."""
    late = np.array([0.0] * 10 + [0.5])
    load = {
        Role.SPECULATIVE: PoolLoad(np.full(30, 20.0), 1.0, late),
        Role.PLAIN: PoolLoad(np.zeros(30), 0.0, np.zeros(11)),
    }

    assert pytest.approx([30 * 30 * (10 + 5), 30 * 30 * 10, 0.0], abs=0.3) == (
        costs(load, range(1, 4), policy())[0].tolist()
    )


def test_a_course_foresees_a_rush() -> None:
    """With a limit of few sequences the rush needs all that the speculative pool may have."""
    tight = scene(policy=simulated(4, tpot_s=0.0045))

    assert {3} == set(course(tight).sizes)


def test_a_course_needs_a_trace() -> None:
    """Nothing is foreseen of nothing."""
    with pytest.raises(ValueError, match=r"the scene has no trace"):
        course(replace(scene(), trace=()))
