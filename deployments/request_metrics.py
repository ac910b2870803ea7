"""Prometheus families of requests: outcomes, routes, times, attainment, and what the fleet's engines count.

A family has one set of buckets, whichever pool it counts, and no histogram has a label of a replica.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.utils import floatToGoString

from autoscaling.observations import Seen
from autoscaling.request_book import RequestBook, Rules
from autoscaling.request_fleet import Fleet
from autoscaling.request_histogram import Histogram
from autoscaling.types import Role, Tier

FRESH_S = 3.0  # an older load says nothing about now

_Label = TypeVar("_Label", bound=tuple[str, ...])


@dataclass(frozen=True, slots=True)
class Sources:
    """What the families are made of, at one moment of the controller's monotonic clock."""

    book: RequestBook
    fleet: Fleet
    seen: tuple[Seen, ...]  # every known replica's newest report
    rules: Rules
    records_lost: int
    now: float


def request_families(found: Sources) -> Iterator[Metric]:
    """Every family of requests; what is unknown has no sample."""
    yield from _counts(found)
    yield from _times(found)
    yield from _tiers(found)
    yield from _pools(found)
    yield from _drafts(found)


def _counts(found: Sources) -> Iterator[Metric]:
    counts = found.book.counts
    yield _counter("twinpool_requests", "Requests that ended, by how.", ("tier", "outcome"), counts.requests)
    yield _counter(
        "twinpool_routes", "Requests by the pool that took them, and why.", ("pool", "reason"), counts.routes
    )
    yield _counter(
        "twinpool_requests_judged",
        "Requests that count for attainment, and those that cannot be judged.",
        ("tier", "verdict"),
        counts.judged,
    )
    for name, words, value in (
        (
            "twinpool_wider_retries",
            "Requests that one replica refused with 400 and a wider one answered.",
            counts.wider_retries,
        ),
        (
            "twinpool_request_lines_dropped",
            "Requests that an ingress could not report, or not in a form that is known.",
            counts.lines_dropped,
        ),
        (
            "twinpool_request_lines_unjoined",
            "Requests whose engine's record did not come in time.",
            counts.unjoined,
        ),
        (
            "twinpool_request_records_lost",
            "Requests that could not be written to the records.",
            counts.unwritten + found.records_lost,
        ),
    ):
        yield CounterMetricFamily(name, words, value=value)


def _times(found: Sources) -> Iterator[Metric]:
    counts = found.book.counts
    both = ("tier", "pool")
    yield _histogram(
        "twinpool_request_ttft_seconds", "Arrival to first token of complete answers.", both, counts.ttft
    )
    yield _histogram(
        "twinpool_request_tpot_seconds",
        "Time per output token after the first, of complete answers.",
        both,
        counts.tpot,
    )
    for name, words, by_tier in (
        ("twinpool_request_duration_seconds", "Arrival to last byte of complete answers.", counts.duration),
        ("twinpool_request_waited_seconds", "Wait for room in an ingress.", counts.waited),
    ):
        yield _histogram(name, words, ("tier",), {(tier.value,): one for tier, one in by_tier.items()})


def _tiers(found: Sources) -> Iterator[Metric]:
    waiting = GaugeMetricFamily(
        "twinpool_waiting_sequences", "Sequences that wait in ingresses.", labels=("tier",)
    )
    ratio = GaugeMetricFamily(
        "twinpool_attainment_ratio",
        "Requests of the last five minutes that met their objectives, of all that count.",
        labels=("tier",),
    )
    for tier in Tier:
        picture = found.book.picture(tier, found.now, found.rules)
        for family, value in ((waiting, picture.queued), (ratio, picture.attainment)):
            if value is not None:
                family.add_metric((tier.value,), value)
    yield from (waiting, ratio)


def _pools(found: Sources) -> Iterator[Metric]:
    inflight = GaugeMetricFamily(
        "twinpool_inflight_sequences", "Sequences open at the replicas of a pool.", labels=("pool",)
    )
    waiting = GaugeMetricFamily(
        "twinpool_engine_waiting_sequences", "Sequences that wait inside engines.", labels=("pool",)
    )
    fresh = [one.report for one in found.seen if found.now - one.at <= FRESH_S]
    for role in Role:
        there = [report for report in fresh if report.role is role]
        for family, values in (
            (inflight, [report.inflight for report in there]),
            (waiting, [report.waiting for report in there if report.waiting is not None]),
        ):
            if values:
                family.add_metric((role.value,), sum(values))
    yield from (inflight, waiting)
    for name, words, by_pool in (
        ("twinpool_prompt_tokens", "Prompt tokens of finished sequences.", found.fleet.prompt_tokens),
        ("twinpool_generated_tokens", "Tokens of finished answers.", found.fleet.generated_tokens),
    ):
        yield _counter(name, words, ("pool",), {(role.value,): value for role, value in by_pool.items()})


def _drafts(found: Sources) -> Iterator[Metric]:
    fleet = found.fleet
    ratio = GaugeMetricFamily(
        "twinpool_draft_acceptance_ratio", "Accepted of drafted tokens of the fleet over the last minute."
    )
    if (accepted := fleet.acceptance(found.now)) is not None:
        ratio.add_metric((), accepted)
    yield ratio
    for name, words, value in (
        ("drafts", "Engine steps of a request that carried a draft.", fleet.drafts),
        ("draft_tokens", "Draft tokens proposed.", fleet.drafted),
        ("accepted_tokens", "Draft tokens accepted.", fleet.accepted),
    ):
        yield CounterMetricFamily(f"vllm:spec_decode_num_{name}", words, value=value)


def _counter(
    name: str, words: str, labels: tuple[str, ...], counts: Mapping[_Label, int]
) -> CounterMetricFamily:
    family = CounterMetricFamily(name, words, labels=labels)
    for key, value in counts.items():
        family.add_metric(_plain(key), value)
    return family


def _histogram(
    name: str, words: str, labels: tuple[str, ...], found: Mapping[_Label, Histogram]
) -> HistogramMetricFamily:
    family = HistogramMetricFamily(name, words, labels=labels)
    for key, one in found.items():
        bounds = (*map(floatToGoString, one.bounds), "+Inf")
        family.add_metric(_plain(key), list(zip(bounds, one.cumulative(), strict=True)), one.total_s)
    return family


def _plain(key: Iterable[str]) -> list[str]:
    """Labels without their enumerations: the text of a StrEnum is its value."""
    return [str(label) for label in key]
