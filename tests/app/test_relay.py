"""The way of a request through the ingress: endpoint, search, relay and upstream, with real connections."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from random import Random
from typing import Any

import msgspec
import pytest

from app.admission.desk import Desk
from app.endpoint import MAX_BODY, GenerationEndpoint
from app.lines import Lines
from app.membership import Membership
from app.relay import Relay
from app.upstream import Upstream
from autoscaling.request_line import Outcome
from autoscaling.routing_rules import RoutingRules, TierRules
from autoscaling.types import ReplicaView, Role, Tier
from tests.app.replicas import (
    DONE,
    EVENT,
    STREAM_HEAD,
    Behaviour,
    Connection,
    Replica,
    chunk,
    says,
    says_and_closes,
    says_and_waits,
    streams,
    whole,
)
from tests.app.views import snapshot

CHAT = "/v1/chat/completions"
BODY = b'{"model":"m"}'
JSON_TYPE = {"content-type": "application/json"}
FIRST_BYTE_LIMIT_S = 10.0
BETWEEN_CHUNKS_S = 1.0
EMOJI = "👩‍👩‍👧‍👦 你好 ёжик"


def refusal(status: int, why: str) -> Behaviour:
    """A replica that does not accept."""
    return says(whole(status, b'{"error":{}}', x_twinpool_not_accepted=why))


class Call:
    """One client request at the endpoint, and everything that came back."""

    def __init__(
        self,
        app: GenerationEndpoint,
        headers: dict[str, str] | None = None,
        *,
        body: bytes = BODY,
        path: str = CHAT,
        more_body: bool = False,
        fails: bool = False,
    ) -> None:
        self._inbox = [{"type": "http.request", "body": body, "more_body": more_body}]
        self._gone = asyncio.Event()
        self._fails = fails
        self.messages: list[Any] = []
        named = [(k.lower().encode(), v.encode()) for k, v in (JSON_TYPE | (headers or {})).items()]
        self.task = asyncio.create_task(
            app({"type": "http", "path": path, "headers": named}, self._receive, self._send)
        )

    async def _receive(self) -> Any:
        if self._inbox:
            return self._inbox.pop()
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        if self._fails and message["type"] == "http.response.body":
            raise OSError("closed")
        self.messages.append(dict(message))

    def leave(self) -> None:
        self._gone.set()

    async def done(self) -> Call:
        await asyncio.wait_for(asyncio.shield(self.task), 10)
        return self

    @property
    def status(self) -> int:
        return int(self.messages[0]["status"])

    @property
    def headers(self) -> dict[str, str]:
        pairs = [(k.decode().lower(), v.decode()) for k, v in self.messages[0]["headers"]]
        assert len(dict(pairs)) == len(pairs), f"a header is there twice: {pairs}"
        return dict(pairs)

    @property
    def body(self) -> bytes:
        return b"".join(message["body"] for message in self.messages[1:])

    @property
    def code(self) -> str:
        return str(json.loads(self.body)["error"]["code"])

    def is_complete(self) -> bool:
        """One start, bodies, and exactly one last body."""
        kinds = [message["type"] for message in self.messages]
        more = [message.get("more_body", False) for message in self.messages[1:]]
        right = kinds == ["http.response.start"] + ["http.response.body"] * (len(kinds) - 1)
        return right and more == [True] * (len(more) - 1) + [False]


class Ingress:
    """The request path of one ingress, and the replicas it knows."""

    def __init__(self, first_byte_limit_s: float) -> None:
        self.membership = Membership(time.monotonic)
        self.upstream = Upstream(first_byte_limit_s, BETWEEN_CHUNKS_S)
        self.desk = Desk(self.membership, Random(1).randrange)
        self.relay = Relay(self.membership, self.upstream, self.desk)
        self.lines = Lines()
        self.endpoint = GenerationEndpoint(self.membership, self.relay, self.lines)
        self._replicas: list[Replica] = []
        self._seq = 0

    async def replica(self, replica_id: str, behave: Behaviour, role: Role = Role.PLAIN) -> Replica:
        """Start a replica; `know` makes it known."""
        made = await Replica(replica_id, behave, role).start()
        self._replicas.append(made)
        return made

    def know(self, *views: ReplicaView) -> None:
        """A complete snapshot arrives."""
        self._seq += 1
        self.membership.accept(snapshot(*views, seq=self._seq), time.monotonic())

    async def one(self, behave: Behaviour) -> Replica:
        """The only replica."""
        made = await self.replica("a", behave)
        self.know(made.view())
        return made

    async def two(self, first: Behaviour, second: Behaviour) -> tuple[Replica, Replica]:
        """Two replicas of the plain pool; the first is emptier, and so tried first."""
        a, b = await self.replica("a", first), await self.replica("b", second)
        self.know(a.view(), b.view(inflight=3))
        return a, b

    def desk_deadline(self, deadline_s: float) -> None:
        """Let every tier wait only so long."""
        rules = RoutingRules(tiers={tier: TierRules(deadline_s=deadline_s) for tier in Tier})
        self._seq += 1
        views = [one.replica for one in self.membership.candidates_view(time.monotonic())]
        known = replace(snapshot(*views, seq=self._seq), routing=rules)
        self.membership.accept(known, time.monotonic())

    def call(self, headers: dict[str, str] | None = None, **more: Any) -> Call:
        return Call(self.endpoint, headers, **more)

    def present(self) -> list[str]:
        return [c.replica.replica_id for c in self.membership.candidates_view(time.monotonic())]

    async def close(self) -> None:
        await self.upstream.close()
        for replica in self._replicas:
            await replica.stop()


@pytest.fixture
async def ingress(request: pytest.FixtureRequest) -> AsyncIterator[Ingress]:
    made = Ingress(getattr(request, "param", FIRST_BYTE_LIMIT_S))
    yield made
    inflight = made.membership.total_inflight
    await made.close()
    assert inflight == 0, "a request is still counted as open"


async def within(seconds: float, condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.005)


# --- what reaches a replica ------------------------------------------------------------------------


@pytest.mark.parametrize("path", [CHAT, "/v1/completions"])
@pytest.mark.parametrize(
    "body",
    [
        b' {\n "model" : "m",\t"temperature":1e400, "seed":123456789012345678901234567890 }\r\n',
        '{"messages":[{"content":"é😀 \\u00e9 \\/"}],"a":1,"a":2}'.encode(),
        b'{"prompt":"' + b"x" * 2_000_000 + b'"}',
        b'{"priority":-1,"service_tier":"flex","vllm_xargs":{}}',
    ],
)
async def test_the_body_is_passed_byte_for_byte(ingress: Ingress, path: str, body: bytes) -> None:
    """The ingress reads a body and changes none: what is ours in it is the replica's to take out."""
    a = await ingress.one(says(whole()))
    call = await ingress.call(body=body, path=path).done()
    assert call.status == 200
    assert [(sent.line, sent.body) for sent in a.requests] == [(f"POST {path} HTTP/1.1", body)]


async def test_only_listed_headers_are_passed(ingress: Ingress) -> None:
    """An allow-list, and what the replica must know: its id, its token, the tier, a request id."""
    a = await ingress.one(says(whole()))
    sent = {
        "content-type": "application/vnd.x+json; charset=utf-8",
        "accept": "text/event-stream",
        "traceparent": "00-1-2-01",
        "tracestate": "a=b",
        "x-twinpool-usage": "extended",
        "x-request-id": "mine",
        "x-twinpool-tier": "batch",
        "x-twinpool-token": "guess",
        "x-twinpool-replica": "b",
        "x-twinpool-pool": "plain",
        "x-session-id": "s",
        "x-data-parallel-rank": "1",
        "x-vllm-priority": "-9",
        "authorization": "Bearer key",
        "cookie": "c=1",
        "connection": "close",
        "transfer-encoding": "chunked",
        "accept-encoding": "gzip",
        "x-forwarded-for": "1.2.3.4",
        "user-agent": "test",
    }
    await ingress.call(sent).done()
    headers = a.requests[0].headers
    assert re.fullmatch(r"mine-[0-9a-f]{6}", headers.pop("x-request-id"))
    assert headers == {
        "host": f"127.0.0.1:{a.port}",
        "content-length": "13",
        "content-type": "application/json",
        "accept": "text/event-stream",
        "traceparent": "00-1-2-01",
        "tracestate": "a=b",
        "x-twinpool-usage": "extended",
        "x-twinpool-tier": "batch",
        "x-twinpool-sequences": "1",
        "x-twinpool-token": "token-a",
        "x-twinpool-replica": "a",
    }


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("abc-123", True),
        ("A.b_c:d-9", True),
        ("x" * 128, True),
        ("x" * 129, False),
        ("", False),
        ("with space", False),
        ("new\\nline", False),
        ("{json}", False),
        ("é", False),
        (None, False),
    ],
)
async def test_request_ids(ingress: Ingress, sent: str | None, kept: bool) -> None:
    """A caller's id is kept where it is short and harmless, else replaced; the replica's has a suffix."""
    a = await ingress.one(says(whole(x_request_id="the engine's")))
    call = await ingress.call({} if sent is None else {"x-request-id": sent}).done()
    answered = call.headers["x-request-id"]
    if kept:
        assert answered == sent
    else:
        assert re.fullmatch(r"req-[0-9a-f]{24}", answered)
    assert re.fullmatch(re.escape(answered) + r"-[0-9a-f]{6}", a.requests[0].headers["x-request-id"])


async def test_equal_ids_do_not_meet(ingress: Ingress) -> None:
    """Two requests with one id have different ids in the engine."""
    a = await ingress.one(says(whole()))
    for _ in range(2):
        await ingress.call({"x-request-id": "same"}).done()
    one, two = (sent.headers["x-request-id"] for sent in a.requests)
    assert one != two


# --- what comes back -------------------------------------------------------------------------------


async def test_answer_headers(ingress: Ingress) -> None:
    """The replica's headers without those of the hop, and where the request went and why."""
    hop = {
        "connection": "keep-alive",
        "keep_alive": "timeout=5",
        "server": "uvicorn",
        "date": "now",
        "trailer": "x",
        "upgrade": "h2c",
        "x_request_id": "the engine's",
        "x_more": "1",
    }
    await ingress.one(says(whole(200, b'{"id":"x"}', **hop)))
    call = await ingress.call({"x-request-id": "r", "x-twinpool-tier": "batch"}).done()
    assert call.headers == {
        "content-type": "application/json",
        "content-length": "10",
        "x-more": "1",
        "x-twinpool-pool": "plain",
        "x-twinpool-tier": "batch",
        "x-twinpool-route-reason": "tier_batch",
        "x-twinpool-replica": "a",
        "x-request-id": "r",
    }
    assert (call.body, call.is_complete()) == (b'{"id":"x"}', True)


async def test_a_stream_is_passed_as_it_comes(ingress: Ingress) -> None:
    """Each piece leaves when it has come, and the chunked framing stays behind."""
    release = asyncio.Event()

    async def behave(connection: Connection) -> None:
        await connection.write(STREAM_HEAD, chunk(EVENT))
        await release.wait()
        await connection.write(chunk(EVENT + DONE), chunk(b""))

    await ingress.one(behave)
    call = ingress.call()
    await within(2, lambda: len(call.messages) >= 2)
    assert (call.status, call.body, call.task.done()) == (200, EVENT, False)
    assert "transfer-encoding" not in call.headers
    assert call.headers["content-type"] == "text/event-stream; charset=utf-8"
    release.set()
    await call.done()
    assert (call.body, call.is_complete()) == (EVENT + EVENT + DONE, True)


@pytest.mark.parametrize("framed", ["per byte", "as one"])
async def test_a_character_split_over_segments(ingress: Ingress, framed: str) -> None:
    """One byte per TCP segment, in chunks of one or of all: the bytes arrive unchanged."""
    raw = b"".join(b'data: {"content":"' + letter.encode() + b'"}\n\n' for letter in EMOJI) + DONE

    async def behave(connection: Connection) -> None:
        connection.writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await connection.write(STREAM_HEAD)
        size = 1 if framed == "per byte" else len(raw)
        wire = b"".join(chunk(raw[i : i + size]) for i in range(0, len(raw), size))
        for i in range(len(wire)):
            await connection.write(wire[i : i + 1])
            await asyncio.sleep(0)
        await connection.write(chunk(b""))

    await ingress.one(behave)
    call = await ingress.call().done()
    assert call.body == raw
    letters = [
        json.loads(line[6:])["content"] for line in call.body.decode().split("\n\n") if "content" in line
    ]
    assert "".join(letters) == EMOJI
    assert "\ufffd" not in call.body.decode()
    assert len(call.messages) > 10


@pytest.mark.parametrize("status", [400, 404, 500, 503])
async def test_a_replicas_own_error_is_the_answer(ingress: Ingress, status: int) -> None:
    """An error that the replica neither refused nor lost is passed on, and no other replica is tried."""
    _, b = await ingress.two(says(whole(status, b'{"error":{"code":"x"}}')), says(whole()))
    call = await ingress.call().done()
    assert (call.status, call.body, len(b.requests)) == (status, b'{"error":{"code":"x"}}', 0)
    assert call.is_complete()


async def test_an_empty_answer(ingress: Ingress) -> None:
    """An answer without a body is complete, too."""
    await ingress.one(says(whole(200, b"")))
    call = await ingress.call().done()
    assert (call.status, call.body, call.is_complete()) == (200, b"", True)


async def test_connections_are_kept(ingress: Ingress) -> None:
    """One connection serves request after request, also after a refusal."""
    answers = iter([refusal(503, "full"), says(whole()), streams(EVENT, DONE), says(whole())])

    async def behave(connection: Connection) -> None:
        await next(answers)(connection)

    a = await ingress.one(behave)
    for _ in range(3):
        assert (await ingress.call().done()).status == 200
    assert (len(a.requests), len(a.connections)) == (4, 1)


# --- not accepted: tried elsewhere for free --------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "why", "ejected"),
    [
        (421, "wrong-replica", False),
        (503, "full", False),
        (503, "draining", False),
        (504, "failed", True),
    ],
)
async def test_a_refusal_is_tried_elsewhere(ingress: Ingress, status: int, why: str, ejected: bool) -> None:
    """The caller sees the other replica's answer; no retry is counted; only a failed replica is out."""
    a, b = await ingress.two(refusal(status, why), streams(EVENT, DONE))
    call = await ingress.call().done()
    assert (call.status, call.body, call.headers["x-twinpool-replica"]) == (200, EVENT + DONE, "b")
    assert (len(a.requests), len(b.requests), ingress.relay.retries) == (1, 1, 0)
    assert ingress.present() == (["b"] if ejected else ["a", "b"])


async def test_a_refused_connection_is_tried_elsewhere(ingress: Ingress) -> None:
    """A replica that nobody is behind any more is out, and the request loses nothing."""
    a, b = await ingress.two(says(whole()), says(whole()))
    await a.stop()
    call = await ingress.call().done()
    assert (call.headers["x-twinpool-replica"], ingress.relay.retries, ingress.present()) == ("b", 0, ["b"])
    assert len(b.requests) == 1


async def test_the_search_ends_after_five(ingress: Ingress) -> None:
    """Six full replicas: five are asked, each once, and the caller may come back in a second."""
    replicas = [await ingress.replica(str(number), refusal(503, "full")) for number in range(6)]
    ingress.know(*(made.view() for made in replicas))
    began = time.monotonic()
    call = await ingress.call().done()
    assert time.monotonic() - began < 1.9
    assert (call.status, call.code, call.headers["retry-after"]) == (503, "no_capacity", "1")
    assert sorted(len(made.requests) for made in replicas) == [0, 1, 1, 1, 1, 1]
    assert ingress.relay.retries == 0


async def test_the_search_waits_for_room(ingress: Ingress) -> None:
    """A full replica is asked again a little later, not at once and not for ever."""
    answers = iter([refusal(503, "full"), refusal(503, "full"), says(whole())])

    async def behave(connection: Connection) -> None:
        await next(answers)(connection)

    a = await ingress.one(behave)
    began = time.monotonic()
    call = await ingress.call().done()
    assert (call.status, len(a.requests)) == (200, 3)
    assert 0.4 <= time.monotonic() - began


async def test_the_search_waits_for_a_replica(ingress: Ingress) -> None:
    """A request that finds no replica which takes work waits, and takes the first that comes."""
    a = await ingress.replica("a", says(whole()))
    ingress.know(a.view(accepting=False))
    call = ingress.call()
    await asyncio.sleep(0.2)
    assert (call.messages, a.requests) == ([], [])
    ingress.know(a.view(seq=2))
    await call.done()
    assert (call.status, len(a.requests)) == (200, 1)


async def test_the_search_ends_after_two_seconds(ingress: Ingress) -> None:
    """Without any replica that takes work the answer is 503, and it says what is missing."""
    a = await ingress.replica("a", says(whole()))
    ingress.know(a.view(accepting=False))
    began = time.monotonic()
    call = await ingress.call().done()
    assert 1.9 <= time.monotonic() - began < 4.5
    assert (call.status, call.code, call.headers["retry-after"], a.requests) == (503, "not_ready", "1", [])


async def test_vanished_nodes_do_not_add_up(ingress: Ingress) -> None:
    """Connections that nobody answers cost a second each: the search ends after two, whatever is left."""
    a = await ingress.replica("a", says(whole()))
    with contextlib.ExitStack() as stack:
        deaf = stack.enter_context(socket.socket())
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        for _ in range(2):  # the kernel drops what comes to a full queue
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(deaf.getsockname())
        views = [replace(a.view(), replica_id=str(number), port=deaf.getsockname()[1]) for number in range(5)]
        ingress.know(*views)
        began = time.monotonic()
        call = await ingress.call().done()
    assert 1.9 <= time.monotonic() - began < 4.5
    assert (call.status, call.code, len(ingress.present())) == (503, "no_capacity", 3)


# --- lost before the first byte: one retry ---------------------------------------------------------


async def _reset(connection: Connection) -> None:
    connection.reset()


LOSSES = {
    "closed without a byte": says_and_closes(),
    "reset": _reset,
    "closed behind the headers": says_and_closes(STREAM_HEAD),
    "closed inside the headers": says_and_closes(STREAM_HEAD[:40]),
    "half a body announced": says_and_closes(whole(200, b"0123456789")[:-10]),
    "said so": says(whole(503, b'{"error":{}}', x_twinpool_lost="engine_dead")),
}


@pytest.mark.parametrize("how", LOSSES)
async def test_a_loss_is_retried_once(ingress: Ingress, how: str) -> None:
    """The other replica answers, the lost one is out, and the retry is counted."""
    a, b = await ingress.two(LOSSES[how], streams(EVENT, DONE))
    call = await ingress.call().done()
    assert (call.status, call.body, call.headers["x-twinpool-replica"]) == (200, EVENT + DONE, "b")
    assert (len(a.requests), len(b.requests)) == (1, 1)
    assert (ingress.relay.retries, ingress.present()) == (1, ["b"])
    assert a.requests[0].body == b.requests[0].body == BODY


async def test_a_second_loss_is_the_end(ingress: Ingress) -> None:
    """Two replicas lost with one request: 502, and no third one is tried."""
    replicas = [await ingress.replica(name, says_and_closes()) for name in "abc"]
    ingress.know(*(made.view() for made in replicas))
    call = await ingress.call().done()
    assert (call.status, call.code, call.is_complete()) == (502, "replica_lost", True)
    assert sorted(len(made.requests) for made in replicas) == [0, 1, 1]
    assert ingress.relay.retries == 1


async def test_a_loss_without_another_replica(ingress: Ingress) -> None:
    """The retry waits for a replica as every request does, and takes one that comes."""
    a = await ingress.one(says_and_closes())
    call = ingress.call()
    await within(2, lambda: len(a.requests) == 1)
    b = await ingress.replica("b", says(whole()))
    ingress.know(a.view(), b.view())
    await call.done()
    assert (call.status, len(a.requests), len(b.requests)) == (200, 1, 1)


async def test_a_late_loss_has_its_own_time_to_search(ingress: Ingress) -> None:
    """A replica that is lost after a long wait does not leave the retry without time for a refusal."""

    async def late(connection: Connection) -> None:
        await asyncio.sleep(2.1)  # longer than a search
        connection.close()

    a, b = await ingress.replica("a", late), await ingress.replica("b", refusal(503, "full"))
    c = await ingress.replica("c", says(whole()))
    ingress.know(a.view())
    call = ingress.call()
    await within(2, lambda: len(a.requests) == 1)
    ingress.know(a.view(), b.view(inflight=0), c.view(inflight=3))
    await call.done()
    assert (call.headers["x-twinpool-replica"], len(b.requests), len(c.requests)) == ("c", 1, 1)


async def test_the_retry_budget(ingress: Ingress) -> None:
    """A quiet service has three retries in ten seconds; the next loss is answered with 502 at once."""
    a, b = await ingress.replica("a", says_and_closes()), await ingress.replica("b", says(whole()))
    statuses = []
    for number in range(5):
        ingress.know(replace(a.view(), replica_id=f"a{number}"), b.view(seq=number, inflight=3))
        statuses.append((await ingress.call().done()).status)
    assert statuses == [200, 200, 200, 502, 502]
    assert (len(a.requests), len(b.requests), ingress.relay.retries) == (5, 3, 3)


# --- slow: never retried ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ingress", "behave", "limit"),
    [(1.5, says_and_waits(), "1.5"), (10.0, says_and_waits(STREAM_HEAD), "1")],
    indirect=["ingress"],
)
async def test_silence_before_the_first_byte(ingress: Ingress, behave: Behaviour, limit: str) -> None:
    """The wait for a first byte has its limit, and the message names it; the work is not done twice."""
    a, b = await ingress.two(behave, says(whole()))
    call = await ingress.call().done()
    assert (call.status, call.code) == (504, "upstream_timeout")
    assert f"sent nothing for {limit} seconds" in call.body.decode()
    assert (len(b.requests), ingress.relay.retries, ingress.present()) == (0, 0, ["a", "b"])
    await asyncio.wait_for(a.connections[0].gone.wait(), 1.0)


# --- broken after the first byte: one event, never a second generation ------------------------------


def error_of(raw: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(raw.removeprefix(b"data: "))["error"]
    return found


@pytest.mark.parametrize("how", ["close", "reset", "inside a chunk"])
async def test_a_stream_that_breaks_off(ingress: Ingress, how: str) -> None:
    """What has come, one error event, the end; no [DONE], no other replica, and this one is out."""

    async def behave(connection: Connection) -> None:
        await connection.write(STREAM_HEAD, chunk(EVENT), chunk(EVENT))
        if how == "inside a chunk":
            await connection.write(b"ff\r\n")
        await asyncio.sleep(0.05)
        if how == "reset":
            connection.reset()
        else:
            connection.close()

    _, b = await ingress.two(behave, streams(EVENT, DONE))
    call = await ingress.call().done()
    assert call.body.startswith(EVENT + EVENT + b'data: {"error":')
    assert call.body.endswith(b"\n\n")
    assert (call.body.count(b'data: {"error"'), call.body.count(b"[DONE]")) == (1, 0)
    assert error_of(call.body.removeprefix(EVENT + EVENT))["code"] == "stream_interrupted"
    assert (call.status, call.is_complete(), len(b.requests)) == (200, True, 0)
    assert (ingress.relay.retries, ingress.present()) == (0, ["b"])


@pytest.mark.parametrize("half", [EVENT[:-1], EVENT[:-2], EVENT[:7], EVENT + EVENT[:20]])
async def test_a_break_inside_an_event(ingress: Ingress, half: bytes) -> None:
    """The error is an event of its own, not the rest of a broken line."""
    await ingress.one(says_and_closes(STREAM_HEAD, *(chunk(half[i : i + 1]) for i in range(len(half)))))
    call = await ingress.call().done()
    last = call.body.strip().rpartition(b"\n\n")[2].strip()
    assert call.body.startswith(half)
    assert error_of(last)["code"] == "stream_interrupted"
    assert call.body.count(b'data: {"error"') == 1


async def test_silence_between_chunks(ingress: Ingress) -> None:
    """A begun stream that goes silent ends after the limit, counted from its last byte."""
    a, b = await ingress.two(says_and_waits(STREAM_HEAD + chunk(EVENT)), streams(EVENT))
    began = time.monotonic()
    call = await ingress.call().done()
    assert BETWEEN_CHUNKS_S <= time.monotonic() - began < 5.0 < FIRST_BYTE_LIMIT_S
    assert call.body.startswith(EVENT + b'data: {"error":')
    assert error_of(call.body.removeprefix(EVENT))["code"] == "upstream_timeout"
    assert (call.is_complete(), len(b.requests), ingress.present()) == (True, 0, ["b"])
    await asyncio.wait_for(a.connections[0].gone.wait(), 1.0)


async def test_a_slow_stream_is_not_silent(ingress: Ingress) -> None:
    """A stream may take longer than every limit, as long as something comes."""

    async def behave(connection: Connection) -> None:
        await connection.write(STREAM_HEAD)
        for _ in range(8):
            await connection.write(chunk(EVENT))
            await asyncio.sleep(0.2)
        await connection.write(chunk(DONE), chunk(b""))

    await ingress.one(behave)
    call = await ingress.call().done()
    assert call.body == EVENT * 8 + DONE


async def test_half_a_json_answer_is_no_answer(ingress: Ingress) -> None:
    """A whole answer that breaks off cannot be mended: the connection ends without its last byte."""
    _, b = await ingress.two(says_and_closes(whole(200, b"0123456789")[:-5]), says(whole()))
    call = ingress.call()
    with pytest.raises(Exception, match="ClientPayloadError"):
        await call.done()
    assert (call.body, call.is_complete(), len(b.requests)) == (b"01234", False, 0)


# --- the caller leaves -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "behave",
    [says_and_waits(), says_and_waits(STREAM_HEAD), says_and_waits(STREAM_HEAD, chunk(EVENT))],
    ids=["before the headers", "before the first byte", "in the stream"],
)
async def test_a_caller_that_leaves_stops_the_replica(ingress: Ingress, behave: Behaviour) -> None:
    """The connection to the replica is closed within a second, nothing is retried, and nobody is out."""
    a, b = await ingress.two(behave, says(whole()))
    call = ingress.call()
    await within(2, lambda: len(a.requests) == 1)
    await asyncio.sleep(0.05)
    assert ingress.membership.total_inflight == 1
    call.leave()
    await asyncio.wait_for(a.connections[0].gone.wait(), 1.0)
    await call.done()
    assert (ingress.membership.total_inflight, len(b.requests), ingress.present()) == (0, 0, ["a", "b"])
    assert not call.messages or not call.is_complete()


async def test_a_caller_that_leaves_while_we_search(ingress: Ingress) -> None:
    """The search ends with the caller; a replica that comes later is not asked."""
    a = await ingress.replica("a", says(whole()))
    ingress.know(a.view(accepting=False))
    call = ingress.call()
    await asyncio.sleep(0.1)
    call.leave()
    began = time.monotonic()
    await call.done()
    assert time.monotonic() - began < 1.5
    ingress.know(a.view(seq=2))
    await asyncio.sleep(0.15)
    assert (call.messages, a.requests) == ([], [])


async def test_a_caller_that_leaves_while_sending(ingress: Ingress) -> None:
    """Half a request goes nowhere."""
    a = await ingress.one(says(whole()))
    call = ingress.call(body=b'{"mod', more_body=True)
    await asyncio.sleep(0)
    call.leave()
    await call.done()
    assert (call.messages, a.requests) == ([], [])


async def test_a_connection_of_the_caller_that_fails(ingress: Ingress) -> None:
    """A send that fails ends the replica's work as well."""
    a = await ingress.one(says_and_waits(STREAM_HEAD, chunk(EVENT)))
    call = ingress.call(fails=True)
    with pytest.raises(OSError, match="closed"):
        await call.done()
    await asyncio.wait_for(a.connections[0].gone.wait(), 1.0)


async def test_cancelled_from_outside(ingress: Ingress) -> None:
    """An ingress that ends its handler leaves no request behind."""
    a = await ingress.one(says_and_waits(STREAM_HEAD, chunk(EVENT)))
    call = ingress.call()
    await within(2, lambda: len(call.messages) == 2)
    call.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call.task
    await asyncio.wait_for(a.connections[0].gone.wait(), 1.0)


async def test_many_callers_leave_at_once(ingress: Ingress) -> None:
    """Fifty streams begun, fifty callers gone: every connection closed, nothing counted."""
    a = await ingress.replica("a", says_and_waits(STREAM_HEAD, chunk(EVENT)))
    ingress.know(replace(a.view(), hard_share=50, soft_share=50))
    calls = [ingress.call() for _ in range(50)]
    await within(5, lambda: all(len(call.messages) == 2 for call in calls))
    for call in calls:
        call.leave()
    await within(1, lambda: all(connection.gone.is_set() for connection in a.connections))
    for call in calls:
        await call.done()
    assert (len(a.connections), ingress.membership.total_inflight) == (50, 0)


# --- answers without a replica ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "body", "status", "code"),
    [
        ({}, b'{"model":"unknown"}', 404, "model_not_found"),
        ({}, b"{", 400, "invalid_json"),
        ({}, b"[]", 400, "invalid_body"),
        ({}, b'{"chat_template":"x"}', 400, "unsafe_parameter"),
        ({}, b'{"service_tier":"gold"}', 400, "invalid_value"),
        ({"x-twinpool-tier": "gold"}, BODY, 400, "invalid_value"),
        ({"x-twinpool-pool": "gold"}, BODY, 400, "invalid_value"),
        ({"content-type": "text/plain"}, BODY, 415, "unsupported_media_type"),
        ({}, b" " * (MAX_BODY + 1), 413, "request_too_large"),
    ],
)
async def test_mistakes_touch_no_replica(
    ingress: Ingress, headers: dict[str, str], body: bytes, status: int, code: str
) -> None:
    """What is the caller's to mend is said here, with a request id, and reaches nobody."""
    a = await ingress.one(says(whole()))
    call = await ingress.call({"x-request-id": "r"} | headers, body=body).done()
    assert (call.status, call.code, call.headers["x-request-id"]) == (status, code, "r")
    assert call.headers["content-length"] == str(len(call.body))
    assert (call.headers["x-should-retry"], call.is_complete()) == ("false", True)
    assert a.connections == []


async def test_before_the_first_snapshot(ingress: Ingress) -> None:
    """Nothing is known yet: 503 at once, with when to come back."""
    began = time.monotonic()
    call = await ingress.call().done()
    assert (call.status, call.code, call.headers["retry-after"]) == (503, "not_ready", "5")
    assert time.monotonic() - began < 1.5


async def test_a_parameter_that_nobody_takes(ingress: Ingress) -> None:
    """Refused here, at once, when no replica that may serve the request takes it; else served elsewhere."""
    narrow = await ingress.replica("s", says(whole()), Role.SPECULATIVE)
    wide = await ingress.replica("p", says(whole()))
    ingress.know(narrow.view(refuses=("min_p",)), wide.view())
    body, tier = b'{"min_p":0.1}', {"x-twinpool-tier": "interactive"}
    served = await ingress.call(tier, body=body).done()
    assert (served.headers["x-twinpool-pool"], served.headers["x-twinpool-route-reason"]) == (
        "plain",
        "capability",
    )
    refused = await ingress.call(tier | {"x-twinpool-pool": "speculative"}, body=body).done()
    assert (refused.status, refused.code) == (400, "parameter_not_supported")
    assert (len(narrow.requests), len(wide.requests)) == (0, 1)


NARROW_400 = whole(400, b'{"error":{"message":"m","type":"t","param":null,"code":"invalid_request"}}')


async def narrow_and_wide(
    ingress: Ingress, first: Behaviour, second: Behaviour, **capabilities: Any
) -> tuple[Replica, Replica]:
    """A speculative replica that refuses a parameter, and a plain one that refuses none."""
    narrow = await ingress.replica("s", first, Role.SPECULATIVE)
    wide = await ingress.replica("p", second)
    view = wide.view()
    ingress.know(
        narrow.view(refuses=("logit_bias",)),
        replace(view, capabilities=replace(view.capabilities, **capabilities)),
    )
    return narrow, wide


@pytest.mark.parametrize("capabilities", [{}, {"max_model_len": 4096}], ids=["refuses less", "longer"])
async def test_a_400_of_a_narrower_replica_is_asked_of_a_wider_one(
    ingress: Ingress, capabilities: dict[str, Any]
) -> None:
    """A caller never gets a 400 that the other pool would have served; the gap is on the request's line."""
    narrow, wide = await narrow_and_wide(
        ingress, says(NARROW_400), says(whole(200, b'{"id":"x"}')), **capabilities
    )
    call = await ingress.call({"x-twinpool-tier": "interactive"}).done()
    assert (call.status, call.body) == (200, b'{"id":"x"}')
    assert ("plain", "capability") == (
        call.headers["x-twinpool-pool"],
        call.headers["x-twinpool-route-reason"],
    )
    assert (1, 1) == (len(narrow.requests), len(wide.requests))
    line = ingress.lines.oldest()[0]
    assert (True, 2, Outcome.OK, 0) == (line.wider, line.attempts, line.outcome, ingress.relay.retries)


async def test_a_wider_replica_without_soft_room_is_asked_all_the_same(ingress: Ingress) -> None:
    """A 400 costs it little, and an answer is what the caller came for; at its hard limit the 400 stands."""
    narrow, wide = await narrow_and_wide(ingress, says(NARROW_400), says(whole(200, b'{"id":"x"}')))
    for _ in range(4):  # the soft share
        ingress.membership.started("p")
    call = await ingress.call({"x-twinpool-tier": "interactive"}).done()
    assert (200, 1, 1) == (call.status, len(narrow.requests), len(wide.requests))
    for _ in range(4):  # the hard share
        ingress.membership.started("p")
    call = await ingress.call({"x-twinpool-tier": "interactive"}).done()
    assert (400, "invalid_request", 1) == (call.status, call.code, len(wide.requests))
    for _ in range(8):
        ingress.membership.finished("p")


@pytest.mark.parametrize(
    "behave",
    [
        says(whole(400, b'{"error":{}}')),
        refusal(503, "full"),
        refusal(503, "failed"),
        says(whole(502, b'{"error":{}}', x_twinpool_lost="engine_dead")),
        says_and_closes(b""),
    ],
    ids=["refused too", "not accepted", "unreachable", "lost", "gone"],
)
async def test_the_first_400_stands_until_there_is_a_better_answer(
    ingress: Ingress, behave: Behaviour
) -> None:
    """Whatever the wider replica does but answer, the caller gets the refusal that is there already."""
    narrow, wide = await narrow_and_wide(ingress, says(NARROW_400), behave)
    call = await ingress.call({"x-twinpool-tier": "interactive"}).done()
    assert (400, "invalid_request") == (call.status, call.code)
    assert "speculative" == call.headers["x-twinpool-pool"]
    assert (1, 1, 0) == (len(narrow.requests), len(wide.requests), ingress.relay.retries)
    line = ingress.lines.oldest()[0]
    assert (False, Outcome.CALLER, 400, "tier_interactive") == (
        line.wider, line.outcome, line.status, line.reason,
    )  # fmt: skip


@pytest.mark.parametrize(
    "headers",
    [
        {"x-twinpool-pool": "speculative", "x-twinpool-tier": "interactive"},  # a pin is never left
        {"x-twinpool-tier": "batch"},  # on the plain pool, and nothing is wider than that
    ],
)
async def test_a_400_without_a_wider_replica_is_the_answer(ingress: Ingress, headers: dict[str, str]) -> None:
    """Whoever names a pool, or was refused by the widest, gets its answer unchanged."""
    await narrow_and_wide(ingress, says(NARROW_400), says(NARROW_400))
    call = await ingress.call(headers).done()
    assert (400, "invalid_request", 1) == (call.status, call.code, ingress.lines.oldest()[0].attempts)


# --- the line that every request leaves --------------------------------------------------------------

DRAFTS = (
    b'data: {"choices":[],"usage":{"completion_tokens":9},"metrics":{"speculative_decoding":'
    b'{"draft_acceptance_rate":0.5,"num_spec_steps":4,"num_accepted_draft_tokens":5,"num_draft_tokens":16}}}\n\n'
)
BROKEN_EVENT = b'data: {"error": {"message": "m", "type": "t", "param": null, "code": "engine_dead"}}\n\n'


async def test_the_line_of_a_complete_stream(ingress: Ingress) -> None:
    """Who asked, what it looked like, where it went and why, how it ended, and how its drafts fared."""
    narrow, _ = await narrow_and_wide(ingress, streams(EVENT, DRAFTS, DONE), says(whole()))
    body = b'{"model":"m","stream":true,"max_tokens":9,"messages":[{"role":"user","content":"Hi."}]}'
    await ingress.call({"x-request-id": "r", "x-twinpool-tier": "interactive"}, body=body).done()
    line = ingress.lines.oldest()[0]
    assert ("r", Tier.INTERACTIVE, Tier.INTERACTIVE, True) == (
        line.id, line.tier, line.tier_requested, line.stream,
    )  # fmt: skip
    assert narrow.requests[0].headers["x-request-id"] == line.engine_id
    assert (Role.SPECULATIVE, "s", "tier_interactive") == (line.pool, line.replica, line.reason)
    assert (Outcome.OK, 200, None, 1) == (line.outcome, line.status, line.code, line.attempts)
    assert {"num_spec_steps": 4, "num_draft_tokens": 16, "num_accepted_draft_tokens": 5} == line.acceptance
    assert line.first_byte_s is not None
    assert 0.0 <= line.waited_s <= line.first_byte_s <= line.e2e_s
    assert 9 == line.features["max_tokens"]
    assert "chosen" == line.decision["pools"]["speculative"]["verdict"]


async def _then_reset(connection: Connection) -> None:
    await connection.write(STREAM_HEAD, chunk(EVENT))
    connection.reset()


@pytest.mark.parametrize(
    ("behave", "expected"),
    [
        (says(whole(400, b"{}")), (Outcome.CALLER, 400, None)),
        (says(whole(500, b"{}")), (Outcome.FAILED, 500, None)),
        (refusal(503, "full"), (Outcome.NO_CAPACITY, 503, "no_capacity")),
        (streams(EVENT, BROKEN_EVENT), (Outcome.FAILED, 200, "engine_dead")),
        (_then_reset, (Outcome.FAILED, 502, "stream_interrupted")),
    ],
    ids=["caller's", "replica's", "full", "error event", "lost in mid-answer"],
)
async def test_the_line_of_what_failed(
    ingress: Ingress, behave: Behaviour, expected: tuple[Outcome, int, str | None]
) -> None:
    """The outcome tells whose making it was; the code is the catalogue's."""
    await ingress.one(behave)
    ingress.desk_deadline(0.3)
    await ingress.call().done()
    line = ingress.lines.oldest()[0]
    assert expected == (line.outcome, line.status, line.code)


async def test_the_line_of_a_caller_who_left(ingress: Ingress) -> None:
    """It was cancelled, wherever it was."""
    await ingress.one(says_and_waits(STREAM_HEAD))
    call = ingress.call()
    await asyncio.sleep(0.2)
    call.leave()
    await call.done()
    line = ingress.lines.oldest()[0]
    assert (Outcome.CANCELLED, None) == (line.outcome, line.code)


async def test_the_line_of_a_caller_who_left_the_queue(ingress: Ingress) -> None:
    """What stood against it is on its line: its wait is what one wants explained."""
    await ingress.one(says(whole()))
    ingress.membership.started("a", 4)
    call = ingress.call({"x-twinpool-tier": "batch"})
    await asyncio.sleep(0.2)
    call.leave()
    await call.done()
    ingress.membership.finished("a", 4)
    line = ingress.lines.oldest()[0]
    assert (Outcome.CANCELLED, 0, "full") == (
        line.outcome, line.attempts, line.decision["pools"]["plain"]["verdict"],
    )  # fmt: skip
    assert line.waited_s >= 0.15


@pytest.mark.parametrize(
    ("body", "headers", "expected"),
    [
        (b"{", {}, (Tier.STANDARD, Outcome.CALLER, 400, "invalid_json")),
        (
            b'{"model":"other"}',
            {"x-twinpool-tier": "batch"},
            (Tier.BATCH, Outcome.CALLER, 404, "model_not_found"),
        ),
        (b"{}", {"x-twinpool-tier": "?"}, (Tier.STANDARD, Outcome.CALLER, 400, "invalid_value")),
    ],
)
async def test_the_line_of_what_was_refused_at_the_door(
    ingress: Ingress, body: bytes, headers: dict[str, str], expected: tuple[Tier, Outcome, int, str]
) -> None:
    """Every request that was read leaves one, or a service that refuses everybody would look well."""
    await ingress.one(says(whole()))
    await ingress.call({"x-request-id": "r"} | headers, body=body).done()
    line = ingress.lines.oldest()[0]
    assert ("r", *expected) == (line.id, line.tier, line.outcome, line.status, line.code)


async def test_the_line_of_a_request_before_the_first_snapshot(ingress: Ingress) -> None:
    """It counts against the service: nobody could serve it."""
    await ingress.call({"x-twinpool-tier": "interactive"}).done()
    line = ingress.lines.oldest()[0]
    assert (Tier.INTERACTIVE, Outcome.NO_CAPACITY, 503, "not_ready") == (
        line.tier, line.outcome, line.status, line.code,
    )  # fmt: skip


async def test_no_text_on_a_line(ingress: Ingress) -> None:
    """Features, never text: nothing that the caller wrote is on the line."""
    await ingress.one(says(whole(200, b'{"secret":"answer"}')))
    body = json.dumps({"messages": [{"role": "user", "content": "Summarise my secret diary please."}]})
    await ingress.call(body=body.encode()).done()
    said = msgspec.json.encode(ingress.lines.oldest()[0]).decode()
    assert [] == [word for word in ("secret", "diary", "please") if word in said]


async def test_a_defect_of_ours(ingress: Ingress) -> None:
    """An unexpected failure is a plain 500 with the request id, and the words stay in the log."""

    class Broken(Relay):
        async def serve(self, job: Any, course: Any, send: Callable[[Any], Awaitable[None]]) -> None:
            raise RuntimeError("a secret path")

    await ingress.one(says(whole()))
    broken = Broken(ingress.membership, ingress.upstream, ingress.desk)
    endpoint = GenerationEndpoint(ingress.membership, broken, ingress.lines)
    call = await Call(endpoint, {"x-request-id": "r"}).done()
    assert (call.status, call.code, call.headers["x-request-id"]) == (500, "internal_error", "r")
    assert b"secret" not in call.body
    assert [Outcome.FAILED] == [line.outcome for line in ingress.lines.oldest()]
