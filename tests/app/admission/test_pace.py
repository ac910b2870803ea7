"""When a caller is told to come back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.admission.pace import MOST, Pace


def pace(served: int, *, until: float = 100.0, apart_s: float = 0.1) -> Pace:
    """`served` single sequences, the last one at `until`."""
    found = Pace()
    for index in reversed(range(served)):
        found.granted(until - index * apart_s)
    return found


@pytest.mark.parametrize(
    ("served", "ahead", "least_s", "expected"),
    [
        (100, 0, 1.0, 1),
        (100, 5, 1.0, 1),
        (100, 11, 1.0, 2),
        (100, 200, 1.0, 20),
        (100, 200, 30.0, 30),
        (100, 99_999, 1.0, 120),
        (100, 0, 500.0, 120),
        (100, 0, 0.0, 1),
        (100, 0, 2.5, 3),
        (5, 10, 1.0, 20),
        (0, 0, 1.0, 1),
        (0, 3, 1.0, 30),
    ],
)
def test_the_answer(served: int, ahead: int, least_s: float, expected: int) -> None:
    """Those ahead at the pace of the last ten seconds, up to a whole second, 1..120, at least the least."""
    assert expected == pace(served).retry_after_s(ahead, least_s, 100.0)


def test_what_is_older_than_ten_seconds_is_forgotten() -> None:
    """The pace is that of late."""
    found = pace(50, until=100.0)
    assert 10 == found.retry_after_s(50, 1.0, 105.0)
    assert 120 == found.retry_after_s(50, 1.0, 120.0)


def test_a_request_counts_by_its_sequences() -> None:
    """Those ahead are counted in sequences, too."""
    found = Pace()
    found.granted(100.0, sequences=20)
    assert 5 == found.retry_after_s(10, 1.0, 100.0)


def test_a_full_memory_is_a_shorter_window() -> None:
    """At more than 400 requests a second the newest ones tell the pace, not ten seconds."""
    found = pace(3 * MOST, apart_s=0.001)
    assert 5 == found.retry_after_s(4800, 1.0, 100.0)


@given(
    st.lists(st.tuples(st.floats(0, 20), st.integers(1, 128)), max_size=50),
    st.integers(0, 2000),
    st.floats(0, 1000),
)
def test_it_is_a_whole_number_and_grows(served: list[tuple[float, int]], ahead: int, least_s: float) -> None:
    """1..120, never below the least, never less for more that wait."""
    found = Pace()
    for at, sequences in sorted(served):
        found.granted(at, sequences)
    answer, later = (found.retry_after_s(count, least_s, 20.0) for count in (ahead, ahead + 7))
    assert isinstance(answer, int)
    assert 1 <= answer <= later <= 120
    assert answer >= min(120.0, least_s)
