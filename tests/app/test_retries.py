"""How many requests may be sent a second time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.retries import RetryBudget


def granted(budget: RetryBudget, now: float, attempts: int) -> int:
    return sum(budget.allow(now) for _ in range(attempts))


@pytest.mark.parametrize(
    ("requests", "expected"),
    [(0, 3), (1, 3), (39, 3), (40, 4), (100, 10), (109, 10), (110, 11)],
)
def test_one_retry_per_ten_requests_and_at_least_three(requests: int, expected: int) -> None:
    """Retries are at most 10 % of the requests; a quiet service still gets three."""
    budget = RetryBudget()
    for _ in range(requests):
        budget.request(100.0)
    assert expected == granted(budget, 100.0, 50)


def test_the_window_slides() -> None:
    """Requests and retries count for 10 s."""
    budget = RetryBudget()
    for _ in range(100):
        budget.request(0.0)
    assert granted(budget, 0.0, 50) == 10
    assert granted(budget, 9.9, 50) == 0
    assert granted(budget, 10.0, 50) == 3
    assert granted(budget, 15.0, 50) == 0
    assert granted(budget, 20.0, 50) == 3


def test_a_no_is_not_recorded() -> None:
    """Asking in vain does not use up later retries."""
    budget = RetryBudget()
    assert granted(budget, 0.0, 1000) == 3
    assert granted(budget, 10.0, 3) == 3


def test_a_clock_that_went_back_changes_nothing() -> None:
    """Earlier times count as now."""
    budget = RetryBudget()
    for _ in range(40):
        budget.request(50.0)
    assert granted(budget, 10.0, 50) == 4


EVENTS = st.lists(st.tuples(st.floats(0.0, 3.0), st.booleans()), max_size=200)


@given(EVENTS)
def test_never_more_than_the_budget(events: list[tuple[float, bool]]) -> None:
    """At each grant, the retries of the last 10 s are within 10 % of its requests, or within three."""
    budget = RetryBudget()
    slot = 0
    requests: list[int] = []
    retries: list[int] = []
    for wait, is_request in events:
        slot += int(wait * 10)
        now = slot / 10 + 0.05  # in the middle of a slot: no rounding at its edges
        if is_request:
            budget.request(now)
            requests.append(slot)
            continue
        recent = sum(at > slot - 100 for at in requests)
        used = sum(at > slot - 100 for at in retries)
        allowed = budget.allow(now)
        assert allowed is (used < max(3, recent // 10))
        if allowed:
            retries.append(slot)
