"""The ingress deployment: the OpenAI paths, health, readiness and status, over one view of the replicas."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import secrets
import time
from dataclasses import replace
from typing import Any

import msgspec
from ray import serve
from ray.serve.handle import DeploymentHandle
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route as Path
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app import errors
from app.admin import Admin
from app.admission.desk import Desk
from app.endpoint import GenerationEndpoint
from app.ingress_metrics import IngressMetrics
from app.lines import Lines
from app.membership import Membership
from app.models import model_cards
from app.relay import Relay
from app.snapshot_reader import SnapshotReader
from app.status import Known, service_status
from app.upstream import Upstream
from autoscaling.request_line import RequestLine
from autoscaling.types import IngressLoad, Role, Snapshot, Tier
from deployments.config import IngressSettings
from deployments.control_metrics import CONTENT_TYPE

logger = logging.getLogger("ray.serve")

CALL_LIMIT_S = 1.0
STATUS_LIMIT_S = 3.0
FIRST_VIEW_LIMIT_S = 15.0  # a controller that is replaced at the same time is back by then


@serve.ingress()
class Ingress:
    """One ingress replica; `pools` only ties the deployments into one application."""

    async def __init__(  # type: ignore[misc]  # Serve awaits it
        self, controller: DeploymentHandle, *pools: DeploymentHandle
    ) -> None:
        self._settings = IngressSettings.from_env()
        self._controller = controller
        self._pools = pools
        self._id = secrets.token_hex(8)
        self._membership = Membership(time.monotonic)
        self._upstream = Upstream(self._settings.longest_generation_s, self._settings.between_chunks_s)
        choose = random.Random().randrange  # noqa: S311  # a choice between replicas, nothing secret
        self._desk = Desk(self._membership, choose)
        self._relay = Relay(self._membership, self._upstream, self._desk)
        self._counts = IngressMetrics()
        self._lines = Lines(self._counts.ended)
        self._reader = SnapshotReader()
        self._known: Known | None = None
        self._whole = asyncio.Event()  # a snapshot has come that leaves nobody out
        self._poll_task = asyncio.create_task(self._poll(), name="snapshots")
        await self._first_view()

    def __serve_build_asgi_app__(self) -> ASGIApp:  # Serve's name for it
        generate = GenerationEndpoint(self._membership, self._relay, self._lines)
        app = Starlette(
            routes=[
                Path("/v1/chat/completions", generate, methods=["POST"]),
                Path("/v1/completions", generate, methods=["POST"]),
                Path("/v1/models", self._models, methods=["GET"]),
                Path("/v1/models/{model:path}", self._model, methods=["GET"]),
                Path("/health", _health, methods=["GET"]),
                Path("/ready", self._ready, methods=["GET"]),
                Path("/metrics", self._metrics, methods=["GET"]),
                Path("/admin/status", self._status, methods=["GET"]),
                *Admin(self._controller, self._settings.admin_writable).routes(),
            ],
            exception_handlers={HTTPException: _http_error, Exception: _internal_error},
        )
        app.router.redirect_slashes = False  # a path is ours or it is not found
        return _without_request_id(app)

    async def _poll(self) -> None:
        """Fetch the snapshot for ever; without a controller the last one stays in force."""
        while True:
            try:
                self._counts.look(self._desk.waiting, self._membership.total_inflight)
                asked_at = time.monotonic()
                snapshot = await self._fetch()
                self._membership.accept(snapshot, time.monotonic(), asked_at)
                self._desk.wake()
                if not snapshot.partial:
                    self._whole.set()
            except Exception as error:
                logger.debug(f"no snapshot: {type(error).__name__}: {error}")
            await asyncio.sleep(self._settings.poll_s)

    async def _fetch(self) -> Snapshot:
        """Tell the controller what is wanted here and what has ended, and get the newest snapshot."""
        lines = self._lines.oldest()
        load = msgspec.to_builtins(self._load(lines))
        # Not wait_for: in Python 3.11 it can swallow a cancel that meets the answer.
        async with asyncio.timeout(CALL_LIMIT_S):
            found = await self._controller.snapshot.remote(self._id, load)
        self._lines.taken(lines)
        return self._reader.read(found)

    def _load(self, lines: tuple[RequestLine, ...]) -> IngressLoad:
        """What the controller is told with every fetch."""
        return replace(
            self._relay.demand.load(self._membership.epoch),
            waiting={tier: self._desk.waiting(tier) for tier in Tier},
            lines=lines,
            lines_dropped=self._lines.dropped,
        )

    async def _first_view(self) -> None:
        """Take no request before the replicas are known: in an update the former ingress still serves.

        A new application has a whole view too, of nobody; without a controller the wait has an end.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FIRST_VIEW_LIMIT_S):
                await self._whole.wait()

    async def _models(self, _request: Request) -> Response:
        cards = model_cards(self._views())
        return (
            JSONResponse({"object": "list", "data": cards})
            if cards
            else _answer(errors.not_ready("the first replica"))
        )

    async def _model(self, request: Request) -> Response:
        wanted = request.path_params["model"]
        cards = model_cards(self._views())
        for card in cards:
            if card["id"] == wanted:
                return JSONResponse(card)
        if not cards:
            return _answer(errors.not_ready("the first replica"))
        return _answer(errors.model_not_found(wanted, [card["id"] for card in cards]))

    async def _ready(self, _request: Request) -> Response:
        """200 when a request would be routed; names the pools that have no replica yet."""
        if self._membership.stopping:
            return _answer(errors.stopping())
        serving = [
            c.replica.role for c in self._membership.candidates_view(time.monotonic()) if c.replica.accepting
        ]
        counts = {role.value: serving.count(role) for role in Role}
        missing = [name for name, count in counts.items() if count == 0]
        if not serving:
            return _answer(errors.not_ready(f"a replica of the pools {' and '.join(missing)}"))
        return JSONResponse({"ready": True, "pools": counts, "waiting_for": missing})

    async def _status(self, request: Request) -> Response:
        now = time.monotonic()
        try:
            async with asyncio.timeout(STATUS_LIMIT_S):
                found = await self._controller.status.remote()
            self._known = Known(found, now)
            reachable = True
        except Exception:
            reachable = False
        url = f"{request.url.scheme}://{request.url.netloc}"
        return JSONResponse(service_status(self._known, self._membership, url, reachable, now))

    async def _metrics(self, _request: Request) -> Response:
        """The fleet's metrics, by the controller; 503 without one, so that a scrape is seen to fail."""
        try:
            async with asyncio.timeout(STATUS_LIMIT_S):
                found: str = await self._controller.metrics.remote()
        except Exception as error:
            return _answer(errors.no_controller(type(error).__name__, changing=False))
        return Response(found, media_type=CONTENT_TYPE)

    def _views(self) -> list[Any]:
        return [candidate.replica for candidate in self._membership.candidates_view(time.monotonic())]

    async def __del__(self) -> None:
        """Stop fetching and close the connections."""
        if hasattr(self, "_poll_task"):
            self._poll_task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._poll_task
            with contextlib.suppress(Exception):
                while self._lines.oldest():  # the last requests count, too
                    await self._fetch()
            await self._upstream.close()


def _without_request_id(app: ASGIApp) -> ASGIApp:
    """Leave the request id to Serve's front, which adds it to every answer; ours would stand beside it."""

    async def wrapped(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_without(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [item for item in message["headers"] if item[0] != b"x-request-id"]
            await send(message)

        await app(scope, receive, send_without)

    return wrapped


async def _health(_request: Request) -> Response:
    return JSONResponse({"status": "ok"})


def _answer(error: errors.ApiError) -> Response:
    kept = {
        name.decode(): value.decode() for name, value in errors.headers(error) if name != b"content-length"
    }
    return Response(errors.body(error), status_code=error.status, headers=kept)


async def _http_error(request: Request, raised: Exception) -> Response:
    if isinstance(raised, HTTPException) and raised.status_code == 405:
        allowed = (raised.headers or {}).get("Allow", "POST").replace(" ", "").split(",")
        return _answer(errors.method_not_allowed(request.method, allowed))
    return _answer(errors.not_found(request.url.path))


async def _internal_error(request: Request, raised: Exception) -> Response:
    logger.error(f"{request.method} {request.url.path} failed", exc_info=raised)
    return _answer(errors.internal_error())
