"""How an answer leaves a replica: held until its first byte, edited, and ended with one error if broken."""

from __future__ import annotations

import msgspec

from deployments import edits, errors
from deployments.edits import AnswerEdits
from deployments.engine import Message, Send
from deployments.errors import Code, ErrorAnswer

Headers = list[tuple[bytes, bytes]]
LOST = b"x-twinpool-lost"  # accepted, then lost before the first byte: the ingress may retry once


class Outlet:
    """The `send` of one request.

    The response start waits for the first body byte, so that a loss before it can still be
    answered with a status and retried elsewhere.
    """

    def __init__(self, send: Send, answer: AnswerEdits) -> None:
        self._send = send
        self._answer = answer
        self._start: Message | None = None
        self._whole: bytearray | None = None  # the body so far, where it is edited as one
        self._begun = False
        self._closed = False
        self.cut = False  # nothing more of the engine's leaves, whatever its app says in its clean-up
        self.engine_error: ErrorAnswer | None = None  # the engine broke this answer; not sent yet

    async def send(self, message: Message) -> None:
        """ASGI send for the engine's app."""
        if self._closed or self.cut or self.engine_error is not None:
            return
        if message["type"] == "http.response.start":
            self._start = message
            self._whole = None if edits.is_event_stream(message) else bytearray()
            return
        if message["type"] != "http.response.body":
            return
        body: bytes = bytes(message.get("body", b""))
        more: bool = message.get("more_body", False)
        if self._whole is not None:
            self._whole += body
            if not more:
                await self._send_whole(bytes(self._whole))
        elif body.startswith(edits.ERROR_EVENT):
            # The engine's own event, also for a refusal that it finds only after the stream has begun;
            # ours follows once, in our words, with a real status while nothing has been sent.
            self.engine_error = _engine_event(body)
        elif body or not more:
            await self._send_chunk(self._answer.chunk(body), more)

    async def _send_chunk(self, body: bytes, more: bool) -> None:
        if not self._begun and self._start is not None:
            self._begun = True
            await self._send(self._start)
        await self._send({"type": "http.response.body", "body": body, "more_body": more})
        self._closed = not more

    async def _send_whole(self, body: bytes) -> None:
        start = self._start or {"status": 500, "headers": []}
        failed = errors.normalise(int(start["status"]), body)
        if failed is not None and failed.code is Code.ENGINE_DEAD:
            self.engine_error = failed
            return
        status, edited = self._answer.whole(int(start["status"]), body)
        ours = [(b"content-length", str(len(edited)).encode())] if failed is None else errors.headers(failed)
        replaced = {name for name, _ in ours}
        headers = [(name, value) for name, value in start["headers"] if name.lower() not in replaced] + ours
        self._begun = self._closed = True
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": edited})

    async def finish_broken(self, error: ErrorAnswer) -> None:
        """One error and the end: an event on a begun stream, a retryable status before it."""
        if self._closed:
            return
        self._closed = True
        if self._begun:
            await self._send({"type": "http.response.body", "body": errors.event(error), "more_body": False})
        else:
            lost = error.code in (Code.ENGINE_DEAD, Code.ENGINE_HUNG)
            await send_error(self._send, error, [(LOST, error.code.value.encode())] if lost else [])


def _engine_event(body: bytes) -> ErrorAnswer:
    payload = body.removeprefix(b"data: ").split(b"\n\n", 1)[0]
    found = errors.normalise(_event_status(payload), payload)
    if found is not None and found.status < 500:
        return found
    return errors.answer(Code.ENGINE_DEAD, "The engine stopped in the middle of this answer; send it again.")


class _EventError(msgspec.Struct):
    code: int


class _Event(msgspec.Struct):
    error: _EventError


def _event_status(payload: bytes) -> int:
    """The HTTP status that the engine's event carries as its code; 500 without one."""
    try:
        code = msgspec.json.decode(payload, type=_Event).error.code
    except msgspec.DecodeError:
        return 500
    return code if 400 <= code <= 599 else 500


async def send_error(send: Send, error: ErrorAnswer, extra: Headers) -> None:
    """A complete error answer."""
    headers = [*errors.headers(error), *extra]
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": errors.body(error)})
