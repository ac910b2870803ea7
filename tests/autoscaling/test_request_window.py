"""Sums and percentiles of the last minutes."""

from __future__ import annotations

import pytest

from autoscaling.request_window import BUCKET_S, WINDOW_S, WindowSums, WindowValues


def test_sums_leave_the_window() -> None:
    """Five minutes, in steps of five seconds."""
    sums = WindowSums(2)
    sums.add(0.0, 1, 10)
    sums.add(4.9, 1, 10)
    sums.add(5.0, 2, 20)
    assert (4, 40) == sums.sums(299.9)
    assert (2, 20) == sums.sums(300.0)
    assert (0, 0) == sums.sums(305.0)


def test_memory_does_not_grow_with_the_rate() -> None:
    """At most one entry per step, however much is added and nobody asks."""
    sums = WindowSums(1)
    for second in range(2000):
        for _ in range(3):
            sums.add(float(second), 1)
    assert WINDOW_S / BUCKET_S == len(sums._sums)
    assert (900,) == sums.sums(1999.0)


@pytest.mark.parametrize(("count", "known"), [(0, False), (19, False), (20, True)])
def test_few_values_say_nothing(count: int, known: bool) -> None:
    """A 95th percentile of fewer than 20 is unknown."""
    values = WindowValues()
    for _ in range(count):
        values.add(0.0, 0.5)
    assert (0.5 if known else None) == values.p95(0.0)


def test_old_values_are_forgotten() -> None:
    """After five minutes, and above 1,000 the oldest first."""
    values = WindowValues()
    for _ in range(1000):
        values.add(0.0, 9.0)
    for _ in range(1000):
        values.add(1.0, 0.5)
    assert 0.5 == values.p95(301.0)
    assert values.p95(301.1) is None
