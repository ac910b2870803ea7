"""The controller deployment: takes reports, publishes snapshots and the plan, takes an operator's orders.

Wiring only: what it decides is `autoscaling`, how a tick goes is `control_loop`.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from pathlib import Path
from typing import Any

import msgspec

from autoscaling.finished import Finished
from autoscaling.observations import Observations, Taken
from autoscaling.types import SCHEMA, ReplicaReport, Role, ServeStates
from deployments import serve_internals
from deployments.config import ControllerSettings
from deployments.control_loop import ControlLoop, Ports
from deployments.control_memory import ControlMemory
from deployments.control_metrics import exposition
from deployments.control_status import control_status, pool_words
from deployments.default_policy import default_policy_text
from deployments.ledger import Ledger
from deployments.orders import Orders
from deployments.policy_source import FixedPolicy, PolicySource
from deployments.policy_use import acting_document
from deployments.profile_source import ProfileSource
from deployments.request_metrics import FRESH_S
from deployments.serve_look import serve_states
from deployments.status import pool_status


class Controller:
    """One replica; every method is async and short."""

    async def __init__(self) -> None:  # type: ignore[misc]  # Serve awaits it
        self._settings = ControllerSettings.from_env()
        self._kept = ControlMemory(self._settings, time.time)
        epoch = await asyncio.to_thread(self._kept.open)
        self._observations = Observations(epoch, time.monotonic())
        path, profile = self._settings.policy, self._settings.profile
        source = (
            FixedPolicy(default_policy_text(self._settings)) if path is None else PolicySource(Path(path))
        )
        self._loop = ControlLoop(
            self._settings,
            self._observations,
            self._kept,
            Ports(
                look=_Look(),
                poll=source.poll,
                now=time.monotonic,
                wall=time.time,
                profile=ProfileSource(None if profile is None else Path(profile)),
            ),
        )
        await asyncio.to_thread(self._loop.restore)
        self._ledger = Ledger(self._loop, self._kept)
        self._orders = Orders(self._settings, self._loop, self._kept, self._ledger.book, time.time)
        self._finished = Finished()
        self._dropped: dict[str, int] = {}
        self._ledger.start()
        self._ticking = asyncio.create_task(self._loop.run(), name="control")

    # --- replicas ----------------------------------------------------------------------------------

    async def report(self, report: dict[str, Any]) -> str:
        """Take one replica's report; answers what became of it."""
        taken, now = Taken.SCHEMA, time.monotonic()
        if report.get("schema") == SCHEMA:  # else nobody knows what its fields mean
            found = msgspec.convert(report, ReplicaReport)
            taken = self._observations.take(found, now)
        if taken is Taken.TAKEN:
            new = self._finished.take(found.boot_id, found.finished)
            self._loop.latencies.take(found.role, new, now)
            self._ledger.take_report(found, new, now)
        else:
            self._dropped[taken] = self._dropped.get(taken, 0) + 1
        return taken.value

    async def admit(self) -> bool:
        """Whether a new replica may call itself running: Serve's targets are the plan's.

        Before that a new application would be declared ready at Serve's own minimum.
        """
        return self._loop.actuated

    # --- ingresses ---------------------------------------------------------------------------------

    async def snapshot(self, ingress_id: str, load: dict[str, Any] | None = None) -> dict[str, Any]:
        """The newest snapshot, for one ingress, which says what its callers want and what has ended."""
        now, state = time.monotonic(), self._loop.state
        self._observations.ingress(ingress_id, now)
        if load is not None and load.get("schema") == SCHEMA:
            said = self._ledger.take_load(ingress_id, load, now)
            self._loop.demand.take(ingress_id, said, now)
            if said.epoch is not None and said.epoch > self._observations.epoch:
                self._observations.succeed(said.epoch, now)
        found: dict[str, Any] = msgspec.to_builtins(
            self._observations.snapshot(
                now,
                None if state.policy is None else state.policy.pools,
                acting_document(state, self._loop.default).spec.overload.retry_after_seconds,
                self._ledger.rules(now),
            )
        )
        return found

    # --- Ray Serve ---------------------------------------------------------------------------------

    async def record_autoscaling_stats(self) -> dict[str, float]:
        """The plan, which `deployments.actuator` applies inside Serve's own controller."""
        return self._loop.plan()

    async def check_health(self) -> None:
        """Serve asks; a controller that was succeeded does nothing more, and has to be replaced."""
        if self._kept.fenced:
            raise RuntimeError(f"this controller is to be replaced: {self._kept.problem}")

    # --- operators and the command line ------------------------------------------------------------

    async def command(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """An operator's order or question."""
        return await self._orders.take(name, arguments)

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
        """Everything the controller knows; what it does not know is None."""
        now, wall = time.monotonic(), time.time()
        self._observations.expire(now)
        serve, state = self._loop.serve, self._loop.state
        states = None if serve is None else {role.value: pool.states for role, pool in serve.pools.items()}
        rules = None if state.policy is None else state.policy.pools
        pools = pool_status(self._observations.newest(), states, rules, now)
        for role in Role:
            pools[role.value] |= pool_words(state, role, serve, now)
        return {
            "epoch": self._observations.epoch,
            "dropped_reports": dict(self._dropped),
            "state_store": self._kept.describe(),
            "store_problem": self._kept.problem,
            "finished": msgspec.to_builtins(self._finished.totals),
            "pools": pools,
            "tiers": self._ledger.tiers(now),
            "profile": self._loop.profile_status(),
            **control_status(self._settings, state, serve, self._loop.default, now=now, wall=wall),
        }

    async def metrics(self) -> str:
        """The fleet's metrics in Prometheus' text format."""
        more = self._ledger.families(self._observations.newest(), time.monotonic())
        return exposition(await self.status(), more).decode()

    async def __del__(self) -> None:
        """End the loop first: a successor may already be at work."""
        if hasattr(self, "_ticking"):
            self._loop.stop()
            self._ticking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._ticking
            await self._ledger.close()
            self._kept.close()


class _Look:
    """Asks Ray Serve, one question at a time: one that hangs must not be joined by others."""

    def __init__(self) -> None:
        self._asking = threading.Lock()

    def __call__(self) -> ServeStates | None:
        if not self._asking.acquire(blocking=False):
            return None
        try:
            return serve_states(serve_internals.details(), time.monotonic())
        finally:
            self._asking.release()
