"""The families of requests: labels, buckets, what is there from the start, what never goes down."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from autoscaling.observations import Seen
from autoscaling.request_book import RequestBook
from autoscaling.request_fleet import Fleet
from autoscaling.request_line import Outcome
from autoscaling.types import EngineTotals, ReplicaReport, Role, Tier
from deployments.control_metrics import exposition
from deployments.request_metrics import Sources, request_families
from tests.autoscaling.reports import report
from tests.autoscaling.request_lines import STRICT, line, load, record
from tests.deployments.test_control_metrics import status

PAGE = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text(encoding="utf-8")
PARTS = ("_bucket", "_sum", "_count")


class Service:
    """What the controller has of requests, and a scrape of it."""

    def __init__(self) -> None:
        self.book, self.fleet = RequestBook(), Fleet()
        self.seen: dict[str, Seen] = {}

    def report(self, found: ReplicaReport, now: float = 0.0) -> None:
        self.seen[found.replica_id] = Seen(found, now)
        self.fleet.take(found, now)

    def scrape(self, now: float = 0.0) -> str:
        found = Sources(self.book, self.fleet, tuple(self.seen.values()), STRICT, 0, now)
        return exposition(status(), request_families(found)).decode()

    def samples(self, now: float = 0.0) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
        """Name and labels to value."""
        return {
            (one.name, tuple(sorted(one.labels.items()))): one.value
            for family in text_string_to_metric_families(self.scrape(now))
            for one in family.samples
            if one.name in names()
        }

    def value(self, name: str, now: float = 0.0, **labels: str) -> float | None:
        return self.samples(now).get((name, tuple(sorted(labels.items()))))


def rows() -> dict[str, list[str]]:
    """The table of requests: family to its type, labels and the rest."""
    table = PAGE.partition("\n## Requests\n")[2].partition("\n## ")[0]
    lines = [row.strip("|").split(" | ") for row in table.splitlines() if row.startswith("| `")]
    return {row[0].strip(" `"): [cell.strip() for cell in row[1:]] for row in lines}


def names() -> set[str]:
    """The names of all samples that the table allows."""
    found = set()
    for name, row in rows().items():
        found |= {f"{name}{part}" for part in PARTS} if row[0] == "histogram" else {name}
    return found


def ended(service: Service, *changes: dict[str, Any]) -> None:
    """Let requests end, and the engine have its word."""
    for fields in changes:
        seq = sum(service.book.counts.requests.values())
        service.book.take_records("a", [record(seq)])
        service.book.take_load("i", load(line(seq, **fields), waiting={Tier.BATCH: 2}), 0.0)
        service.book.settle(0.0, STRICT)


def full() -> Service:
    """One of everything."""
    service = Service()
    for drafted in (0, 40):
        totals = EngineTotals(drafts=drafted // 4, drafted=drafted, accepted=drafted // 2)
        service.report(replace(report(inflight=3), waiting=1, totals=totals))
    ended(service, {})
    return service


# --- names, labels, documents


def test_every_family_is_documented() -> None:
    """Each has a row in docs/metrics.md with its type, and no row is of a family that is not there."""
    text = full().scrape()
    there = dict(re.findall(r"^# TYPE (\S+) (\w+)$", text, re.MULTILINE))
    assert {name: row[0] for name, row in rows().items()} == {
        name: there[name] for name in there if name in rows()
    }
    others = re.findall(r"^\| `([\w:]+)` \|", PAGE.partition("\n## Requests\n")[0], re.MULTILINE)
    assert set(there) == set(rows()) | set(others)


def test_every_label_is_documented() -> None:
    """Its name, and its values where they are not a tier or a pool."""
    known = {*(tier.value for tier in Tier), *(role.value for role in Role)}
    for name, labels in full().samples():
        base = next((name.removesuffix(part) for part in PARTS if name.removesuffix(part) in rows()), name)
        documented = set(re.findall(r"`(\w+)`", rows()[base][1]))
        for label, value in labels:
            if label != "le":
                assert label in documented, name
                assert value in known | documented, name


def test_an_alert_names_only_families_that_exist() -> None:
    """In each expression of the page."""
    named = set(re.findall(r"(?:twinpool|vllm):?_?\w+", " ".join(re.findall(r"expr: (.*)", PAGE))))
    types = set(re.findall(r"^# TYPE (\S+)", full().scrape(), re.MULTILINE))
    assert {name for name in named if name.startswith("twinpool_")} <= types


# --- what is there from the start


def test_counters_begin_at_0_with_every_label() -> None:
    """And histograms; what is unknown has no sample."""
    found = Service().samples()
    unknown = {
        "twinpool_waiting_sequences",
        "twinpool_attainment_ratio",
        "twinpool_inflight_sequences",
        "twinpool_engine_waiting_sequences",
        "twinpool_draft_acceptance_ratio",
    }
    assert names() - unknown == {name for name, _ in found}
    assert {0.0} == set(found.values())
    count = [labels for name, labels in found if name == "twinpool_routes_total"]
    assert len(Role) * 10 == len(count)


def test_what_is_counted() -> None:
    """Each by its labels."""
    service = full()
    ended(
        service,
        {"outcome": Outcome.SHED, "pool": None},
        {"reason": "by_the_moon", "wider": True, "first_byte_s": 90.0},
    )
    value = service.value
    assert (2.0, 1.0) == (
        value("twinpool_requests_total", tier="standard", outcome="ok"),
        value("twinpool_requests_total", tier="standard", outcome="shed"),
    )
    assert (1.0, 1.0, 1.0) == (
        value("twinpool_routes_total", pool="plain", reason="tier_standard"),
        value("twinpool_routes_total", pool="plain", reason="other"),
        value("twinpool_wider_retries_total"),
    )
    assert (1.0, 2.0, pytest.approx(1 / 3)) == (
        value("twinpool_requests_judged_total", tier="standard", verdict="met"),
        value("twinpool_requests_judged_total", tier="standard", verdict="missed"),
        value("twinpool_attainment_ratio", tier="standard"),
    )
    assert value("twinpool_attainment_ratio", tier="batch") is None
    assert (2.0, 0.0) == (
        value("twinpool_waiting_sequences", tier="batch"),
        value("twinpool_waiting_sequences", tier="standard"),
    )
    assert (3.0, 1.0, 0.5) == (
        value("twinpool_inflight_sequences", pool="plain"),
        value("twinpool_engine_waiting_sequences", pool="plain"),
        value("twinpool_draft_acceptance_ratio"),
    )
    assert (10.0, 40.0, 20.0) == tuple(
        value(f"vllm:spec_decode_num_{name}_total") for name in ("drafts", "draft_tokens", "accepted_tokens")
    )


def test_a_silent_replica_has_no_load() -> None:
    """Its newest report is 3 s old: what it has in flight is unknown."""
    service = full()
    assert 3.0 == service.value("twinpool_inflight_sequences", 3.0, pool="plain")
    assert service.value("twinpool_inflight_sequences", 3.1, pool="plain") is None


# --- histograms


def test_long_times_have_buckets_of_their_own() -> None:
    """Case F7: 0.03, 3, 90 and 600 s are told apart; names say seconds, and sums are in seconds."""
    service = Service()
    ended(service, *({"first_byte_s": seconds} for seconds in (0.03, 3.0, 90.0, 600.0)))
    labels = {"tier": "standard", "pool": "plain"}
    cumulative = {
        bound: service.value("twinpool_request_ttft_seconds_bucket", le=bound, **labels)
        for bound in ("0.025", "0.05", "2.5", "5.0", "60.0", "120.0", "300.0", "600.0", "1000.0", "+Inf")
    }
    assert [0, 1, 1, 2, 2, 3, 3, 4, 4, 4] == list(cumulative.values())
    assert 693.03 == service.value("twinpool_request_ttft_seconds_sum", **labels)
    assert all(name.endswith("_seconds") for name, row in rows().items() if row[0] == "histogram")


def test_both_pools_share_their_buckets() -> None:
    """Case F2: pools whose replicas have different contexts are series of one family, each time once."""
    service = Service()
    for role, context in ((Role.SPECULATIVE, 2048), (Role.PLAIN, 131_072)):
        found = report(role.value, boot_id=role.value, role=role)
        service.report(replace(found, capabilities=replace(found.capabilities, max_model_len=context)))
        ended(service, {"pool": role, "tier": Tier.INTERACTIVE})
    bounds: dict[str, list[str]] = {}
    for name, labels in service.samples():
        named = dict(labels)
        if name == "twinpool_request_ttft_seconds_bucket" and named["tier"] == "interactive":
            bounds.setdefault(named["pool"], []).append(named["le"])
    assert ["plain", "speculative"] == sorted(bounds)
    assert bounds["plain"] == bounds["speculative"]
    text = service.scrape()
    for family in set(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE)):
        assert 1 == text.count(f"# TYPE {family} ")
    samples = [line for line in text.splitlines() if not line.startswith("#")]
    assert len(samples) == len({line.rpartition(" ")[0] for line in samples})


def test_a_replica_that_leaves_takes_its_series_and_no_count() -> None:
    """Case F2: gauges of a pool without replicas go away; counters stay and are not counted again."""
    service = Service()
    for drafted in (0, 40):
        service.report(
            replace(
                report("s", boot_id="b1", role=Role.SPECULATIVE, inflight=3),
                totals=EngineTotals(drafted=drafted, finished_generated_tokens=drafted),
            )
        )
    assert 3.0 == service.value("twinpool_inflight_sequences", pool="speculative")
    service.seen.clear()
    assert service.value("twinpool_inflight_sequences", pool="speculative") is None
    assert (40.0, 40.0) == (
        service.value("vllm:spec_decode_num_draft_tokens_total"),
        service.value("twinpool_generated_tokens_total", pool="speculative"),
    )
    service.report(replace(report("s", boot_id="b2", role=Role.SPECULATIVE), totals=EngineTotals(drafted=7)))
    assert 40.0 == service.value("vllm:spec_decode_num_draft_tokens_total")


def test_no_series_is_of_a_replica() -> None:
    """Case F4: 50 replicas make the scrape no larger than one does."""
    few, many = Service(), Service()
    few.report(report("r0"))
    for number in range(50):
        many.report(report(f"r{number}", boot_id=f"b{number}"))
    assert set(few.samples()) == set(many.samples())
    assert not any(label == "replica" for _, labels in many.samples() for label, _ in labels)


# --- counters and scrapes


def test_counters_never_go_down_between_scrapes() -> None:
    """Case F6: two ingresses, repeated polls, replicas that restart in place; ten scrapes."""
    service = Service()
    before: dict[Any, float] = {}
    for turn in range(10):
        for ingress in ("i", "j"):
            lines = [line(seq, id=f"{ingress}{seq}", engine_id=f"{ingress}{seq}") for seq in (turn, turn + 1)]
            service.book.take_load(ingress, load(*lines, lines_dropped=turn // 4), float(turn))
        found = report("a", turn, boot_id=f"boot-{turn // 3}")
        service.report(replace(found, totals=EngineTotals(drafted=10 * (turn % 3))), float(turn))
        service.book.settle(float(turn), STRICT)
        counters = {
            key: value
            for key, value in service.samples(float(turn)).items()
            if key[0].endswith(("_total", "_bucket", "_count", "_sum"))
        }
        assert all(counters[key] >= value for key, value in before.items())
        before = counters
    service.book.settle(100.0, STRICT)
    assert 22.0 == service.value("twinpool_requests_total", tier="standard", outcome="ok")


def test_a_second_exposition_is_no_duplicate() -> None:
    """Case F6: nothing is registered for good, so it can be built again."""
    service = full()
    assert service.scrape() == service.scrape()
    assert full().scrape() == service.scrape()
