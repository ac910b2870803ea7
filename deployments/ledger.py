"""The controller's requests: lines and records in, rules for routing, pictures, metrics and files out.

The event loop and the disk live here; what a line means is `autoscaling.request_book`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Iterable, Iterator
from typing import Any

from prometheus_client.core import Metric

from autoscaling.left_out import Told
from autoscaling.mixed_versions import read_load
from autoscaling.observations import Seen
from autoscaling.profile_match import Served
from autoscaling.request_book import JOIN_S, RequestBook, Rules
from autoscaling.request_fleet import Fleet
from autoscaling.request_record import as_fields
from autoscaling.routing_rules import RoutingRules
from autoscaling.rules_of_policy import routing_rules
from autoscaling.types import FinishedRequest, IngressLoad, ReplicaReport, Role, Tier
from deployments.control_loop import ControlLoop
from deployments.control_memory import ControlMemory
from deployments.policy_use import acting_document
from deployments.request_metrics import Sources, request_families

logger = logging.getLogger("ray.serve")

WRITTEN_EVERY_S = 1.0  # a report's time


class Ledger:
    """One life of the controller; `start` begins to write down, `close` ends it."""

    def __init__(self, loop: ControlLoop, kept: ControlMemory) -> None:
        self.book = RequestBook()
        self._fleet = Fleet()
        self._told = Told()
        self._loop = loop
        self._kept = kept
        self._writing: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to write down requests that ended."""
        self._writing = asyncio.create_task(self._write(), name="requests")

    async def close(self) -> None:
        """Write down the rest; nobody will report to this life any more."""
        if self._writing is not None:
            self._writing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._writing
        self.book.settle(time.monotonic() + 2 * JOIN_S, self._tiers())
        await self.keep()

    def take_report(self, report: ReplicaReport, new: Iterable[FinishedRequest], now: float) -> None:
        """Take a replica's counters, and those of its records that were not known."""
        self.book.take_records(report.replica_id, new)
        self._fleet.take(report, now)

    def take_load(self, ingress_id: str, load: dict[str, Any], now: float) -> IngressLoad:
        """Take what an ingress says; what cannot be understood of it is told, and left out.

        One of another version must not cost an ingress its snapshot; a line that is left out is counted.
        """
        read = read_load(load)
        for problem in self._told.fresh(read.problems):
            logger.warning(f"what an ingress says is not understood: {problem}")
        self.book.take_load(ingress_id, read.load, now, read.unread)
        self.book.settle(now, self._tiers())
        return read.load

    def rules(self, now: float) -> RoutingRules:
        """What the ingresses obey: the policy that acts, the profile, and what was seen of late."""
        state, loop = self._loop.state, self._loop
        return routing_rules(
            acting_document(state, loop.default),
            state.profile,
            state.served,
            {role: loop.latencies.speed(role, now) for role in Role},
            self.book.gains.tokens_per_step(now),
        )

    def tiers(self, now: float) -> dict[str, Any]:
        """The tiers' part of the status JSON."""
        rules, found = self._tiers(), {}
        for tier in Tier:
            picture = self.book.picture(tier, now, rules)
            found[tier.value] = {
                "attainment": picture.attainment,
                "ttft_p95_seconds": picture.ttft_p95_s,
                "tpot_p95_seconds": picture.tpot_p95_s,
                "queued": picture.queued,
            }
        return found

    def families(self, seen: tuple[Seen, ...], now: float) -> Iterator[Metric]:
        """Metrics of requests, beside the newest reports."""
        lost = self._kept.requests_lost
        return request_families(Sources(self.book, self._fleet, seen, self._tiers(), lost, now))

    async def keep(self) -> None:
        """Write down what ended since the last time."""
        await self._kept.keep_requests([as_fields(record) for record in self.book.drain()])

    async def _write(self) -> None:
        while True:
            await asyncio.sleep(WRITTEN_EVERY_S)
            try:
                self.book.settle(time.monotonic(), self._tiers())
                await self.keep()
            except Exception:
                logger.exception("requests that ended could not be written down")

    def _tiers(self) -> Rules:
        """The tiers' objectives of the policy that acts."""
        return routing_rules(acting_document(self._loop.state, self._loop.default), None, Served(), {}).tiers
