"""The replica: one engine behind its own HTTP endpoint, watched, reported and drained.

Serve gives it life, place and health; requests reach it directly from the ingresses.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import time

import ray
from ray import serve
from ray.serve.handle import DeploymentHandle

from autoscaling.types import FinishedRequest, ReplicaReport, ReplicaState
from deployments import errors
from deployments.config import PoolSettings
from deployments.core_lease import lease_cores
from deployments.engine import EngineStartError
from deployments.errors import Code, ErrorAnswer
from deployments.gate import Gate, GateIdentity
from deployments.process_tree import EngineRecord, ProcessMark, engine_processes, kill, orphans, wait_gone
from deployments.proof import prove
from deployments.replica_server import ReplicaServer
from deployments.reporting import Reporter
from deployments.serve_internals import by_value, log_handler_fault
from deployments.start_engine import make_engine
from deployments.watchdog import Progress, Verdict, verdict

logger = logging.getLogger("ray.serve")

WATCH_PERIOD_S = 0.25
LATE_S = 1.0  # a watch that comes so much later than planned starts its window anew
ORPHAN_WAIT_S = 15.0  # Ray's process-group cleanup and our plugin need up to 10 s
ADMIT_PERIOD_S = 0.2
ADMIT_LIMIT_S = 20.0  # without a controller a replica is better than none
FLUSH_S = 3.0  # for error events on open streams to leave, before the process ends


class Replica:
    """One replica of a pool; its settings come from the deployment's environment."""

    async def __init__(self, controller: DeploymentHandle) -> None:  # type: ignore[misc]  # Serve awaits it
        self._settings = PoolSettings.from_env()
        self._id: str = serve.get_replica_context().replica_id.unique_id
        self._boot_id = secrets.token_hex(8)
        self._token = secrets.token_urlsafe(24)
        self._state = ReplicaState.RUNNING
        self._pending_since: float | None = None
        self._controller = controller
        await asyncio.to_thread(_refuse_beside_orphans)
        # A constructor that fails leaves nothing behind: its process outlives it by a second or two, and
        # a core still leased then would have the next replica share another one's core for good.
        async with contextlib.AsyncExitStack() as undo:
            self._lease = lease_cores(self._settings.cores_per_replica)
            undo.callback(self._lease.release)
            self._record = EngineRecord(self._id)
            undo.callback(self._record.remove)
            # Before the engine: a range without a free port is found at once.
            self._server = ReplicaServer(node_address(), self._settings.port_range)
            undo.push_async_callback(self._server.stop)
            self._engine = await make_engine(self._settings, self._lease.cores, self._lease.oversubscribed)
            undo.push_async_callback(self._engine.stop)
            await self._start()
            undo.pop_all()

    async def _start(self) -> None:
        began = time.monotonic()
        mark = ProcessMark.of(os.getpid())
        assert mark is not None
        await self._engine.start()
        self._record.write(mark, engine_processes(os.getpid()))
        await prove(self._engine, self._settings.engine)
        fault = log_handler_fault()
        if fault is not None:
            raise EngineStartError(
                f"starting the engine broke Serve's log handler ({fault}); with it a restart of the "
                "Serve controller would stop this replica: no dictConfig may run in a replica"
            )
        identity = GateIdentity(self._id, self._token, self._settings.role)
        self._gate = Gate(identity, self._engine.app, self._settings.hard_limit)
        await self._server.serve(self._gate)
        await self._admitted()
        self._reporter = Reporter(self._report, by_value(self._controller).report.remote)
        self._engine.recorder.on_finished = self._reporter.finished
        self._reporter.start()
        self._watch_task = asyncio.create_task(self._watch(), name="watchdog")
        logger.info(f"{self._settings.role} replica {self._id} ready in {time.monotonic() - began:.1f} s")

    async def _admitted(self) -> None:
        """Wait until Ray Serve aims at the sizes of the plan, not at its own minimum.

        An application is called running once every pool has as many replicas as Serve aims at.
        """
        deadline = time.monotonic() + ADMIT_LIMIT_S
        while time.monotonic() < deadline:
            with contextlib.suppress(Exception):
                async with asyncio.timeout(1.0):
                    if await self._controller.admit.remote():
                        return
            await asyncio.sleep(ADMIT_PERIOD_S)
        logger.warning(f"replica {self._id}: no controller admits it after {ADMIT_LIMIT_S:.0f} s, going on")

    def _report(self, seq: int, finished: tuple[FinishedRequest, ...]) -> ReplicaReport:
        recorder = self._engine.recorder
        gauges = recorder.gauges
        capabilities = self._engine.capabilities
        return ReplicaReport(
            replica_id=self._id,
            boot_id=self._boot_id,
            seq=seq,
            pool=self._settings.role.value,
            role=self._settings.role,
            node_id=ray.get_runtime_context().get_node_id(),
            host=self._server.host,
            port=self._server.port,
            token=self._token,
            state=self._state,
            pid=os.getpid(),
            soft_limit=self._settings.soft_limit,
            hard_limit=self._settings.hard_limit,
            inflight=self._gate.inflight,
            running=gauges.running,
            waiting=gauges.waiting,
            kv_cache_usage=gauges.kv_cache_usage,
            draft_length=capabilities.draft_length_max,
            capabilities=capabilities,
            totals=recorder.totals,
            finished=finished,
        )

    async def _watch(self) -> None:
        """Ask for a verdict until the engine is condemned."""
        now = time.monotonic()
        while True:
            last = now
            await asyncio.sleep(WATCH_PERIOD_S)
            now = time.monotonic()
            if now - last > LATE_S:
                # This process stood still itself and has not read what the engine said meanwhile.
                self._pending_since = None
            unfinished = self._engine.unfinished()
            if unfinished == 0:
                self._pending_since = None
            elif self._pending_since is None:
                self._pending_since = now
            recorder = self._engine.recorder
            progress = Progress(
                failure=self._engine.failure(),
                unfinished=unfinished,
                pending_since=self._pending_since,
                last_step_at=recorder.gauges.last_step_at,
                longest_step_s=recorder.totals.longest_step_s,
            )
            found = verdict(progress, self._settings.hung_after_s, now)
            if found is not Verdict.ALIVE:
                await self._condemn(found, progress.failure)
                return

    async def _condemn(self, found: Verdict, why: str | None) -> None:
        """One error event on every open stream, kill the engine, end this process."""
        self._state = ReplicaState.FAILED
        logger.error(
            f"engine of replica {self._id} is {found} ({why or 'no step with work pending'}): replacing it"
        )
        self._gate.break_open(_condemned(found))
        kill(engine_processes(os.getpid()))
        with contextlib.suppress(Exception):
            await self._reporter.push()
        await self._until_idle(FLUSH_S)
        await asyncio.sleep(0.1)  # for the last bytes to leave the socket
        self._record.remove()
        # Serve sees a dead actor at the next health check; waiting to be found unhealthy takes longer.
        os._exit(1)

    async def _until_idle(self, limit_s: float) -> bool:
        deadline = time.monotonic() + limit_s
        while self._gate.inflight > 0 and time.monotonic() < deadline:
            await asyncio.sleep(0.05)
        return self._gate.inflight == 0

    async def check_health(self) -> None:
        """Raise when the engine has been condemned; Serve then replaces this replica."""
        if self._state is ReplicaState.FAILED:
            raise RuntimeError(f"the engine of replica {self._id} is dead or hung")

    async def __del__(self) -> None:
        """Drain: refuse new work, let the open streams end, then end the engine."""
        if not hasattr(self, "_watch_task"):
            return  # never came up; the constructor has cleaned up
        if self._state is ReplicaState.FAILED:
            return  # `_condemn` is ending this process
        self._state = ReplicaState.DRAINING
        self._gate.draining = True
        await self._reporter.push()
        if not await self._until_idle(self._settings.longest_generation_s):
            self._gate.break_open(
                errors.answer(
                    Code.STREAM_INTERRUPTED, "The replica had to stop before this answer was complete."
                )
            )
            await self._until_idle(FLUSH_S)
        self._watch_task.cancel()
        self._state = ReplicaState.STOPPED
        await self._reporter.push()
        await self._reporter.stop()
        await self._server.stop()
        await self._engine.stop()
        self._record.remove()
        self._lease.release()


def node_address() -> str:
    """The address that Ray knows this node by; loopback on a local cluster.

    `ray.util.get_node_ip_address` looks at the machine's interfaces instead, and would listen on them.
    """
    node_id = ray.get_runtime_context().get_node_id()
    return next(str(node["NodeManagerAddress"]) for node in ray.nodes() if node["NodeID"] == node_id)


def _condemned(found: Verdict) -> ErrorAnswer:
    if found is Verdict.HUNG:
        return errors.answer(
            Code.ENGINE_HUNG, "The engine made no progress on this answer and was stopped; send it again."
        )
    return errors.answer(Code.ENGINE_DEAD, "The engine stopped in the middle of this answer; send it again.")


def _refuse_beside_orphans() -> None:
    """Wait for a dead predecessor's engine to end; kill it; refuse to start beside one that will not."""
    left = wait_gone(orphans(), ORPHAN_WAIT_S)
    kill(left)
    left = wait_gone(left, 5.0)
    if left:
        pids = ", ".join(str(mark.pid) for mark in left)
        raise EngineStartError(
            f"engine processes of a dead replica still run (pid {pids}) and hold its memory; end them by hand"
        )
