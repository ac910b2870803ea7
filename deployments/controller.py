"""The controller: takes the replicas' reports and publishes snapshots to the ingresses.

Thin IO around `autoscaling.observations`.  Moving capacity between the pools joins it here later.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

import msgspec
from ray import serve

from autoscaling.observations import Observations
from autoscaling.types import ReplicaReport
from deployments.config import APP_NAME
from deployments.status import pool_status

SERVE_STATUS_LIMIT_S = 2.0
FRESH_S = 3.0


class Controller:
    """One replica; every method is async and short."""

    async def __init__(self) -> None:  # type: ignore[misc]  # Serve awaits it
        # Without a state store the wall clock orders controller lives.
        self._epoch = time.time_ns() // 1_000_000
        self._observations = Observations(self._epoch, time.monotonic())
        self._dropped: dict[str, int] = {}

    async def report(self, report: dict[str, Any]) -> str:
        """Take one replica's report; answers what became of it."""
        taken = self._observations.take(msgspec.convert(report, ReplicaReport), time.monotonic())
        if taken != "taken":
            self._dropped[taken] = self._dropped.get(taken, 0) + 1
        return taken.value

    async def snapshot(self, ingress_id: str) -> dict[str, Any]:
        """The newest snapshot, for one ingress."""
        now = time.monotonic()
        self._observations.ingress(ingress_id, now)
        found: dict[str, Any] = msgspec.to_builtins(self._observations.snapshot(now))
        return found

    async def stop_taking(self) -> None:
        """Have the ingresses refuse new requests; open ones go on."""
        self._observations.stopping = True

    async def open_requests(self) -> int | None:
        """Requests open at all replicas by their newest reports; None while one is older than 3 s."""
        now = time.monotonic()
        newest = self._observations.newest()
        if any(now - seen.at > FRESH_S for seen in newest):
            return None
        return sum(seen.report.inflight for seen in newest)

    async def status(self) -> dict[str, Any]:
        """Pools and replicas as the controller knows them, joined with Serve's replica states."""
        states: dict[str, dict[str, int]] | None = None
        try:
            states = await asyncio.wait_for(asyncio.to_thread(_serve_states), SERVE_STATUS_LIMIT_S)
        except Exception:
            states = None  # unknown, and shown as null
        now = time.monotonic()
        self._observations.expire(now)
        return {
            "epoch": self._epoch,
            "dropped_reports": dict(self._dropped),
            "pools": pool_status(self._observations.newest(), states, now),
        }


def _serve_states() -> dict[str, dict[str, int]]:
    """Deployment name to replica state to count, by Serve's word."""
    application = serve.status().applications[APP_NAME]
    return {
        name: {getattr(state, "value", str(state)): count for state, count in found.replica_states.items()}
        for name, found in application.deployments.items()
    }
