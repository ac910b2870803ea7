"""What callers want at one ingress, counted by the pool that they prefer."""

from __future__ import annotations

import pytest

from app.demand import Demand
from autoscaling.types import IngressLoad, Role

SPECULATIVE, PLAIN = Role.SPECULATIVE, Role.PLAIN


def counts(speculative: int, plain: int) -> dict[Role, int]:
    return {SPECULATIVE: speculative, PLAIN: plain}


def test_at_first_nobody_wants_anything() -> None:
    """Both pools are named, with zero: an ingress knows its own callers."""
    assert IngressLoad(counts(0, 0), counts(0, 0), None) == Demand().load(None)


def test_open_requests_count_by_their_sequences() -> None:
    """From their begin to their end, in the pool that they prefer."""
    demand = Demand()
    with demand.open(PLAIN, 1), demand.open(PLAIN, 4):
        assert counts(0, 5) == demand.load(None).wanted
        with demand.open(SPECULATIVE, 2):
            assert counts(2, 5) == demand.load(None).wanted
        assert counts(0, 5) == demand.load(None).wanted
    assert counts(0, 0) == demand.load(None).wanted


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, GeneratorExit])
def test_a_request_that_fails_is_wanted_no_longer(error: type[BaseException]) -> None:
    """However a request ends, it is not counted on."""
    demand = Demand()
    with pytest.raises(error), demand.open(PLAIN, 3):
        raise error
    assert counts(0, 0) == demand.load(None).wanted


def test_refusals_only_grow() -> None:
    """Since the ingress started, by sequences."""
    demand = Demand()
    demand.refuse(PLAIN, 1)
    demand.refuse(PLAIN, 4)
    demand.refuse(SPECULATIVE, 1)
    assert counts(1, 5) == demand.load(None).refused
    assert counts(0, 0) == demand.load(None).wanted


def test_a_load_is_a_picture_of_its_moment() -> None:
    """It names the newest snapshot's epoch, and what comes later does not change it."""
    demand = Demand()
    found = demand.load(7)
    demand.refuse(PLAIN, 1)
    with demand.open(PLAIN, 1):
        assert IngressLoad(counts(0, 0), counts(0, 0), 7) == found
