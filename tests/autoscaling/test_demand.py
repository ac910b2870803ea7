"""What callers want of each pool, by the ingresses' word."""

from __future__ import annotations

import pytest

from autoscaling.demand import Demand
from autoscaling.types import IngressLoad, Role

SPECULATIVE, PLAIN = Role.SPECULATIVE, Role.PLAIN


def load(wanted: int = 0, refused: int = 0) -> IngressLoad:
    """One ingress's word about the plain pool."""
    return IngressLoad(wanted={SPECULATIVE: 0, PLAIN: wanted}, refused={SPECULATIVE: 0, PLAIN: refused})


def test_nobody_has_spoken() -> None:
    """Then demand is unknown, not zero."""
    demand = Demand()
    assert (None, None) == (demand.wanted(PLAIN, 0.0), demand.refused(PLAIN, 0.0))


def test_ingresses_add_up() -> None:
    """Open sequences of all ingresses, each by its newest word; the pools apart."""
    demand = Demand()
    demand.take("a", load(5), 0.0)
    demand.take("b", load(2), 0.5)
    demand.take("a", load(4), 1.0)
    assert (6, 0) == (demand.wanted(PLAIN, 1.0), demand.wanted(SPECULATIVE, 1.0))


def test_a_pool_that_is_not_named_is_not_wanted() -> None:
    """An ingress that speaks and does not name a pool wants nothing of it."""
    demand = Demand()
    demand.take("a", IngressLoad(wanted={PLAIN: 3}, refused={}), 0.0)
    assert (0, 0) == (demand.wanted(SPECULATIVE, 0.0), demand.refused(SPECULATIVE, 0.0))


@pytest.mark.parametrize(("silent_s", "expected"), [(0.0, 7), (3.0, 7), (3.01, 2), (5.99, 2), (6.01, None)])
def test_a_silent_ingress_is_forgotten(silent_s: float, expected: int | None) -> None:
    """After 3 s its callers count no longer; without any ingress demand is unknown again."""
    demand = Demand()
    demand.take("a", load(5), 0.0)
    demand.take("b", load(2), min(silent_s, 3.0))
    assert expected == demand.wanted(PLAIN, silent_s)


def test_refusals_are_those_of_the_last_ten_seconds() -> None:
    """Counters since an ingress's start become a difference; what is older than 10 s counts no longer."""
    demand = Demand()
    for second in range(30):
        demand.take("a", load(refused=100 + (4 if second >= 5 else 0)), float(second))
        expected = 0 if second < 5 else 4 if second < 15 else 0
        assert expected == demand.refused(PLAIN, float(second)), second


def test_what_an_ingress_refused_before_it_was_heard_is_unknown() -> None:
    """A controller that has just started takes no old refusal for a new one."""
    demand = Demand()
    demand.take("a", load(refused=500), 0.0)
    assert 0 == demand.refused(PLAIN, 0.0)
    demand.take("a", load(refused=503), 1.0)
    assert 3 == demand.refused(PLAIN, 1.0)


def test_an_ingress_that_was_silent_begins_anew() -> None:
    """Its counter is compared with nothing from before the silence."""
    demand = Demand()
    demand.take("a", load(refused=5), 0.0)
    assert demand.wanted(PLAIN, 4.0) is None
    demand.take("a", load(refused=9), 5.0)
    assert 0 == demand.refused(PLAIN, 5.0)


def test_refusals_of_all_ingresses_add_up() -> None:
    """Each against its own counter."""
    demand = Demand()
    for name, first, then in (("a", 10, 12), ("b", 1000, 1003)):
        demand.take(name, load(refused=first), 0.0)
        demand.take(name, load(refused=then), 1.0)
    assert 5 == demand.refused(PLAIN, 1.0)


def test_numbers_are_bounded_at_the_edge() -> None:
    """What is negative counts as nothing, and what no float can hold as the most that one can."""
    demand = Demand()
    demand.take("a", load(wanted=-5, refused=-7), 0.0)
    assert (0, 0) == (demand.wanted(PLAIN, 0.0), demand.refused(PLAIN, 0.0))
    demand.take("a", load(wanted=10**400, refused=10**400), 1.0)
    assert (2**53, 2**53) == (demand.wanted(PLAIN, 1.0), demand.refused(PLAIN, 1.0))


def test_an_ingress_that_began_anew_under_its_name_refused_nothing() -> None:
    """Its counter fell: refusals are never negative, and count from there."""
    demand = Demand()
    demand.take("a", load(refused=100), 0.0)
    demand.take("a", load(refused=0), 1.0)
    assert 0 == demand.refused(PLAIN, 1.0)
    demand.take("a", load(refused=2), 2.0)
    assert 2 == demand.refused(PLAIN, 2.0)
