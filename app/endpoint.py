"""The two generation endpoints: read, peek, choose the tier, relay, stop when the caller leaves."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import secrets
import time
from collections.abc import Coroutine, MutableMapping
from typing import Any

from starlette.types import Receive, Scope, Send

from app import errors
from app.ask_of import Asked, asked
from app.errors import ApiError
from app.job import Course, Job
from app.lines import Lines, early_line, line_of
from app.membership import Membership
from app.peek import fields_of, peek
from app.relay import Relay
from app.tiers import choose_tier, pool_pin
from app.upstream import Outgoing
from autoscaling.request_line import Outcome
from autoscaling.types import Tier
from deployments.edits import header_map
from deployments.request_body import BodyTooLargeError, read_body

logger = logging.getLogger("ray.serve")

MAX_BODY = 16 << 20  # bytes; far above any prompt that fits a context
REQUEST_ID = re.compile(rb"[A-Za-z0-9._:-]{1,128}")
# An allow-list: what a replica needs to know, and nothing that steers the engine.
PASSED = (b"accept", b"traceparent", b"tracestate", b"x-twinpool-usage")


class GenerationEndpoint:
    """ASGI app for POST /v1/chat/completions and /v1/completions."""

    def __init__(self, membership: Membership, relay: Relay, lines: Lines) -> None:
        self._membership = membership
        self._relay = relay
        self._lines = lines

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI entry."""
        headers = header_map(scope["headers"])
        request_id = _request_id(headers.get(b"x-request-id"))
        out, course = _Out(send, request_id), Course()
        try:
            body = await read_body(receive, MAX_BODY)
            if body is None:
                return
            try:
                job, asked = self._job(scope, headers, body, request_id)
            except ApiError as error:
                self._early(scope, request_id, course, error)
                raise
            await self._serve(job, asked, course, out, receive)
        except ApiError as error:
            await out.fail(error)
        except BodyTooLargeError:
            too_large = errors.request_too_large(MAX_BODY)
            self._early(scope, request_id, course, too_large)
            await out.fail(too_large)
        except Exception:
            logger.exception(f"request {request_id} failed in the ingress")
            if out.started:
                raise
            await out.fail(errors.internal_error())

    def _early(self, scope: Scope, request_id: str, course: Course, error: ApiError) -> None:
        """Leave a line about a request that ended before it was read whole."""
        try:
            tier = choose_tier(scope["headers"], None, None, ()).tier
        except ApiError:
            tier = Tier.STANDARD
        course.failed(error)
        now, wall = time.monotonic(), time.time()
        self._lines.add(early_line(self._lines.next_seq(), request_id, tier, course, now=now, wall=wall))

    async def _serve(self, job: Job, asked: Asked, course: Course, out: _Out, receive: Receive) -> None:
        """Relay, and leave a line about it however it ends."""
        try:
            await _unless_disconnected(self._relay.serve(job, course, out.send), receive)
        except ApiError as error:
            course.failed(error)
            raise
        except Exception:
            course.outcome = Outcome.FAILED
            raise
        finally:
            self._lines.add(
                line_of(
                    self._lines.next_seq(),
                    job,
                    asked,
                    course,
                    now=time.monotonic(),
                    wall=time.time(),
                )
            )

    def _job(
        self, scope: Scope, headers: dict[bytes, bytes], body: bytes, request_id: str
    ) -> tuple[Job, Asked]:
        members = self._membership
        fields = fields_of(headers.get(b"content-type"), body)
        seen = peek(scope["path"], fields, members.max_model_len)
        served = members.served_names
        if not served:
            raise errors.not_ready("the first replica")
        if members.stopping:
            raise errors.stopping()
        tier = choose_tier(scope["headers"], seen.service_tier, seen.model, served)
        pin = pool_pin(scope["headers"])
        found = asked(scope["path"], fields, seen, tier.tier, pin, members.rules, members.method)
        # A suffix of our own: two clients that send the same id must not meet in the engine.
        engine_id = f"{request_id}-{secrets.token_hex(3)}"
        passed = [(name.decode(), headers[name].decode("latin-1")) for name in PASSED if name in headers]
        # The engine takes this spelling only; `peek` has checked the caller's.
        passed.append(("content-type", "application/json"))
        passed.append(("x-request-id", engine_id))
        passed.append(("x-twinpool-tier", tier.tier.value))
        passed.append(("x-twinpool-sequences", str(seen.sequences)))
        outgoing = Outgoing("POST", scope["path"], tuple(passed), body)
        return Job(request_id, engine_id, outgoing, tier, found.ask, seen.stream), found


class _Out:
    """The client's side of one request: adds the request id, knows whether bytes have left."""

    def __init__(self, send: Send, request_id: str) -> None:
        self._send = send
        self._id = (b"x-request-id", request_id.encode())
        self.started = False

    async def send(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            message["headers"] = [*message["headers"], self._id]
        await self._send(message)

    async def fail(self, error: ApiError) -> None:
        """A complete error answer; only before the first byte."""
        await self.send(
            {"type": "http.response.start", "status": error.status, "headers": errors.headers(error)}
        )
        await self.send({"type": "http.response.body", "body": errors.body(error)})


def _request_id(sent: bytes | None) -> str:
    """The client's id where it is short and harmless in a log line, else a new one."""
    if sent is not None and REQUEST_ID.fullmatch(sent):
        return sent.decode()
    return f"req-{secrets.token_hex(12)}"


async def _unless_disconnected(work: Coroutine[Any, Any, None], receive: Receive) -> None:
    """Run `work`; cancel it as soon as the caller leaves, so that the replica stops generating."""
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_disconnected(receive))
    try:
        await asyncio.wait((task, gone), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
    finally:
        for pending in (task, gone):
            if not pending.done():
                pending.cancel()
                with contextlib.suppress(asyncio.CancelledError, Exception):
                    await pending


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
