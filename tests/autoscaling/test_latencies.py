"""Percentiles and mean length over the last minute of finished requests."""

from __future__ import annotations

from dataclasses import replace

import pytest

from autoscaling.latencies import Latencies
from autoscaling.routing_rules import PoolSpeed
from autoscaling.types import FinishedRequest, Role
from tests.autoscaling.reports import finished_request

PLAIN = Role.PLAIN


def finished(
    *,
    queued_s: float = 0.0,
    prefill_s: float = 0.1,
    decode_s: float = 0.6,
    tokens: int = 7,
    reason: str = "stop",
) -> FinishedRequest:
    """One request: by default 0.1 s to its first token and 0.1 s for each further one."""
    return replace(
        finished_request("r"),
        queued_s=queued_s,
        prefill_s=prefill_s,
        decode_s=decode_s,
        generated_tokens=tokens,
        finish_reason=reason,
    )


def found(latencies: Latencies, now: float, role: Role = PLAIN) -> tuple[float | None, float | None]:
    return latencies.ttft_p95_s(role, now), latencies.tpot_p95_s(role, now)


@pytest.mark.parametrize(("count", "known"), [(0, False), (19, False), (20, True)])
def test_few_requests_say_nothing(count: int, known: bool) -> None:
    """A 95th percentile of fewer than 20 requests is unknown, not zero."""
    latencies = Latencies()
    latencies.take(PLAIN, [finished()] * count, 0.0)
    assert (pytest.approx((0.1, 0.1)) if known else (None, None)) == found(latencies, 0.0)


def test_queueing_counts_as_waiting_for_the_first_token() -> None:
    """TTFT is queue plus prefill; TPOT is the decode time over the tokens after the first."""
    latencies = Latencies()
    latencies.take(PLAIN, [finished(queued_s=0.5, prefill_s=0.25, decode_s=2.0, tokens=5)] * 20, 0.0)
    assert (0.75, 0.5) == found(latencies, 0.0)


def test_the_slowest_twentieth_counts() -> None:
    """Of 100 requests, 6 slow ones are seen and 4 are not."""
    for slow, expected in ((4, 0.1), (6, 3.0)):
        latencies = Latencies()
        latencies.take(PLAIN, [finished()] * (100 - slow) + [finished(prefill_s=3.0)] * slow, 0.0)
        assert pytest.approx(expected) == latencies.ttft_p95_s(PLAIN, 0.0)


@pytest.mark.parametrize(("now", "known"), [(60.0, True), (60.01, False), (1e6, False)])
def test_only_the_last_minute_counts(now: float, known: bool) -> None:
    """Old requests are forgotten, and with them what they said."""
    latencies = Latencies()
    latencies.take(PLAIN, [finished()] * 20, 0.0)
    assert known is (latencies.ttft_p95_s(PLAIN, now) is not None)
    assert known is (latencies.tpot_p95_s(PLAIN, now) is not None)


@pytest.mark.parametrize("request_", [finished(reason="abort"), finished(tokens=0)])
def test_requests_without_an_answer_say_nothing(request_: FinishedRequest) -> None:
    """A caller who went away, and an answer without a token, are no latency."""
    latencies = Latencies()
    latencies.take(PLAIN, [request_] * 50, 0.0)
    assert (None, None) == found(latencies, 0.0)


def test_one_token_has_no_time_per_further_token() -> None:
    """It still waited for its first."""
    latencies = Latencies()
    latencies.take(PLAIN, [finished(tokens=1, decode_s=0.0)] * 20, 0.0)
    assert (0.1, None) == found(latencies, 0.0)


def test_the_pools_are_apart() -> None:
    """What one pool's engines say is not the other's."""
    latencies = Latencies()
    latencies.take(PLAIN, [finished()] * 20, 0.0)
    assert (None, None) == found(latencies, 0.0, Role.SPECULATIVE)


def test_the_newest_2000_are_kept() -> None:
    """Under much load older ones go first, inside the minute too."""
    latencies = Latencies()
    latencies.take(PLAIN, [finished(prefill_s=9.0)] * 2000, 0.0)
    latencies.take(PLAIN, [finished()] * 2000, 1.0)
    assert pytest.approx(0.1) == latencies.ttft_p95_s(PLAIN, 1.0)


def test_the_speed_of_a_pool() -> None:
    """Medians and 95th percentiles of both times, and the mean length of an answer."""
    latencies = Latencies()
    slow = [finished(prefill_s=1.0, decode_s=12.0, tokens=13)] * 40
    latencies.take(PLAIN, [finished()] * 60 + slow, 0.0)
    found = latencies.speed(PLAIN, 0.0)
    assert pytest.approx((0.1, 1.0, 0.1, 1.0, 9.4)) == (
        found.ttft_p50_s,
        found.ttft_p95_s,
        found.tpot_p50_s,
        found.tpot_p95_s,
        found.answer_tokens,
    )


@pytest.mark.parametrize("count", [0, 19])
def test_few_requests_have_no_speed(count: int) -> None:
    """Unknown, not zero."""
    latencies = Latencies()
    latencies.take(PLAIN, [finished()] * count, 0.0)
    assert PoolSpeed() == latencies.speed(PLAIN, 0.0)


def test_answers_of_one_token_have_a_length() -> None:
    """And a time to their only token."""
    latencies = Latencies()
    latencies.take(PLAIN, [finished(tokens=1, decode_s=0.0)] * 20, 0.0)
    found = latencies.speed(PLAIN, 0.0)
    assert (0.1, None, 1.0) == (found.ttft_p50_s, found.tpot_p50_s, found.answer_tokens)


@pytest.mark.parametrize(("later", "expected"), [(0.0, 0.1), (0.9, 0.1), (1.0, 3.0)])
def test_a_speed_is_kept_for_a_second(later: float, expected: float) -> None:
    """Every ingress asks four times a second; what came meanwhile is seen after a second."""
    latencies = Latencies()
    latencies.take(PLAIN, [finished()] * 20, 10.0)
    assert pytest.approx(0.1) == latencies.speed(PLAIN, 10.0).ttft_p95_s
    latencies.take(PLAIN, [finished(prefill_s=3.0)] * 200, 10.0)
    assert pytest.approx(expected) == latencies.speed(PLAIN, 10.0 + later).ttft_p95_s


def test_a_tick_sees_what_came_since_the_last() -> None:
    """At the same moment too: the percentiles of a tick are never a second old."""
    latencies = Latencies()
    latencies.take(PLAIN, [finished()] * 20, 10.0)
    assert pytest.approx(0.1) == latencies.ttft_p95_s(PLAIN, 10.0)
    latencies.take(PLAIN, [finished(prefill_s=3.0)] * 200, 10.0)
    assert pytest.approx(3.0) == latencies.ttft_p95_s(PLAIN, 10.0)


def test_an_old_speed_ends_with_its_minute() -> None:
    """Without new requests it becomes unknown."""
    latencies = Latencies()
    latencies.take(PLAIN, [finished()] * 20, 0.0)
    latencies.speed(PLAIN, 0.0)
    assert PoolSpeed() == latencies.speed(PLAIN, 60.5)
