"""The replica's server: its port, its connections, its end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import threading
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from deployments import replica_server
from deployments.ports import free_ports
from deployments.replica_server import NoPortError, ReplicaServer

HOST = "127.0.0.1"


@pytest.fixture(autouse=True)
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TWINPOOL_NODE_DIR", str(tmp_path))
    return tmp_path


def free_range(count: int) -> tuple[int, int]:
    """`count` ports in a row that are free now."""
    for _ in range(200):
        (low,) = free_ports(1)
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError, OverflowError):
            for port in range(low, low + count):
                stack.enter_context(socket.socket()).bind((HOST, port))
            return low, low + count - 1
    raise AssertionError("no free range")


def unused_for(node: Path, port: int, seconds: float) -> None:
    at = time.time() - seconds
    os.utime(node / "ports" / str(port), (at, at))


async def hello(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"5")]})
    await send({"type": "http.response.body", "body": b"hello"})


@contextlib.asynccontextmanager
async def serving(server: ReplicaServer, app: Any = hello) -> AsyncIterator[ReplicaServer]:
    await server.serve(app)
    try:
        yield server
    finally:
        await server.stop()


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    writer.write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
    await reader.readuntil(b"\r\n\r\n")
    return await reader.readexactly(5)


async def test_the_port_is_in_the_range() -> None:
    """Each replica gets a port of its pool's range, and none gets another's."""
    ports = free_range(3)
    servers = [ReplicaServer(HOST, ports) for _ in range(3)]
    assert sorted(server.port for server in servers) == list(range(ports[0], ports[1] + 1))
    assert {server.host for server in servers} == {HOST}
    for server in servers:
        await server.stop()


async def test_a_used_up_range() -> None:
    """The message names the range, the host, the time and the mend."""
    low, high = free_range(1)
    server = ReplicaServer(HOST, (low, high))
    with pytest.raises(
        NoPortError,
        match=rf"no port of {low}-{high} on 127\.0\.0\.1 is free and unused for 150 s: widen port_range",
    ):
        ReplicaServer(HOST, (low, high))
    await server.stop()


def test_replicas_that_bind_at_once_all_get_a_port(node: Path) -> None:
    """A port that another replica takes while one chooses is passed over: the range has more."""
    (node / "ports").mkdir(exist_ok=True)
    low, high = free_range(40)
    together = threading.Barrier(8)

    def bind(_: int) -> ReplicaServer:
        together.wait(30)
        return ReplicaServer(HOST, (low, high))

    with ThreadPoolExecutor(8) as pool:
        servers = list(pool.map(bind, range(8)))
    assert len({server.port for server in servers}) == 8
    for server in servers:
        asyncio.run(server.stop())


async def test_a_strangers_port_is_passed_over() -> None:
    """A port that another program holds is no reason to fail."""
    low, high = free_range(2)
    with socket.socket() as stranger:
        stranger.bind((HOST, low))
        stranger.listen()
        server = ReplicaServer(HOST, (low, high))
        assert server.port == high
        await server.stop()


@pytest.mark.parametrize(("seconds", "again"), [(0.0, False), (140.0, False), (151.0, True)])
async def test_a_port_rests_for_150_s(node: Path, seconds: float, again: bool) -> None:
    """A port is not given out again while an ingress may still remember its former replica."""
    low, high = free_range(1)
    await ReplicaServer(HOST, (low, high)).stop()
    unused_for(node, low, seconds)
    if again:
        await ReplicaServer(HOST, (low, high)).stop()
    else:
        with pytest.raises(NoPortError):
            ReplicaServer(HOST, (low, high))


async def test_the_longest_unused_port_comes_first(node: Path) -> None:
    """First one that was never used, then the one that rested longest."""
    low, high = free_range(3)
    for _ in range(2):
        await ReplicaServer(HOST, (low, high)).stop()
    third = ReplicaServer(HOST, (low, high))
    assert third.port == high
    await third.stop()
    for port, seconds in ((low, 200.0), (low + 1, 900.0), (high, 300.0)):
        unused_for(node, port, seconds)
    fourth = ReplicaServer(HOST, (low, high))
    assert fourth.port == low + 1
    await fourth.stop()


async def test_the_rest_begins_with_the_end(node: Path) -> None:
    """A replica that served for long has its port marked when it stops, not only when it began."""
    low, high = free_range(1)
    server = ReplicaServer(HOST, (low, high))
    unused_for(node, low, 3600.0)
    await server.stop()
    with pytest.raises(NoPortError):
        ReplicaServer(HOST, (low, high))


async def test_a_port_in_use_stays_marked(node: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A replica that is killed marks nothing at its end: it has marked its port all along."""
    monkeypatch.setattr(replica_server, "MARK_PERIOD_S", 0.01)
    low, high = free_range(1)
    async with serving(ReplicaServer(HOST, (low, high))):
        unused_for(node, low, 3600.0)
        async with asyncio.timeout(5):
            while (node / "ports" / str(low)).stat().st_mtime < time.time() - 100:
                await asyncio.sleep(0.01)


async def test_connections_are_kept() -> None:
    """Two requests on one connection."""
    async with serving(ReplicaServer(HOST, free_range(1))) as server:
        reader, writer = await asyncio.open_connection(HOST, server.port)
        assert [await ask(reader, writer), await ask(reader, writer)] == [b"hello", b"hello"]
        writer.close()


async def test_stop_ends_connections() -> None:
    """After the end nobody listens, and an idle connection is closed without waiting for its limit."""
    server = ReplicaServer(HOST, free_range(1))
    await server.serve(hello)
    reader, writer = await asyncio.open_connection(HOST, server.port)
    await ask(reader, writer)
    began = time.monotonic()
    await server.stop()
    assert time.monotonic() - began < 2.0
    assert await reader.read() == b""
    writer.close()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(HOST, server.port)


async def test_stop_frees_the_port() -> None:
    """The port of a server that has stopped can be bound."""
    async with serving(ReplicaServer(HOST, free_range(1))) as server:
        pass
    with socket.socket() as other:
        other.bind((HOST, server.port))


async def test_stop_without_serve() -> None:
    """A replica that fails before it serves gives its port back, and may say so twice."""
    server = ReplicaServer(HOST, free_range(1))
    await server.stop()
    await server.stop()
    with socket.socket() as other:
        other.bind((HOST, server.port))


async def test_the_server_leaves_signals_and_logging_alone() -> None:
    """Signals belong to the Ray worker, and log handlers to Serve."""
    handlers = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    root = list(logging.getLogger().handlers)
    async with serving(ReplicaServer(HOST, free_range(1))):
        assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == handlers
        assert logging.getLogger().handlers == root
        assert logging.getLogger("uvicorn").handlers == []


async def test_the_app_gets_no_lifespan() -> None:
    """Only requests reach the app: start and end are the replica's own."""
    kinds: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        kinds.append(scope["type"])
        await hello(scope, receive, send)

    async with serving(ReplicaServer(HOST, free_range(1)), app) as server:
        reader, writer = await asyncio.open_connection(HOST, server.port)
        await ask(reader, writer)
        writer.close()
    assert kinds == ["http"]
