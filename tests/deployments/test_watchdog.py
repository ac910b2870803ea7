"""Dead, hung, or alive."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployments.watchdog import Progress, limit_s, verdict

SECONDS = st.floats(0.0, 1e6)


@pytest.mark.parametrize(
    ("failure", "unfinished", "pending_since", "last_step_at", "longest_step_s", "now", "expected"),
    [
        # idle, for however long
        (None, 0, None, None, 0.0, 1e6, "alive"),
        (None, 0, None, 5.0, 0.1, 1e6, "alive"),
        (None, 0, 5.0, 5.0, 0.1, 1e6, "alive"),
        (None, 3, None, 5.0, 0.1, 1e6, "alive"),
        # work pending, no step yet
        (None, 1, 100.0, None, 0.0, 130.0, "alive"),
        (None, 1, 100.0, None, 0.0, 130.1, "hung"),
        # the last step was long before the work: the wait begins with the work
        (None, 1, 100.0, 10.0, 0.1, 129.0, "alive"),
        (None, 1, 100.0, 10.0, 0.1, 131.0, "hung"),
        # a step since: the wait begins with the step
        (None, 1, 100.0, 120.0, 0.1, 149.0, "alive"),
        (None, 1, 100.0, 120.0, 0.1, 151.0, "hung"),
        # slow, not hung: ten times the longest step
        (None, 9, 100.0, 120.0, 8.0, 199.0, "alive"),
        (None, 9, 100.0, 120.0, 8.0, 201.0, "hung"),
        # dead, whatever else
        ("exit 1", 0, None, None, 0.0, 0.0, "dead"),
        ("exit 1", 1, 100.0, 100.0, 0.1, 1e6, "dead"),
        ("", 0, None, None, 0.0, 0.0, "dead"),
    ],
)
def test_verdict(
    failure: str | None,
    unfinished: int,
    pending_since: float | None,
    last_step_at: float | None,
    longest_step_s: float,
    now: float,
    expected: str,
) -> None:
    """Dead when the engine says so; hung when work waits and no step came for the limit, here 30 s."""
    progress = Progress(failure, unfinished, pending_since, last_step_at, longest_step_s)
    assert expected == verdict(progress, 30.0, now).value


@pytest.mark.parametrize(
    ("longest_step_s", "hung_after_s", "expected"),
    [(0.0, 30.0, 30.0), (3.0, 30.0, 30.0), (3.1, 30.0, 31.0), (9.0, 30.0, 90.0), (0.05, 1.0, 1.0)],
)
def test_limit(longest_step_s: float, hung_after_s: float, expected: float) -> None:
    """The limit is the configured one, or ten times the longest step where that is more."""
    assert expected == limit_s(longest_step_s, hung_after_s)


def test_a_survived_stall_does_not_stretch_the_limit_without_end() -> None:
    """However long a step once took, the limit stays below four times the configured one."""
    assert limit_s(1000.0, 30.0) == 120.0


@given(since=st.none() | SECONDS, step=st.none() | SECONDS, longest=SECONDS, now=SECONDS, limit=SECONDS)
def test_an_idle_engine_is_never_hung(
    since: float | None, step: float | None, longest: float, now: float, limit: float
) -> None:
    """Without unfinished work no silence means anything."""
    assert verdict(Progress(None, 0, since, step, longest), limit, now).value == "alive"


@given(since=SECONDS, step=st.none() | SECONDS, longest=SECONDS, ahead=SECONDS, limit=st.floats(0.1, 1e4))
def test_hung_only_after_the_limit(
    since: float, step: float | None, longest: float, ahead: float, limit: float
) -> None:
    """No verdict `hung` before the configured time has passed since the work and the last step."""
    now = since + ahead
    found = verdict(Progress(None, 1, since, step, longest), limit, now).value
    if found == "hung":
        assert now - since > limit
        assert step is None or now - step > limit
