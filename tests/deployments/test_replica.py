"""A replica's constructor: what it leaves behind when it fails."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from types import SimpleNamespace

import pytest

from deployments import replica
from deployments.core_lease import lease_cores
from deployments.local_config import default_settings
from deployments.ports import free_ports
from deployments.replica import Replica
from deployments.replica_server import NoPortError

HOST = "127.0.0.1"


class RefusedError(Exception):
    """What a broken engine raises."""


class Engine:
    """One that does not start; remembers that it was stopped."""

    stopped = 0

    async def start(self) -> None:
        raise RefusedError("no start")

    async def stop(self) -> None:
        Engine.stopped += 1


@pytest.fixture
def port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """The one port of the pool of which a replica is made, on a node of its own."""
    monkeypatch.setenv("TWINPOOL_NODE_DIR", str(tmp_path))
    (port,) = free_ports(1)
    settings = default_settings("simulated").plain.model_copy(
        update={"port_range": (port, port), "cores_per_replica": 1}
    )
    for key, value in settings.to_env().items():
        monkeypatch.setenv(key, value)
    context = SimpleNamespace(replica_id=SimpleNamespace(unique_id="r1"))
    monkeypatch.setattr(replica.serve, "get_replica_context", lambda: context)
    monkeypatch.setattr(replica, "node_address", lambda: HOST)
    return port


class Made(Replica):
    """Its end is Serve's to await: a plain one keeps the garbage collector quiet."""

    def __del__(self) -> None:  # type: ignore[override]
        pass


async def construct() -> None:
    made = Made.__new__(Made)
    await made.__init__(None)  # type: ignore[misc]  # Serve calls it like this


def whole() -> bool:
    """Whether every core can be leased by one alone."""
    lease = lease_cores(len(os.sched_getaffinity(0)))
    lease.release()
    return not lease.oversubscribed


async def test_no_port(port: int) -> None:
    """The core is free at once, not when the process has ended: its successor would share another's."""
    with socket.socket() as stranger:
        stranger.bind((HOST, port))
        with pytest.raises(NoPortError):
            await construct()
    assert whole()


async def test_no_engine(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that cannot be made (an unknown model, say) leaves core and port free."""

    async def refuse(*_: object) -> None:
        raise RefusedError("no engine")

    monkeypatch.setattr(replica, "make_engine", refuse)
    with pytest.raises(RefusedError, match="no engine"):
        await construct()
    assert whole()
    with socket.socket() as successor:
        successor.bind((HOST, port))


async def test_an_engine_that_does_not_start(
    port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its processes are ended before the core is free, and no record of them stays."""
    Engine.stopped = 0

    async def broken(*_: object) -> Engine:
        return Engine()

    monkeypatch.setattr(replica, "make_engine", broken)
    with pytest.raises(RefusedError, match="no start"):
        await construct()
    assert Engine.stopped == 1
    assert whole()
    assert list((tmp_path / "engines").glob("*")) == []
    with socket.socket() as successor:
        successor.bind((HOST, port))
