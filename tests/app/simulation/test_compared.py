"""What is the same for all who are compared, and the two models behind one call."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from app.simulation.compared import (
    MONDAY,
    Entry,
    Ground,
    Model,
    delays_of,
    first_sizes,
    model_for,
    prepared,
    setup_of,
)
from app.simulation.contenders import CONTENDERS
from autoscaling.types import Role, Tier
from tests.app.simulation.services import ENGINES, policy, steady, together

TRACE = tuple(together(steady(Tier.INTERACTIVE, 2, 20), steady(Tier.BATCH, 2, 20)))
GROUND = Ground(ENGINES, TRACE, delays_of(ENGINES))


def entry(name: str = "twinpool", **changes: object) -> Entry:
    return Entry(name, CONTENDERS[name], policy(4), **changes)  # type: ignore[arg-type]


def test_traces_without_a_date_begin_on_a_monday() -> None:
    """At midnight, so that schedules of the week can be read off."""
    assert datetime(2027, 1, 4, tzinfo=UTC) == datetime.fromtimestamp(MONDAY, UTC)
    assert 0 == datetime.fromtimestamp(MONDAY, UTC).weekday()


@pytest.mark.parametrize(("last_s", "expected"), [(0.0, 10.0), (9.9, 10.0), (10.0, 20.0), (19.5, 20.0)])
def test_a_trace_lasts_whole_intervals(last_s: float, expected: float) -> None:
    """The last request lies inside."""
    trace = [*steady(Tier.BATCH, 1, 1), *steady(Tier.BATCH, 1, 1)]
    moved = (trace[0], type(trace[1])(last_s, Tier.BATCH, "chat", 10, 10))

    assert expected == Ground(ENGINES, moved, delays_of(ENGINES)).trace_s


def test_moves_take_what_the_engines_take() -> None:
    """Or what is said of their start."""
    assert (60.0, 5.0) == (delays_of(ENGINES).start_s, delays_of(ENGINES).stop_s)
    assert (7.0, 5.0) == (delays_of(ENGINES, 7.0).start_s, delays_of(ENGINES, 7.0).stop_s)


@pytest.mark.parametrize(("slots", "expected"), [(64, Model.EVENT), (65, Model.FLUID)])
def test_many_replicas_are_a_fluid(slots: int, expected: Model) -> None:
    """From 65 on, following every request takes too long."""
    assert expected is model_for(policy(slots))


def test_the_clock_and_the_first_sizes_are_those_of_the_ground() -> None:
    """Sizes may be given; without, the contender has its own."""
    sizes = {Role.SPECULATIVE: 1, Role.PLAIN: 3}
    given, own = setup_of(entry(sizes=sizes), GROUND), setup_of(entry(), GROUND)

    assert (MONDAY, MONDAY) == (given.believed.wall, own.believed.wall)
    assert sizes == given.sizes
    assert first_sizes(policy(4), MONDAY) == own.sizes


@pytest.mark.parametrize("model", Model)
def test_both_models_give_scores_of_the_same_trace(model: Model) -> None:
    """40 requests of each tier, all of them in time; progress is told in seconds and in requests."""
    told: list[tuple[float, int]] = []
    found = prepared(entry(), GROUND, model)(lambda at_s, ended: told.append((at_s, ended)))

    assert 20.0 == pytest.approx(found.seconds, abs=1.0)
    assert {Tier.INTERACTIVE, Tier.BATCH} == set(found.tiers)
    assert [pytest.approx(40.0)] * 2 == [one.arrived for one in found.tiers.values()]
    assert all(one.attainment is not None and one.attainment > 0.99 for one in found.tiers.values())
    assert told == sorted(told)
    assert 0 <= told[-1][1] <= 80
    assert sorted(told) == told


def test_what_was_prepared_gives_the_same_again() -> None:
    """As often as it is called."""
    run = prepared(entry(), GROUND, Model.EVENT)

    assert run(None) == run(None)


def test_the_fluid_model_refuses_by_name_what_it_has_not() -> None:
    """Another routing than ours."""
    with pytest.raises(ValueError, match="all-plain: it routes or moves capacity in another way"):
        prepared(entry("all-plain"), GROUND, Model.FLUID)


def test_a_trace_of_years_is_refused() -> None:
    """One time of 1970 among those of 2023 would be simulated for weeks."""
    far = replace(GROUND.trace[-1], at_s=53 * 365 * 86_400.0)

    with pytest.raises(ValueError, match="the trace lasts 19,345 days, and 100 are simulated at most"):
        replace(GROUND, trace=(*GROUND.trace, far))
