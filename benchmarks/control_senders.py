"""Ray actors that stand for a fleet: reports as replicas send them, and an ingress that fetches snapshots."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

import msgspec

from autoscaling.types import Role
from benchmarks.control_fleet import FLEET, INGRESS, ingress_load, report
from benchmarks.control_report import Fetched
from deployments.config import APP_NAME, CONTROLLER
from deployments.reporting import CALL_LIMIT_S
from deployments.serve_internals import by_value

LOST = "lost"  # no answer in time


@dataclass(slots=True)
class Sent:
    """What one sender's reports met with while it counted."""

    answers: dict[str, int]  # by the controller's word, or LOST
    seconds: float
    cpu_s: float  # of the sender's process


class Sender:
    """Replicas number `first`, `first + step`, ...; each has one report on its way at most."""

    def __init__(self, first: int, step: int) -> None:
        from ray import serve  # noqa: PLC0415

        self._handle = by_value(serve.get_deployment_handle(CONTROLLER, APP_NAME))
        half = FLEET // 2
        every = [(role, index) for role in Role for index in range(half)]
        self._replicas = every[first::step]
        self._seq: Counter[tuple[Role, int]] = Counter()
        self._answers: Counter[str] = Counter()

    async def run(self, rate: float, warm_s: float, count_s: float) -> Sent:
        """Send so many a second of the whole fleet's; the first `warm_s` seconds do not count."""
        await self._handle.admit.remote()  # connects; reports that wait for it would be late
        period, begin = FLEET / rate, time.monotonic()
        end = begin + warm_s + count_s
        async with asyncio.TaskGroup() as group:
            for number, replica in enumerate(self._replicas):
                phase = period * number / len(self._replicas)
                group.create_task(self._replica(replica, begin + phase, period, end))
            await asyncio.sleep(warm_s)
            self._answers.clear()
            counted, cpu_s = time.monotonic(), time.process_time()
            await asyncio.sleep(max(0.0, end - time.monotonic()))
            return Sent(dict(self._answers), time.monotonic() - counted, time.process_time() - cpu_s)

    async def _replica(self, replica: tuple[Role, int], at: float, period: float, end: float) -> None:
        while at < end:
            await asyncio.sleep(at - time.monotonic())
            self._seq[replica] += 1
            said = msgspec.to_builtins(report(*replica, self._seq[replica]))
            try:
                async with asyncio.timeout(CALL_LIMIT_S):
                    answer: str = await self._handle.report.remote(said)
            except Exception:  # as in a replica: it tries again
                answer = LOST
            self._answers[answer] += 1
            at = max(at + period, time.monotonic())


class Reader:
    """One ingress."""

    def __init__(self) -> None:
        from ray import serve  # noqa: PLC0415

        self._handle = serve.get_deployment_handle(CONTROLLER, APP_NAME)

    async def run(self, rate: float, warm_s: float, count_s: float) -> Fetched:
        """Fetch so many snapshots a second; the first `warm_s` seconds do not count."""
        found, begin = Fetched(), time.monotonic()
        at = begin
        while at < begin + warm_s + count_s:
            await asyncio.sleep(at - time.monotonic())
            asked = time.monotonic()
            load = msgspec.to_builtins(ingress_load(asked))
            try:
                async with asyncio.timeout(CALL_LIMIT_S):
                    snapshot: dict[str, Any] = await self._handle.snapshot.remote(INGRESS, load)
            except Exception:
                found.lost += asked >= begin + warm_s
            else:
                if asked >= begin + warm_s:
                    found.took_s.append(time.monotonic() - asked)
                    found.sizes.append(len(msgspec.json.encode(snapshot)))
                    found.replicas.append(len(snapshot["replicas"]))
                    found.ages_s += [view["age_s"] for view in snapshot["replicas"]]
            at += 1 / rate
        return found
