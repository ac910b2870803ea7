"""Buckets of durations."""

from __future__ import annotations

from math import inf, nan

import pytest

from autoscaling.request_histogram import SECONDS, SECONDS_PER_TOKEN, Histogram
from deployments.config import IngressSettings


def test_long_and_short_times_have_buckets_of_their_own() -> None:
    """Case F7: 0.03, 3, 90 and 600 s fall into four buckets; the last bound is above the longest answer."""
    places = []
    for seconds in (0.03, 3.0, 90.0, 600.0):
        histogram = Histogram(SECONDS)
        histogram.observe(seconds)
        places.append(histogram.cumulative().index(1))
    assert 4 == len(set(places))
    assert len(SECONDS) not in places
    assert SECONDS[-1] > IngressSettings().longest_generation_s


def test_times_per_token_have_finer_buckets() -> None:
    """Case F7: from a millisecond, since a fast engine makes a token in a few of them."""
    assert (0.001, 10.0) == (SECONDS_PER_TOKEN[0], SECONDS_PER_TOKEN[-1])
    for bounds in (SECONDS, SECONDS_PER_TOKEN):
        assert sorted(set(bounds)) == list(bounds)


def test_a_bound_belongs_to_its_bucket() -> None:
    """Counts are cumulative, the last one is all, and the sum is of the values themselves."""
    histogram = Histogram((1.0, 2.0))
    for seconds in (1.0, 1.5, 2.0, 7.0):
        histogram.observe(seconds)
    assert (1, 3, 4) == histogram.cumulative()
    assert 11.5 == histogram.total_s


@pytest.mark.parametrize("value", [nan, inf, -inf, -0.001])
def test_what_is_no_duration_is_left_out(value: float) -> None:
    """One such value would spoil the sum for ever."""
    histogram = Histogram((1.0,))
    histogram.observe(value)
    assert ((0, 0), 0.0) == (histogram.cumulative(), histogram.total_s)
