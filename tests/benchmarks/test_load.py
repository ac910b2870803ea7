"""The load generator: what it counts, what it refuses, and how it spreads its requests."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
from collections.abc import Awaitable, Callable

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.load import DONE, Load, Measured, StreamCounter, StreamError, measure, pauses, warm_up_tokens

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
OPENING = b'data: {"choices":[{"delta":{"role":"assistant","content":""}}]}\n\n'
CHUNK = b'data: {"choices":[{"delta":{"content":" data: not one\\ndata: either"}}]}\n\n'
ERROR = b'data: {"error":{"code":"stream_interrupted"}}\n\n'


def stream(tokens: int) -> bytes:
    return OPENING + CHUNK * tokens + DONE


@given(tokens=st.integers(0, 5), cuts=st.lists(st.integers(0, 600), max_size=8))
def test_tokens_are_counted_however_the_bytes_are_cut(tokens: int, cuts: list[int]) -> None:
    """The opening and the closing event are no tokens; `data:` inside a text is none either."""
    whole = stream(tokens)
    edges = [0, *sorted(min(cut, len(whole)) for cut in cuts), len(whole)]
    counter = StreamCounter()
    gained = sum(counter.feed(whole[a:b]) for a, b in itertools.pairwise(edges))
    assert tokens == counter.tokens == gained
    assert counter.finished


def test_a_stream_without_its_end_is_not_finished() -> None:
    """All tokens may be there and the closing event not."""
    counter = StreamCounter()
    counter.feed(OPENING + CHUNK * 3)
    assert counter.tokens == 3
    assert not counter.finished


@given(cut=st.integers(0, len(ERROR)))
def test_an_error_event_is_not_taken_for_a_token(cut: int) -> None:
    """Otherwise one error in the place of the last token would pass."""
    counter = StreamCounter()
    counter.feed(OPENING + CHUNK)
    whole = ERROR + DONE

    def feed() -> None:
        counter.feed(whole[:cut])
        counter.feed(whole[cut:])

    with pytest.raises(StreamError, match="error event"):
        feed()


def test_first_answers_have_all_lengths() -> None:
    """So the streams do not stay in step with each other."""
    assert [warm_up_tokens(i, 4, 64) for i in range(4)] == [16, 32, 48, 64]
    assert list(range(1, 65)) == [warm_up_tokens(i, 64, 64) for i in range(64)]
    assert [warm_up_tokens(i, 4, 2) for i in range(4)] == [1, 1, 2, 2]


@given(seed=st.integers())
def test_pauses_cover_a_step_evenly(seed: int) -> None:
    """Every tenth of a step gets its share of a hundred pauses, from any start."""
    pause = pauses(0.02, random.Random(seed))
    tenths = [int(pause() / 0.002) for _ in range(100)]
    assert set(range(10)) == set(tenths)
    assert all(8 <= tenths.count(tenth) <= 12 for tenth in range(10))


def load(url: str, streams: int = 3, requests: int = 9) -> Load:
    return Load((url,), streams, requests, 8, 0.002, "some-model", {"x-twinpool-pool": "plain"}, 0)


async def run(handler: Handler) -> Measured:
    app = web.Application()
    app.router.add_post("/v1/chat/completions", handler)
    async with TestServer(app) as server:
        return await measure(load(str(server.make_url("/v1/chat/completions"))))


async def answer(request: web.Request, cut: int = 0) -> web.StreamResponse:
    asked = json.loads(await request.read())
    assert asked["stream"]
    assert asked["ignore_eos"]
    response = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await response.prepare(request)
    await response.write(OPENING)
    for _ in range(asked["max_tokens"] - cut):
        await asyncio.sleep(0.002)
        await response.write(CHUNK)
    await response.write(DONE)
    return response


async def test_a_load_counts_its_requests_and_keeps_its_connections() -> None:
    """Nine counted requests, each with a first token after the first byte; one connection per stream."""
    peers = set()

    async def handler(request: web.Request) -> web.StreamResponse:
        assert request.headers["x-twinpool-pool"] == "plain"
        assert request.headers["content-type"] == "application/json"
        peers.add(request.transport.get_extra_info("peername") if request.transport else None)
        return await answer(request)

    measured = await run(handler)
    assert len(measured.ttft_s) == 9
    assert all(0 < a <= b for a, b in zip(measured.first_byte_s, measured.ttft_s, strict=True))
    assert measured.window_s > 0
    assert measured.tokens > 0
    assert len(peers) == 3


async def test_a_stream_that_is_too_short_voids_the_run() -> None:
    """One token less than asked for is an error, not a faster answer."""

    async def handler(request: web.Request) -> web.StreamResponse:
        return await answer(request, cut=1)

    with pytest.raises(StreamError, match="ended after"):
        await run(handler)


async def test_a_refusal_voids_the_run() -> None:
    """A 503 counts for nothing."""

    async def handler(_request: web.Request) -> web.StreamResponse:
        return web.json_response({"error": "full"}, status=503)

    with pytest.raises(StreamError, match="status 503"):
        await run(handler)


async def test_a_connection_that_closes_voids_the_run() -> None:
    """A cut stream is not a short one."""

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(OPENING + CHUNK)
        assert request.transport is not None
        request.transport.close()
        return response

    with pytest.raises(StreamError):
        await run(handler)
