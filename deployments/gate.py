"""The replica's own door: who may come in, how many, and how open requests end.

An ASGI wrapper around the engine's app; `deployments.edits` holds what it changes,
`deployments.outlet` how an answer leaves.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass

from autoscaling.types import Role, Tier
from deployments import edits, errors
from deployments.engine import ASGIApp, Message, Receive, Scope, Send
from deployments.errors import Code, ErrorAnswer
from deployments.outlet import Headers, Outlet, send_error
from deployments.request_body import BodyTooLargeError, read_body

ALLOWED = {("POST", "/v1/chat/completions"), ("POST", "/v1/completions"), ("GET", "/v1/models")}
NOT_ACCEPTED = b"x-twinpool-not-accepted"  # the ingress may try elsewhere for free
MAX_BODY = 64 << 20  # bytes; a backstop, the ingress refuses at its own lower limit


@dataclass(frozen=True, slots=True)
class GateIdentity:
    """What a caller must know to be let in."""

    replica_id: str
    token: str
    role: Role


class Gate:
    """ASGI app: checks, counts, edits, and relays to the engine's app.

    `draining` makes it refuse new work; `break_open` ends every open request with one error.
    """

    def __init__(self, identity: GateIdentity, engine_app: ASGIApp, hard_limit: int) -> None:
        self._identity = identity
        self._token = identity.token.encode()
        self._engine_app = engine_app
        self._hard_limit = hard_limit
        self._breakers: set[Callable[[ErrorAnswer], None]] = set()
        self._failed: ErrorAnswer | None = None
        self.draining = False
        self.inflight = 0  # sequences of open requests
        self.accepted = 0  # requests let in since the start

    def break_open(self, error: ErrorAnswer) -> None:
        """End every open request with `error`, and refuse new ones with it."""
        self._failed = error
        for breaker in tuple(self._breakers):
            breaker(error)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI entry."""
        if scope["type"] != "http":
            return
        headers = edits.header_map(scope["headers"])
        sequences = _sequences(headers)
        refusal = self._refusal(scope, headers, sequences)
        if refusal is not None:
            await send_error(send, *refusal)
            return
        self.inflight += sequences
        self.accepted += 1
        try:
            await self._serve(scope, headers, receive, send)
        finally:
            self.inflight -= sequences

    def _refusal(
        self, scope: Scope, headers: dict[bytes, bytes], sequences: int
    ) -> tuple[ErrorAnswer, Headers] | None:
        wanted = headers.get(b"x-twinpool-replica")
        # First of all: whoever looks for a former replica of this address holds the former one's token.
        if wanted is not None and wanted != self._identity.replica_id.encode():
            return _wrong_replica()
        if not hmac.compare_digest(headers.get(b"x-twinpool-token", b""), self._token):
            return errors.answer(Code.NOT_FOUND, "This endpoint serves its own ingress only.", status=401), []
        if wanted is None:
            return _wrong_replica()
        if (scope["method"], scope["path"]) not in ALLOWED:
            return errors.answer(Code.NOT_FOUND, f"No such path: {scope['path']}."), []
        if self._failed is not None:
            return self._failed, [(NOT_ACCEPTED, b"failed")]
        if self.draining:
            return _not_accepted(b"draining", "This replica is stopping.")
        # A request of more sequences than the limit still has its turn, on an idle replica.
        if self.inflight > 0 and self.inflight + sequences > self._hard_limit:
            return _not_accepted(b"full", f"This replica serves {self.inflight} sequences already.")
        return None

    async def _serve(self, scope: Scope, headers: dict[bytes, bytes], receive: Receive, send: Send) -> None:
        try:
            body = await read_body(receive, MAX_BODY)
        except BodyTooLargeError:
            too_large = errors.answer(Code.REQUEST_TOO_LARGE, f"The body is larger than {MAX_BODY} bytes.")
            await send_error(send, too_large, [])
            return
        if body is None:
            return  # the caller left while sending
        try:
            edited = edits.edit_request(body)
        except edits.UnsafeTemplateError as error:
            await send_error(send, edits.template_refusal(error), [])
            return
        except edits.UnreadableBodyError as error:
            await send_error(send, errors.answer(Code.INVALID_JSON, str(error)), [])
            return
        tier = _tier(headers)
        answer = edits.AnswerEdits(
            tier=tier,
            role=self._identity.role,
            state_tier=edited.asked_service_tier,
            extend_usage=headers.get(b"x-twinpool-usage") == b"extended",
        )
        inner = dict(scope)
        inner["headers"] = edits.engine_headers(scope["headers"], len(edited.body), tier)
        await self._run(inner, edited.body, receive, Outlet(send, answer))

    async def _run(self, scope: Scope, body: bytes, receive: Receive, outlet: Outlet) -> None:
        """Run the engine's app until it ends, the caller leaves, or `break_open` is called."""
        task = asyncio.ensure_future(self._engine_app(scope, _replay(body, receive), outlet.send))
        broken: list[ErrorAnswer] = []

        def breaker(error: ErrorAnswer) -> None:
            broken.append(error)
            outlet.cut = True
            task.cancel()

        self._breakers.add(breaker)
        try:
            await task
        except asyncio.CancelledError:
            if not broken:
                raise
        except Exception as error:
            broken.append(
                errors.answer(Code.INTERNAL_ERROR, f"The engine's app failed: {type(error).__name__}.")
            )
        finally:
            self._breakers.discard(breaker)
            if not task.done():
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError, Exception):
                    await task
        cause = broken[0] if broken else outlet.engine_error
        if cause is not None:
            await outlet.finish_broken(cause)


def _not_accepted(why: bytes, message: str, status: int | None = None) -> tuple[ErrorAnswer, Headers]:
    return errors.answer(Code.NO_CAPACITY, message, status=status), [(NOT_ACCEPTED, why)]


def _wrong_replica() -> tuple[ErrorAnswer, Headers]:
    return _not_accepted(b"wrong-replica", "Another replica answers at this address.", status=421)


def _sequences(headers: dict[bytes, bytes]) -> int:
    """How many sequences the ingress counted in this request; at least one."""
    said = headers.get(b"x-twinpool-sequences", b"1")
    return max(1, int(said)) if said.isdigit() else 1


def _tier(headers: dict[bytes, bytes]) -> Tier:
    """The tier that the ingress chose; one that a newer ingress knows and we do not is standard."""
    try:
        return Tier(headers.get(b"x-twinpool-tier", b"standard").decode())
    except ValueError:
        return Tier.STANDARD


def _replay(body: bytes, receive: Receive) -> Receive:
    """`receive` for the engine's app: the body once, then what the caller does."""
    sent = False

    async def replay() -> Message:
        nonlocal sent
        if not sent:
            sent = True
            return {"type": "http.request", "body": body, "more_body": False}
        return await receive()

    return replay
