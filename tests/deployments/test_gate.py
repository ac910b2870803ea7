"""The replica's door and outlet, with a plain function as the engine's app."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from autoscaling.types import Role
from deployments import errors
from deployments.errors import Code
from deployments.gate import Gate, GateIdentity

CHAT = "/v1/chat/completions"
RIGHT = {"x-twinpool-token": "secret", "x-twinpool-replica": "r-1"}
BODY = b'{"model":"m"}'
EVENT = b'data: {"id":"x","choices":[]}\n\n'
DONE = b"data: [DONE]\n\n"
DEAD_BODY = (
    b'{"error":{"message":"EngineCore encountered an issue. See stack trace (above) for the root cause.",'
    b'"type":"InternalServerError","param":null,"code":500}}'
)
DEAD = errors.answer(Code.ENGINE_DEAD, "dead")
HUNG = errors.answer(Code.ENGINE_HUNG, "hung")

App = Callable[[Any, Any, Any], Awaitable[None]]


class Call:
    """One request through a gate, and everything that came back."""

    def __init__(
        self,
        gate: Gate,
        headers: dict[str, str] | None = None,
        *,
        path: str = CHAT,
        method: str = "POST",
        body: bytes = BODY,
        pieces: tuple[bytes, ...] | None = None,
    ) -> None:
        parts = (body,) if pieces is None else pieces
        self._inbox = [
            {"type": "http.request", "body": part, "more_body": i < len(parts) - 1}
            for i, part in enumerate(parts)
        ]
        self._gone = asyncio.Event()
        self.messages: list[Any] = []
        named = [(k.encode(), v.encode()) for k, v in (RIGHT if headers is None else headers).items()]
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "headers": [(b"content-type", b"application/json"), *named],
        }
        self.task = asyncio.create_task(gate(scope, self._receive, self._send))

    async def _receive(self) -> Any:
        if self._inbox:
            return self._inbox.pop(0)
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        self.messages.append(dict(message))

    def leave(self) -> None:
        self._gone.set()

    async def done(self) -> Call:
        await asyncio.wait_for(self.task, 5)
        return self

    async def until_messages(self, count: int) -> None:
        async with asyncio.timeout(5):
            while len(self.messages) < count:
                await asyncio.sleep(0)

    @property
    def status(self) -> int:
        return int(self.messages[0]["status"])

    @property
    def headers(self) -> dict[str, str]:
        return {k.decode().lower(): v.decode() for k, v in self.messages[0]["headers"]}

    @property
    def body(self) -> bytes:
        return b"".join(message["body"] for message in self.messages[1:])

    @property
    def error(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)["error"]
        return found

    def is_complete(self) -> bool:
        """One start, bodies, and exactly one last body."""
        kinds = [message["type"] for message in self.messages]
        more = [message.get("more_body", False) for message in self.messages[1:]]
        right = kinds == ["http.response.start"] + ["http.response.body"] * (len(kinds) - 1)
        return right and len(more) > 0 and more == [True] * (len(more) - 1) + [False]


def start(status: int = 200, content_type: bytes = b"application/json", **more: bytes) -> Any:
    headers = [(b"Content-Type", content_type), *((k.encode(), v) for k, v in more.items())]
    return {"type": "http.response.start", "status": status, "headers": headers}


def body(raw: bytes, more: bool = False) -> Any:
    return {"type": "http.response.body", "body": raw, "more_body": more}


STREAM = start(200, b"text/event-stream; charset=utf-8")


def says(*messages: Any) -> App:
    """An engine app that sends these messages and ends."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        for message in messages:
            await send(dict(message))

    return app


def waits_after(*messages: Any) -> App:
    """An engine app that sends these messages, and then ends only when the caller leaves."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        for message in messages:
            await send(dict(message))
        while (await receive())["type"] != "http.disconnect":
            pass

    return app


class Reached:
    """An engine app that answers 200 and remembers what reached it."""

    def __init__(self) -> None:
        self.scopes: list[Any] = []
        self.bodies: list[bytes] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.scopes.append(scope)
        message = await receive()
        assert message["more_body"] is False
        self.bodies.append(message["body"])
        await send(start())
        await send(body(b"{}"))


def gate_of(app: App, hard_limit: int = 8, role: Role = Role.PLAIN) -> Gate:
    return Gate(GateIdentity("r-1", "secret", role), app, hard_limit)


# --- who may come in -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"x-twinpool-replica": "r-1"},
        {"x-twinpool-replica": "r-1", "x-twinpool-token": ""},
        {"x-twinpool-replica": "r-1", "x-twinpool-token": "secre"},
        {"x-twinpool-replica": "r-1", "x-twinpool-token": "secret2"},
        {"x-twinpool-replica": "r-1", "x-twinpool-token": "sécret"},
        {"authorization": "Bearer secret"},
    ],
)
async def test_without_the_token_nothing_reaches_the_engine(headers: dict[str, str]) -> None:
    """A wrong or missing token is 401, whatever else is right."""
    engine = Reached()
    gate = gate_of(engine)
    call = await Call(gate, headers).done()
    assert (call.status, call.error["code"], engine.scopes) == (401, "not_found", [])
    assert "x-twinpool-not-accepted" not in call.headers
    assert (gate.inflight, gate.accepted) == (0, 0)


@pytest.mark.parametrize(
    "headers",
    [
        {"x-twinpool-token": "secret", "x-twinpool-replica": "r-2"},
        {"x-twinpool-token": "secret", "x-twinpool-replica": ""},
        {"x-twinpool-token": "secret"},
        {"x-twinpool-token": "token of r-2", "x-twinpool-replica": "r-2"},
    ],
)
async def test_another_replica_was_meant(headers: dict[str, str]) -> None:
    """A request for a former replica of this address is not accepted, with the former one's token, too."""
    engine = Reached()
    call = await Call(gate_of(engine), headers).done()
    assert (call.status, call.headers["x-twinpool-not-accepted"], engine.scopes) == (421, "wrong-replica", [])


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/metrics"),
        ("POST", "/v1/embeddings"),
        ("POST", "/v1/models"),
        ("GET", CHAT),
        ("HEAD", "/v1/models"),
        ("POST", "/v1/chat/completions/"),
        ("POST", "/v1/load_lora_adapter"),
        ("POST", "/v1/chat/../chat/completions"),
        ("GET", "/"),
    ],
)
async def test_only_listed_paths(method: str, path: str) -> None:
    """Whatever else the engine's app serves stays inside: 404."""
    engine = Reached()
    call = await Call(gate_of(engine), path=path, method=method).done()
    assert (call.status, call.error["code"], engine.scopes) == (404, "not_found", [])
    assert call.is_complete()


@pytest.mark.parametrize(
    ("method", "path"), [("POST", CHAT), ("POST", "/v1/completions"), ("GET", "/v1/models")]
)
async def test_listed_paths(method: str, path: str) -> None:
    """The two generation endpoints and the list of models."""
    engine = Reached()
    call = await Call(gate_of(engine), path=path, method=method, body=b"" if method == "GET" else BODY).done()
    assert (call.status, [scope["path"] for scope in engine.scopes]) == (200, [path])


@pytest.mark.parametrize("kind", ["lifespan", "websocket"])
async def test_other_scopes_are_left_alone(kind: str) -> None:
    """A websocket or lifespan scope neither fails nor reaches the engine."""
    engine = Reached()
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": f"{kind}.connect"}

    async def send(message: Any) -> None:
        sent.append(message)

    await gate_of(engine)({"type": kind, "path": CHAT, "headers": []}, receive, send)
    assert (engine.scopes, sent) == ([], [])


async def test_a_draining_replica_refuses() -> None:
    """New work goes elsewhere for free; open streams go on."""
    release = asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send(STREAM)
        await send(body(EVENT, more=True))
        await release.wait()
        await send(body(DONE))

    gate = gate_of(app)
    begun = Call(gate)
    await begun.until_messages(2)
    gate.draining = True
    late = await Call(gate).done()
    assert (late.status, late.headers["x-twinpool-not-accepted"]) == (503, "draining")
    assert late.error["code"] == "no_capacity"
    release.set()
    await begun.done()
    assert (begun.body, gate.inflight) == (EVENT + DONE, 0)


async def test_the_hard_limit() -> None:
    """One more than the limit is refused as full, and a slot is free again as soon as a request ends."""
    gate = gate_of(waits_after(), hard_limit=3)
    calls = [Call(gate) for _ in range(3)]
    await asyncio.sleep(0)
    full = await Call(gate).done()
    assert (gate.inflight, full.status, full.headers["x-twinpool-not-accepted"]) == (3, 503, "full")
    calls[0].leave()
    await calls[0].done()
    assert gate.inflight == 2
    fourth = Call(gate)
    await asyncio.sleep(0)
    assert (gate.inflight, fourth.messages) == (3, [])
    for call in (*calls, fourth):
        call.leave()
        await call.done()
    assert (gate.inflight, gate.accepted) == (0, 4)


# --- what reaches the engine -----------------------------------------------------------------------


async def test_the_engine_gets_the_edited_request() -> None:
    """The body without what is ours, in one piece, with its length; our headers and the tier's priority."""
    engine = Reached()
    sent = {
        **RIGHT,
        "x-twinpool-tier": "batch",
        "x-vllm-priority": "-9",
        "x-session-id": "s",
        "x-request-id": "q",
    }
    pieces = (b'{"service_tier":"flex",', b'"priority":-1,', b'"n" : 1}')
    call = await Call(gate_of(engine), sent, pieces=pieces).done()
    assert engine.bodies == [b'{"n":1}']
    assert engine.scopes[0]["headers"] == [
        (b"content-type", b"application/json"),
        (b"x-request-id", b"q"),
        (b"content-length", b"7"),
        (b"x-vllm-priority", b"20"),
    ]
    assert call.body == b'{"service_tier":"flex"}'


async def test_an_unknown_tier_is_standard() -> None:
    """A newer ingress may know a tier that this replica does not: it is served as standard."""
    engine = Reached()
    await Call(gate_of(engine), {**RIGHT, "x-twinpool-tier": "platinum"}).done()
    assert dict(engine.scopes[0]["headers"])[b"x-vllm-priority"] == b"10"


@pytest.mark.parametrize(
    ("sent", "code", "param"),
    [
        (b'{"chat_template":"x"}', "unsafe_parameter", "chat_template"),
        (
            b'{"chat_template_kwargs":{"chat_template":"x"}}',
            "unsafe_parameter",
            "chat_template_kwargs.chat_template",
        ),
        (b'{"priority":-1,"temperature":NaN}', "invalid_json", None),
    ],
)
async def test_refused_bodies_do_not_reach_the_engine(sent: bytes, code: str, param: str | None) -> None:
    """A client's template, or a body that only a laxer parser could read, is a permanent 400."""
    engine = Reached()
    gate = gate_of(engine)
    call = await Call(gate, body=sent).done()
    assert (call.status, call.error["code"], call.error["param"]) == (400, code, param)
    assert call.headers["x-should-retry"] == "false"
    assert (engine.scopes, gate.inflight) == ([], 0)


async def test_a_caller_that_leaves_while_sending() -> None:
    """Half a request never reaches the engine."""
    engine = Reached()
    gate = gate_of(engine)
    call = Call(gate, pieces=(b'{"mod', b""))
    call._inbox.pop()
    call.leave()
    await call.done()
    assert (engine.scopes, call.messages, gate.inflight, gate.accepted) == ([], [], 0, 1)


# --- how an answer leaves --------------------------------------------------------------------------


async def test_a_stream_passes_as_it_is() -> None:
    """Start, every byte, and the end; the headers are the engine's."""
    pieces = [EVENT, 'data: {"é😀": 1}\n\n'.encode(), DONE]
    app = says(STREAM, *(body(piece, more=True) for piece in pieces), body(b""))
    gate = gate_of(app)
    call = await Call(gate).done()
    assert (call.status, call.body, call.is_complete()) == (200, b"".join(pieces), True)
    assert call.messages[0]["headers"] == [(b"Content-Type", b"text/event-stream; charset=utf-8")]
    assert gate.inflight == 0


async def test_the_start_waits_for_the_first_byte() -> None:
    """No status has left before there is a byte of the answer, so that a loss can still be retried."""
    release = asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send(STREAM)
        await send(body(b"", more=True))
        await release.wait()
        await send(body(EVENT, more=True))
        await send(body(DONE))

    call = Call(gate_of(app))
    for _ in range(20):
        await asyncio.sleep(0)
    assert call.messages == []
    release.set()
    await call.done()
    assert (call.status, call.body) == (200, EVENT + DONE)


async def test_a_whole_answer_gets_its_true_length() -> None:
    """An edited body has the length that it has; an answer in pieces is joined."""
    app = says(
        start(200, **{"content-length": b"16", "x-more": b"1"}),
        body(b'{"id":', more=True),
        body(b'"x","n":1}'),
    )
    call = await Call(gate_of(app), body=b'{"service_tier":"default"}').done()
    assert call.body == b'{"id":"x","n":1,"service_tier":"default"}'
    assert call.headers == {"content-type": "application/json", "x-more": "1", "content-length": "41"}
    assert len(call.body) == 41
    assert call.is_complete()


async def test_an_unedited_whole_answer_keeps_every_byte() -> None:
    """Nothing asked for, nothing changed."""
    raw = b' {"id" : "x", "big": 1e400}\n'
    call = await Call(gate_of(says(start(200, **{"content-length": b"28"}), body(raw)))).done()
    assert (call.body, call.headers["content-length"]) == (raw, "28")


async def test_usage_is_extended_only_on_request() -> None:
    """The header asks for it; pool and tier are those of the replica and the request."""
    app = says(start(), body(b'{"usage":{"total_tokens":2}}'))
    asked = {**RIGHT, "x-twinpool-usage": "extended", "x-twinpool-tier": "interactive"}
    call = await Call(gate_of(app, role=Role.SPECULATIVE), asked).done()
    expected = b'{"usage":{"twinpool":{"pool":"speculative","tier":"interactive"},"total_tokens":2}}'
    assert (expected, str(len(expected))) == (call.body, call.headers["content-length"])
    other = await Call(gate_of(app), {**RIGHT, "x-twinpool-usage": "yes"}).done()
    assert other.body == b'{"usage":{"total_tokens":2}}'


@pytest.mark.parametrize(
    ("status", "said", "expected_status", "code", "param"),
    [
        (
            400,
            {"message": "bad", "type": "BadRequestError", "param": None, "code": 400},
            400,
            "invalid_request",
            None,
        ),
        (
            404,
            {
                "message": "The model `x` does not exist.",
                "type": "NotFoundError",
                "param": "model",
                "code": 404,
            },
            404,
            "model_not_found",
            "model",
        ),
        (
            400,
            {"message": "This model's maximum context length is 2048 tokens.", "type": "x", "code": 400},
            400,
            "context_length_exceeded",
            None,
        ),
        (
            500,
            {"message": "boom", "type": "InternalServerError", "param": None, "code": 500},
            500,
            "internal_error",
            None,
        ),
    ],
)
async def test_the_engines_errors_are_normalised(
    status: int, said: dict[str, Any], expected_status: int, code: str, param: str | None
) -> None:
    """A caller reads our catalogue's words, with the headers that belong to them; nothing is retried."""
    raw = json.dumps({"error": said}).encode()
    gate = gate_of(
        says(start(status, **{"content-length": str(len(raw)).encode(), "x-more": b"1"}), body(raw))
    )
    call = await Call(gate).done()
    assert (call.status, call.error["code"], call.error["param"]) == (expected_status, code, param)
    assert call.headers["content-length"] == str(len(call.body))
    assert (call.headers["content-type"], call.headers["x-more"]) == ("application/json", "1")
    assert call.headers.get("x-should-retry") == ("false" if status < 500 else None)
    assert "x-twinpool-lost" not in call.headers
    assert "x-twinpool-not-accepted" not in call.headers
    assert len(call.messages[0]["headers"]) == len(call.headers)


async def test_an_overloaded_engine_says_when_to_come_back() -> None:
    """A 503 of the engine carries Retry-After, as every 503 of ours does."""
    call = await Call(gate_of(says(start(503), body(b'{"error":"busy"}')))).done()
    assert (call.status, call.error["code"], call.headers["retry-after"]) == (503, "no_capacity", "1")


async def test_a_dead_engines_whole_answer_is_lost() -> None:
    """The 500 that vLLM answers once its engine is dead may be retried elsewhere."""
    gate = gate_of(says(start(500), body(DEAD_BODY)))
    call = await Call(gate).done()
    assert (call.status, call.error["code"], call.headers["x-twinpool-lost"]) == (
        503,
        "engine_dead",
        "engine_dead",
    )
    assert call.is_complete()
    assert gate.inflight == 0


async def test_the_engines_error_event_is_replaced_by_one_of_ours() -> None:
    """In a begun stream the engine's event and what follows it are dropped; one event of ours ends it."""
    gate = gate_of(
        says(
            STREAM,
            body(EVENT, more=True),
            body(b"data: " + DEAD_BODY + b"\n\n", more=True),
            body(DONE, more=True),
            body(b""),
        )
    )
    call = await Call(gate).done()
    assert call.body.startswith(EVENT + b'data: {"error":')
    assert (call.body.count(b'data: {"error"'), call.body.count(b"[DONE]")) == (1, 0)
    last = json.loads(call.body.removeprefix(EVENT).removeprefix(b"data: "))
    assert last["error"]["code"] == "engine_dead"
    assert (call.is_complete(), gate.inflight) == (True, 0)


async def test_a_dead_engines_first_event_is_lost() -> None:
    """An error event in place of the first byte is a status that may be retried."""
    call = await Call(
        gate_of(says(STREAM, body(b"data: " + DEAD_BODY + b"\n\n", more=True), body(DONE)))
    ).done()
    assert (call.status, call.headers["x-twinpool-lost"], call.error["code"]) == (
        503,
        "engine_dead",
        "engine_dead",
    )
    assert call.headers["content-type"] == "application/json"


async def test_the_callers_mistake_in_an_event_is_not_a_loss() -> None:
    """A 400 that vLLM finds only inside the stream is the caller's to mend: no other replica is tried."""
    said = b'data: {"error":{"message":"bad regex","type":"BadRequestError","param":null,"code":400}}\n\n'
    call = await Call(gate_of(says(STREAM, body(said, more=True), body(DONE)))).done()
    assert (call.status, call.error["code"], call.error["message"]) == (400, "invalid_request", "bad regex")
    assert "x-twinpool-lost" not in call.headers


# --- how open requests end -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "status", "lost"),
    [
        (DEAD, 503, "engine_dead"),
        (HUNG, 504, "engine_hung"),
        (errors.answer(Code.STREAM_INTERRUPTED, "stopping"), 502, None),
    ],
)
@pytest.mark.parametrize(
    "messages", [(), (STREAM,), (STREAM, body(b"", more=True)), (start(), body(b"{", more=True))]
)
async def test_broken_open_before_the_first_byte(
    messages: tuple[Any, ...], error: errors.ErrorAnswer, status: int, lost: str | None
) -> None:
    """A complete error with its status; marked as lost where the engine is dead or hung."""
    gate = gate_of(waits_after(*messages))
    call = Call(gate)
    for _ in range(10):
        await asyncio.sleep(0)
    gate.break_open(error)
    await call.done()
    assert (call.status, call.error["code"]) == (status, error.code.value)
    assert call.headers.get("x-twinpool-lost") == lost
    assert (call.is_complete(), gate.inflight) == (True, 0)


async def test_broken_open_after_the_first_byte() -> None:
    """Exactly one error event, then the end; no [DONE]."""
    gate = gate_of(waits_after(STREAM, body(EVENT, more=True)))
    calls = [Call(gate) for _ in range(3)]
    for call in calls:
        await call.until_messages(2)
    gate.break_open(DEAD)
    for call in calls:
        await call.done()
        assert call.body == EVENT + errors.event(DEAD)
        assert call.is_complete()
    assert gate.inflight == 0


async def test_after_a_break_new_work_is_refused() -> None:
    """A failed replica answers with its failure, and says that nothing was accepted."""
    engine = Reached()
    gate = gate_of(engine)
    gate.break_open(HUNG)
    call = await Call(gate).done()
    assert (call.status, call.error["code"], call.headers["x-twinpool-not-accepted"]) == (
        504,
        "engine_hung",
        "failed",
    )
    assert (engine.scopes, gate.inflight, gate.accepted) == ([], 0, 0)


async def test_breaking_twice_is_breaking_once() -> None:
    """A second break finds nothing open and says nothing more."""
    gate = gate_of(waits_after(STREAM, body(EVENT, more=True)))
    call = Call(gate)
    await call.until_messages(2)
    gate.break_open(DEAD)
    gate.break_open(HUNG)
    await call.done()
    gate.break_open(HUNG)
    assert (call.body.count(b'data: {"error"'), gate.inflight) == (1, 0)


async def test_a_finished_answer_is_not_broken() -> None:
    """An answer that is complete stays complete, also where the engine's app has not returned yet."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send(STREAM)
        await send(body(EVENT + DONE))
        await asyncio.sleep(60)

    gate = gate_of(app)
    call = Call(gate)
    await call.until_messages(2)
    gate.break_open(DEAD)
    await call.done()
    assert (call.body, gate.inflight) == (EVENT + DONE, 0)


@pytest.mark.parametrize("last_words", [b"data: " + DEAD_BODY + b"\n\n", EVENT, DONE, b""])
async def test_an_app_that_speaks_while_it_is_cancelled(last_words: bytes) -> None:
    """What the engine's app sends in its own clean-up does not follow our error."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send(STREAM)
        await send(body(EVENT, more=True))
        try:
            await asyncio.sleep(60)
        finally:
            await send(body(last_words))

    gate = gate_of(app)
    call = Call(gate)
    await call.until_messages(2)
    gate.break_open(HUNG)
    await call.done()
    assert (call.body, gate.inflight) == (EVENT + errors.event(HUNG), 0)
    assert call.is_complete()


@pytest.mark.parametrize("messages", [(), (STREAM,), (start(), body(b"{", more=True))])
async def test_an_exception_before_the_first_byte(messages: tuple[Any, ...]) -> None:
    """A failure of the engine's app is a 500 of ours, without its text."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await says(*messages)(scope, receive, send)
        raise RuntimeError("a secret path")

    gate = gate_of(app)
    call = await Call(gate).done()
    assert (call.status, call.error["code"], gate.inflight) == (500, "internal_error", 0)
    assert b"secret" not in call.body
    assert "x-twinpool-lost" not in call.headers


async def test_an_exception_after_the_first_byte() -> None:
    """In a begun stream the same failure is one error event."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await says(STREAM, body(EVENT, more=True))(scope, receive, send)
        raise RuntimeError("boom")

    gate = gate_of(app)
    call = await Call(gate).done()
    assert call.body.startswith(EVENT + b'data: {"error":')
    assert (call.is_complete(), gate.inflight) == (True, 0)


@pytest.mark.parametrize("messages", [(), (STREAM, body(EVENT, more=True))])
async def test_cancelled_from_outside(messages: tuple[Any, ...]) -> None:
    """A server that cancels its handler ends the engine's work with it."""
    ended = asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        try:
            await waits_after(*messages)(scope, receive, send)
        finally:
            ended.set()

    gate = gate_of(app)
    call = Call(gate)
    for _ in range(10):
        await asyncio.sleep(0)
    call.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call.task
    assert (ended.is_set(), gate.inflight, len(call.messages)) == (True, 0, len(messages))


@pytest.mark.parametrize("messages", [(), (STREAM, body(EVENT, more=True))])
async def test_the_caller_leaves(messages: tuple[Any, ...]) -> None:
    """The engine's app is told, and the slot is free."""
    gate = gate_of(waits_after(*messages))
    call = Call(gate)
    for _ in range(10):
        await asyncio.sleep(0)
    assert gate.inflight == 1
    call.leave()
    await call.done()
    assert gate.inflight == 0


async def test_a_failing_connection_frees_the_slot() -> None:
    """A send that fails, as on a closed connection, ends the request and no other."""
    gate = gate_of(says(STREAM, body(EVENT, more=True), body(DONE)))

    async def receive() -> Any:
        return {"type": "http.request", "body": BODY, "more_body": False}

    async def send(message: Any) -> None:
        raise OSError("closed")

    scope = {
        "type": "http",
        "method": "POST",
        "path": CHAT,
        "headers": [(k.encode(), v.encode()) for k, v in RIGHT.items()],
    }
    with pytest.raises(OSError, match="closed"):
        await gate(scope, receive, send)
    assert gate.inflight == 0
