"""What an estimate says of a value, with bounds, with one of them and without."""

from __future__ import annotations

import pytest

from autoscaling.profiling.findings import Estimate


@pytest.mark.parametrize(
    ("low", "high", "held"),
    [
        (2.0, 4.0, [False, True, True, True, False]),
        (None, 4.0, [True, True, True, True, False]),
        (2.0, None, [False, True, True, True, True]),
        (None, None, [False] * 5),
    ],
)
def test_what_may_be_the_true_value(low: float | None, high: float | None, held: list[bool]) -> None:
    """A bound that is missing beside the other one is open; without any nothing is known."""
    found = Estimate(3.0, low, high)

    assert held == [found.holds(value) for value in (1.9, 2.0, 3.0, 4.0, 4.1)]
