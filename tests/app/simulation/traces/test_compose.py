"""Traces made of traces."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from app.simulation.traces.compose import cut, scale_rate, set_tiers, stretch, superpose
from app.simulation.traces.errors import TraceError
from autoscaling.types import Tier
from tests.app.simulation.traces.made import arrivals, times


def test_superposed_traces_are_one_sorted_trace() -> None:
    """Each from its own beginning; at one time the first trace comes first; conversations stay apart."""
    found = superpose(
        [arrivals(0.0, 2.0, conversation="a"), arrivals(1.0, 2.0, conversation="a"), arrivals(3.0)]
    )
    assert [(0.0, "0/a"), (1.0, "1/a"), (2.0, "0/a"), (2.0, "1/a"), (3.0, None)] == [
        (one.at_s, one.conversation) for one in found
    ]
    assert arrivals(1.0, conversation="a") == superpose([arrivals(1.0, conversation="a")])
    assert () == superpose([])


def test_a_window_begins_at_zero_and_excludes_its_end() -> None:
    """Of requests at 1, 2 and 3 s the window from 1 to 3 has two."""
    assert [0.0, 1.0] == times(cut(arrivals(0.0, 1.0, 2.0, 3.0), 1.0, 3.0))


def test_stretching_multiplies_times_only() -> None:
    """Half the time, the same requests."""
    assert arrivals(0.0, 0.5, 2.0) == stretch(arrivals(0.0, 1.0, 4.0), 0.5)


@pytest.mark.parametrize("factor", [0.0, -1.0, math.nan, math.inf])
def test_a_factor_is_a_number_above_zero(factor: float) -> None:
    """Others are refused by name."""
    with pytest.raises(TraceError, match="give a number above 0"):
        stretch(arrivals(0.0, 1.0), factor)
    with pytest.raises(TraceError, match="give a number above 0"):
        scale_rate(arrivals(0.0, 1.0), factor, np.random.default_rng(1))


@pytest.mark.parametrize(("factor", "expected"), [(0.25, 500), (1.0, 2000), (1.5, 3000), (3.0, 6000)])
def test_the_rate_is_multiplied_within_the_same_time(factor: float, expected: int) -> None:
    """Whole copies are exact, a fraction is drawn: within 5 %; the trace stays sorted and no longer."""
    found = scale_rate(arrivals(*map(float, range(2000))), factor, np.random.default_rng(3))
    assert pytest.approx(expected, rel=0.0 if factor == int(factor) else 0.05) == len(found)
    assert sorted(times(found)) == times(found)
    assert 0.0 <= found[0].at_s
    assert 2000.0 >= found[-1].at_s


def test_copies_do_not_repeat_the_peaks_at_their_time() -> None:
    """Of a burst of 50 in a quiet hour no second stands at the same time after doubling."""
    burst = arrivals(*(1800 + number / 10 for number in range(50)), 3600.0)
    found = scale_rate(burst, 2.0, np.random.default_rng(5))
    assert 102 == len(found)
    assert 50 == sum(1800 <= at_s < 1805 for at_s in times(found))


def test_a_copy_of_a_long_trace_keeps_the_hour_of_the_day() -> None:
    """The shift is at most an hour: what is busy at noon stays busy between twelve and one."""
    day = arrivals(0.0, *(12 * 3600 + number for number in range(100)), 86_400.0)
    found = scale_rate(day, 3.0, np.random.default_rng(7))
    assert 300 == sum(12 * 3600 <= at_s <= 13 * 3600 + 100 for at_s in times(found))


def test_copies_have_conversations_of_their_own() -> None:
    """A copy's conversation has another name, and one torn by the shift becomes two, each in order."""
    found = scale_rate(arrivals(0.0, 10.0, 20.0, 30.0, conversation="a"), 2.0, np.random.default_rng(2))
    assert {"a": 4, "a#1": 3, "a#1<": 1} == Counter(one.conversation for one in found)


def test_thinning_keeps_conversations_whole() -> None:
    """Each of 200 conversations of three turns is there with all of them, or not at all."""
    trace = superpose([arrivals(1.0, 2.0, 3.0, conversation="c") for _ in range(200)])
    turns = Counter(one.conversation for one in scale_rate(trace, 0.5, np.random.default_rng(1)))
    assert {3} == set(turns.values())
    assert 75 < len(turns) < 125


def test_a_trace_at_one_moment_cannot_be_copied() -> None:
    """It has no length to be shifted in; thinned it can be."""
    with pytest.raises(TraceError, match="all come at one time cannot be copied"):
        scale_rate(arrivals(0.0, 0.0), 2.0, np.random.default_rng(1))
    assert 2 >= len(scale_rate(arrivals(0.0, 0.0), 0.5, np.random.default_rng(1)))


def test_tiers_are_given_by_share() -> None:
    """Within 3 points of 4,000 requests; nothing else of a request changes."""
    trace = arrivals(*map(float, range(4000)))
    shares = {Tier.BATCH: 0.5, Tier.INTERACTIVE: 0.3, Tier.STANDARD: 0.2}
    found = set_tiers(trace, shares, np.random.default_rng(1))
    counts = Counter(one.tier for one in found)
    for tier, share in shares.items():
        assert pytest.approx(share, abs=0.03) == counts[tier] / 4000
    assert times(trace) == times(found)
    assert (
        4000
        == Counter(one.tier for one in set_tiers(trace, {Tier.BATCH: 1.0}, np.random.default_rng(1)))[
            Tier.BATCH
        ]
    )


def test_a_conversation_has_one_tier() -> None:
    """Its turns get what its first one got."""
    trace = superpose([arrivals(1.0, 2.0, 3.0, conversation="c") for _ in range(50)])
    found = set_tiers(trace, {Tier.BATCH: 0.5, Tier.INTERACTIVE: 0.5}, np.random.default_rng(1))
    assert 50 == len({(one.conversation, one.tier) for one in found})
    assert {Tier.BATCH, Tier.INTERACTIVE} == {one.tier for one in found}


@pytest.mark.parametrize(
    "shares", [{}, {Tier.BATCH: 0.5}, {Tier.BATCH: -0.5, Tier.STANDARD: 1.5}, {Tier.BATCH: math.nan}]
)
def test_shares_add_up_to_one(shares: dict[Tier, float]) -> None:
    """Others are refused, as they were given."""
    with pytest.raises(TraceError, match=r"give shares of 0 to 1 that add up to 1"):
        set_tiers(arrivals(0.0), shares, np.random.default_rng(1))


def test_the_same_seed_gives_the_same_trace() -> None:
    """And another seed another one."""
    trace = arrivals(*map(float, range(100)))

    def made(seed: int) -> object:
        rng = np.random.default_rng(seed)
        return set_tiers(scale_rate(trace, 1.5, rng), {Tier.BATCH: 0.5, Tier.STANDARD: 0.5}, rng)

    assert made(1) == made(1)
    assert made(1) != made(2)
