"""A controller that reads a mounted ConfigMap, behind the real admin routes on a real port; and its cluster.

The control loop, the policy's source and book and the admin routes are the service's own.  Ray Serve is
virtual and does at once what the plan says.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
import threading
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from app.admin import Admin
from autoscaling.types import Role
from deployments.control_status import pool_words
from tests.deployments.control_world import World
from tests.deployments.kubelet import ConfigMapMount
from tests.deployments.mounted import mounted

NAMESPACE, NAME, KEY = "twinpool", "twinpool-policy", "policy.yaml"
TICK_S = 0.02


@dataclass
class Cluster:
    """One ConfigMap with one policy, its mount, and a `kubectl` for it in the folder `bin`."""

    folder: Path

    def __post_init__(self) -> None:
        bin_ = self.folder / "bin"
        bin_.mkdir(parents=True)
        script = bin_ / "kubectl"
        fake = Path(__file__).with_name("fake_kubectl.py")
        script.write_text(
            f'#!/bin/sh\nFAKE_CLUSTER="{self.folder}" exec "{sys.executable}" "{fake}" "$@"\n',
            encoding="utf-8",
        )
        script.chmod(0o755)

    @property
    def path(self) -> str:
        """PATH with this `kubectl` before any other."""
        return f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"

    @property
    def mount(self) -> Path:
        """The volume as the controller's pod has it."""
        return self.folder / "mount"

    def install(self, text: str, **metadata: Any) -> None:
        """Make the ConfigMap, with a second entry that is nobody's business, and mount it."""
        self.put({KEY: text, "README": "edited by twinpool policy apply\n"}, **metadata)
        ConfigMapMount(self.mount).publish(self.data)

    def put(self, data: dict[str, str], *, immutable: bool = False, **metadata: Any) -> None:
        """Write the object as it is, without the kubelet."""
        named = {"name": NAME, "namespace": NAMESPACE, "resourceVersion": "7"} | metadata
        found = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": named, "data": data}
        (self.folder / "config_map.json").write_text(
            json.dumps(found | ({"immutable": True} if immutable else {})), encoding="utf-8"
        )

    @property
    def object(self) -> dict[str, Any]:
        """The ConfigMap as it is now."""
        found: dict[str, Any] = json.loads((self.folder / "config_map.json").read_text(encoding="utf-8"))
        return found

    @property
    def data(self) -> dict[str, str]:
        """Its entries."""
        found: dict[str, str] = self.object["data"]
        return found

    def set(self, name: str, content: Any) -> None:
        """Change how the cluster behaves; the names stand in `fake_kubectl.py`."""
        (self.folder / name).write_text(json.dumps(content), encoding="utf-8")

    def calls(self, verb: str = "") -> list[list[str]]:
        """What kubectl was asked, in order; only with this verb if there is one."""
        file = self.folder / "calls.jsonl"
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        return [call for call in map(json.loads, lines) if not verb or call[0] == verb]


class _Handle:
    """The controller's handle as the ingress has it: plain JSON in and out."""

    def __init__(self, world: World) -> None:
        self._world = world

    @property
    def command(self) -> _Handle:
        return self

    def remote(self, name: str, arguments: dict[str, Any]) -> Awaitable[dict[str, Any]]:
        return self._world.orders.take(name, arguments)


@contextmanager
def controller(cluster: Cluster, *, slots: int = 4) -> Iterator[str]:
    """Run a controller over the cluster's mount until the block ends; its address."""
    world = mounted(cluster.folder / "state", cluster.mount, slots=slots)
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    ready, stop = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(_run(world, listening, ready, stop)))
    thread.start()
    try:
        assert ready.wait(30)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        stop.set()
        thread.join()
        listening.close()


async def _run(world: World, listening: socket.socket, ready: threading.Event, stop: threading.Event) -> None:
    world.start()
    await world.settle()
    ticking = asyncio.create_task(_tick(world))
    app = Starlette(
        routes=[*Admin(_Handle(world), writable=True).routes(), Route("/admin/status", _status(world))]
    )
    server = uvicorn.Server(
        uvicorn.Config(app, log_config=None, lifespan="off", interface="asgi3", access_log=False)
    )
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    while not server.started:
        await asyncio.sleep(0.01)
    ready.set()
    await asyncio.to_thread(stop.wait)
    server.should_exit = True
    await serving
    ticking.cancel()


async def _tick(world: World) -> None:
    while True:
        await world.settle(1)
        await asyncio.sleep(TICK_S)


def _status(world: World) -> Any:
    async def answer(_request: Request) -> JSONResponse:
        pools = {role.value: pool_words(world.loop.state, role, world.loop.serve, world.now) for role in Role}
        return JSONResponse(msgspec.to_builtins({"pools": pools}))

    return answer
