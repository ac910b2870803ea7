"""The replica's own HTTP server: a port from a range, one that no former replica's client still knows."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time

import uvicorn

from deployments.engine import ASGIApp
from deployments.node_dir import node_dir

REUSE_AFTER_S = 150.0  # an ingress may remember a gone replica's address for so long
MARK_PERIOD_S = 10.0  # how often a port in use is marked: a killed replica marks nothing at its end
# Above the ingress's own idle limit, so that a kept connection is never closed under a new request.
KEEP_ALIVE_S = 120


class NoPortError(Exception):
    """No free port in the pool's range."""


class ReplicaServer:
    """Serves one ASGI app on one port until `stop`."""

    def __init__(self, host: str, ports: tuple[int, int]) -> None:
        self._socket = _bind(host, ports)
        self.host = host
        self.port: int = self._socket.getsockname()[1]
        self._server: uvicorn.Server | None = None
        self._task: asyncio.Task[None] | None = None
        self._marking: asyncio.Task[None] | None = None

    async def serve(self, app: ASGIApp) -> None:
        """Start serving; returns when connections are taken."""
        config = uvicorn.Config(
            app,
            interface="asgi3",
            lifespan="off",
            access_log=False,
            # uvicorn's own logging set-up would close Serve's log handler: docs/adr/0009.
            log_config=None,
            log_level="warning",
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=5,
        )
        server = uvicorn.Server(config)
        # Signals belong to the Ray worker.
        server.capture_signals = contextlib.nullcontext
        self._server = server
        self._task = asyncio.create_task(server.serve(sockets=[self._socket]))
        while not server.started:
            if self._task.done():
                raise NoPortError(f"the server on {self.host}:{self.port} ended at its start")
            await asyncio.sleep(0.01)
        self._marking = asyncio.create_task(self._keep_marked(), name="port-mark")

    async def _keep_marked(self) -> None:
        while True:
            await asyncio.sleep(MARK_PERIOD_S)
            _mark(self.port)

    async def stop(self) -> None:
        """Stop listening and end what is left."""
        if self._server is not None:
            self._server.should_exit = True
        if self._task is not None:
            with contextlib.suppress(asyncio.TimeoutError, asyncio.CancelledError):
                await asyncio.wait_for(self._task, 6.0)
        self._socket.close()
        if self._marking is not None:
            self._marking.cancel()
        _mark(self.port)  # the time without use begins now


def _mark(port: int) -> None:
    with contextlib.suppress(OSError):
        (node_dir("ports") / str(port)).touch()


def _bind(host: str, ports: tuple[int, int]) -> socket.socket:
    """The longest unused port of the range, marked as used now."""
    low, high = ports
    folder = node_dir("ports")

    def used_at(port: int) -> float:
        try:
            return (folder / str(port)).stat().st_mtime
        except OSError:
            return 0.0

    oldest = time.time() - REUSE_AFTER_S
    for port in sorted(range(low, high + 1), key=used_at):
        if used_at(port) > oldest:
            continue  # also one that another replica has taken since the sorting: the next may be free
        bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        # No SO_REUSEADDR: a port in TIME_WAIT still has clients that remember it.
        try:
            bound.bind((host, port))
        except OSError:
            bound.close()
            continue
        _mark(port)
        return bound
    raise NoPortError(
        f"no port of {low}-{high} on {host} is free and unused for {REUSE_AFTER_S:.0f} s: widen port_range"
    )
