"""A small service on loopback that answers as twinpool does, for the demo's client; without any engine."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

from aiohttp import web

POLICY = (
    "spec: {objectives: {interactive: {ttftSeconds: 30.0, tpotSeconds: 30.0}, standard: {ttftSeconds: 30}}}"
)
STATUS: dict[str, Any] = {
    "ready": True,
    "pools": {
        "speculative": {"running": 1, "target": 1, "capacity": 8.0, "replicas": [{"oversubscribed": False}]},
        "plain": {"running": 1, "target": 1, "capacity": 2.0, "replicas": [{"oversubscribed": True}]},
    },
    "policy": {"active_revision": 3, "shadow_revision": None},
    "moves": [],
}
READY: dict[str, Any] = {"ready": True, "pools": {"speculative": 1, "plain": 1}, "waiting_for": []}
DRAFTS = {"num_spec_steps": 10, "num_draft_tokens": 40, "num_accepted_draft_tokens": 30}

STEP_S = 0.001  # of the engine that is not there, so that a stream comes in pieces

Generate = Callable[[web.Request, dict[str, Any]], Awaitable[web.StreamResponse]]


class Fake:
    """What it answers, and what it was asked."""

    def __init__(self, generate: Generate | None = None) -> None:
        self.url = ""
        self.status: dict[str, Any] | None = STATUS
        self.ready: tuple[int, dict[str, Any]] = (200, READY)
        self.policy: str | None = POLICY
        self.generate = generate or whole
        self.asked: list[tuple[str, dict[str, str], dict[str, Any]]] = []  # path, headers, body

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/admin/status", self._status)
        app.router.add_get("/ready", self._ready)
        app.router.add_get("/admin/policy/3", self._policy)
        app.router.add_get("/admin/why/request", self._why)
        app.router.add_post("/v1/chat/completions", self._generate)
        app.router.add_post("/v1/completions", self._generate)
        return app

    async def _status(self, _request: web.Request) -> web.Response:
        return refusal(503, "not_ready") if self.status is None else web.json_response(self.status)

    async def _ready(self, _request: web.Request) -> web.Response:
        return web.json_response(self.ready[1], status=self.ready[0])

    async def _policy(self, _request: web.Request) -> web.Response:
        return refusal(503, "not_ready") if self.policy is None else web.json_response({"text": self.policy})

    async def _why(self, request: web.Request) -> web.Response:
        return web.json_response({"kind": "request", "record": {"id": request.query["id"]}})

    async def _generate(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.asked.append((request.path, headers, body))
        return await self.generate(request, body)


@contextlib.asynccontextmanager
async def serving(fake: Fake) -> AsyncIterator[Fake]:
    """Serve in this loop, on a free port of loopback."""
    runner = web.AppRunner(fake.app(), shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    fake.url = f"http://{host}:{port}"
    try:
        yield fake
    finally:
        await runner.cleanup()


@contextlib.contextmanager
def serving_in_thread(fake: Fake) -> Iterator[Fake]:
    """Serve in a loop of its own, for a command that has one too."""
    up, loop, over = threading.Event(), asyncio.new_event_loop(), asyncio.Event()

    async def serve() -> None:
        async with serving(fake):
            up.set()
            await over.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    try:
        assert up.wait(30)
        yield fake
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()
        loop.close()


async def whole(request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
    """A whole stream: three chunks of text that hold more tokens, usage and drafts, the end."""
    pool = request.headers.get("x-twinpool-pool") or (
        "speculative" if request.headers["x-twinpool-tier"] == "interactive" else "plain"
    )
    metrics = {"metrics": {"speculative_decoding": DRAFTS}} if pool == "speculative" else {}
    usage = {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": body["max_tokens"]}}
    return await stream(request, [text("a"), text('"usage" '), text("c"), event(usage | metrics), END], pool)


async def stream(request: web.Request, parts: list[bytes], pool: str = "plain") -> web.StreamResponse:
    """Headers of a replica's answer and then these bytes."""
    tier = request.headers["x-twinpool-tier"]
    answer = web.StreamResponse(
        headers={
            "content-type": "text/event-stream",
            "x-twinpool-pool": pool,
            "x-twinpool-route-reason": f"tier_{tier}",
        }
    )
    await answer.prepare(request)
    for part in parts:
        await answer.write(part)
        await asyncio.sleep(STEP_S)
    return answer


def refusal(status: int, code: str, **headers: str) -> web.Response:
    """An error object of the service."""
    error = {"message": code, "type": "server_error", "param": None, "code": code}
    return web.json_response(
        {"error": error}, status=status, headers={name.replace("_", "-"): v for name, v in headers.items()}
    )


def event(found: Any) -> bytes:
    return b"data: " + json.dumps(found).encode() + b"\n\n"


def text(words: str) -> bytes:
    return event({"choices": [{"delta": {"content": words}}], "usage": None})


END = b"data: [DONE]\n\n"
