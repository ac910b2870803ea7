"""One request against a service on loopback: streams, usage, refusals, streams that break."""

from __future__ import annotations

from typing import Any

import pytest
from aiohttp import web

from app.demo.answers import Answer, Drafts, Phase
from app.demo.client import Sending, ask, look, open_session, outcome, retry_after_s
from app.demo.plan import Wanted
from autoscaling.request_line import Outcome
from autoscaling.types import Role, Tier
from tests.app.demo.fake import END, STATUS, Fake, Generate, event, refusal, serving, stream, text, whole

WANTED = Wanted(Tier.INTERACTIVE, "chat-1", {"messages": [], "max_tokens": 48})
USAGE = event({"choices": [], "usage": {"completion_tokens": 3}})


async def answered(generate: Generate, pin: Role | None = None) -> tuple[Answer, Fake]:
    async with serving(Fake(generate)) as fake, open_session(fake.url) as session:
        return await ask(session, Sending("demo-1-7", WANTED, Phase.MIXED, 4.0, pin)), fake


async def test_a_whole_stream() -> None:
    """Tokens by the usage chunk and not by the three chunks of text; pool and reason by the headers."""
    found, fake = await answered(whole)

    assert ("demo-1-7", Tier.INTERACTIVE, "chat-1", Phase.MIXED, 4.0) == (
        found.id,
        found.tier,
        found.sample,
        found.phase,
        found.began_s,
    )
    assert (Outcome.OK, 200, None, Role.SPECULATIVE, "tier_interactive", 48, Drafts(10, 40, 30)) == (
        found.outcome,
        found.status,
        found.code,
        found.pool,
        found.reason,
        found.tokens,
        found.drafts,
    )
    assert found.ttft_s is not None
    assert 0 < found.ttft_s <= found.e2e_s
    path, headers, body = fake.asked[0]
    assert ("/v1/chat/completions", "demo-1-7", "interactive", None, WANTED.body) == (
        path,
        headers["x-request-id"],
        headers["x-twinpool-tier"],
        headers.get("x-twinpool-pool"),
        body,
    )


async def test_a_pool_can_be_named() -> None:
    """The copying task asks each pool by its name."""
    found, fake = await answered(whole, Role.PLAIN)

    assert (Role.PLAIN, "plain", None) == (found.pool, fake.asked[0][1]["x-twinpool-pool"], found.drafts)


async def test_a_stream_without_usage() -> None:
    """It came whole, and its time per token is unknown."""

    async def generate(request: web.Request, _body: dict[str, Any]) -> web.StreamResponse:
        return await stream(request, [text("a"), text("b"), END])

    found, _ = await answered(generate)

    assert (Outcome.OK, None, None) == (found.outcome, found.tokens, found.tpot_s)


@pytest.mark.parametrize(
    ("code", "parts"),
    [
        ("stream_interrupted", [text("a"), event({"error": {"code": "stream_interrupted"}})]),
        ("stream ended early", [text("a"), USAGE]),
        ("stream ended early", []),
    ],
)
async def test_a_broken_stream_is_a_failure(code: str, parts: list[bytes]) -> None:
    """An error event, or an end without [DONE]: not an answer, however much has come."""

    async def generate(request: web.Request, _body: dict[str, Any]) -> web.StreamResponse:
        return await stream(request, parts)

    found, _ = await answered(generate)

    assert (Outcome.FAILED, 200, code, True) == (found.outcome, found.status, found.code, found.failed)


async def test_a_cut_connection_is_a_failure() -> None:
    """What the client library calls it is its code."""

    async def generate(request: web.Request, _body: dict[str, Any]) -> web.StreamResponse:
        answer = await stream(request, [text("a")])
        assert request.transport is not None
        request.transport.abort()
        return answer

    found, _ = await answered(generate)

    assert (Outcome.FAILED, 200) == (found.outcome, found.status)
    assert found.code in ("ClientPayloadError", "ClientOSError", "ConnectionResetError")


@pytest.mark.parametrize(
    ("expected", "status", "code", "after"),
    [
        (Outcome.NO_CAPACITY, 503, "no_capacity", 2),
        (Outcome.SHED, 429, "rate_limit_exceeded", 1),
        (Outcome.CALLER, 400, "invalid_value", None),
        (Outcome.FAILED, 502, "replica_lost", None),
    ],
)
async def test_a_refusal_has_its_code_and_its_wait(
    expected: Outcome, status: int, code: str, after: int | None
) -> None:
    """Before any byte of a stream; Retry-After where the service says one."""

    async def generate(_request: web.Request, _body: dict[str, Any]) -> web.StreamResponse:
        return refusal(status, code, **({} if after is None else {"retry_after": str(after)}))

    found, _ = await answered(generate)

    assert (expected, status, code, after, None) == (
        found.outcome,
        found.status,
        found.code,
        found.retry_after_s,
        found.ttft_s,
    )


async def test_a_refusal_in_other_words() -> None:
    """A front that is not ours has no code; its status stands for it."""

    async def generate(_request: web.Request, _body: dict[str, Any]) -> web.StreamResponse:
        return web.Response(status=503, text="<html>")

    found, _ = await answered(generate)

    assert (Outcome.NO_CAPACITY, "HTTP 503") == (found.outcome, found.code)


async def test_nobody_listens() -> None:
    """A failure without a status."""
    async with open_session("http://127.0.0.1:9") as session:
        found = await ask(session, Sending("demo-1-1", WANTED, Phase.QUIET, 0.0))

        assert (Outcome.FAILED, None, "ClientConnectorError") == (found.outcome, found.status, found.code)
        assert None is await look(session)


async def test_a_look_is_the_status_or_nothing() -> None:
    """What is no status of twinpool counts as none."""
    async with serving(Fake()) as fake, open_session(fake.url) as session:
        assert STATUS == await look(session)
        fake.status = {"other": "program"}
        assert None is await look(session)
        fake.status = None
        assert None is await look(session)


def test_what_a_status_means() -> None:
    """429 and 503 turn away, other 4xx are the caller's, all else failed."""
    assert [
        Outcome.OK,
        Outcome.FAILED,
        Outcome.SHED,
        Outcome.NO_CAPACITY,
        Outcome.CALLER,
        Outcome.FAILED,
    ] == [
        outcome(200, whole=True),
        outcome(200, whole=False),
        outcome(429, whole=False),
        outcome(503, whole=False),
        outcome(404, whole=False),
        outcome(None, whole=False),
    ]


def test_retry_after_is_whole_seconds() -> None:
    """Within the service's bounds; a date or nonsense is no number."""
    assert [2, 1, 120, None, None, None] == [
        retry_after_s(found) for found in ("2", "0", "999", "Wed, 21 Oct 2026 07:28:00 GMT", "-1", None)
    ]
