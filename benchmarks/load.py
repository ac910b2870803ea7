"""The load generator: N streams in a closed loop, one process of its own, the same for every path.

Writes one JSON line, the fields of `Measured`.  Ends with status 1 and one line on stderr as soon as a
stream is not complete to the token.

Before each request a stream pauses for up to one engine step.  Without that pause it would come back
right after a step had ended, and the wait for the next one would hide what the path costs.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import math
import random
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

import aiohttp

GOLDEN = (math.sqrt(5) - 1) / 2  # its multiples fill the unit interval more evenly than chance does
SILENCE_LIMIT_S = 30.0
PROMPT = "Name three rivers that run through more than one country and say where each of them ends."
EVENT = b"\ndata: "
DONE = b"data: [DONE]\n\n"


class StreamError(Exception):
    """An answer that is not what was asked for; the run is void."""


@dataclass(frozen=True, slots=True)
class Load:
    """What to send; stream number i goes to `urls[i % len(urls)]`."""

    urls: tuple[str, ...]
    streams: int
    requests: int  # counted ones; those that warm up come on top
    tokens: int  # per answer
    step_s: float  # of the engine
    model: str
    headers: dict[str, str]
    seed: int


@dataclass(slots=True)
class Measured:
    """What came back while all streams were busy."""

    ttft_s: list[float] = field(default_factory=list)  # until the first token
    first_byte_s: list[float] = field(default_factory=list)
    tokens: int = 0  # one chunk each
    window_s: float = 0.0
    cpu_s: float = 0.0  # of this process


class StreamCounter:
    """Counts the tokens in the bytes of one event stream, however they are cut."""

    def __init__(self) -> None:
        self._events = 0
        self._end = b"\n"  # an event starts a line

    @property
    def finished(self) -> bool:
        """Whether the closing event was the last thing to come."""
        return self._end.endswith(DONE)

    @property
    def tokens(self) -> int:
        """Events with a token: all but the opening one, which has the role, and the closing one."""
        return max(0, self._events - 1 - self.finished)

    def feed(self, data: bytes) -> int:
        """Take the next bytes; returns how many tokens they brought.  Raises StreamError for an error."""
        before = self.tokens
        joined = self._end + data
        if b'data: {"error"' in joined:
            raise StreamError(f"error event: {joined[joined.index(b'data: {') :][:300]!r}")
        # What was kept has been counted already.
        self._events += joined.count(EVENT) - self._end.count(EVENT)
        self._end = joined[-len(DONE) - 1 :]
        return self.tokens - before


def warm_up_tokens(stream: int, streams: int, tokens: int) -> int:
    """Length of a stream's first answer: all lengths occur, so that later the ends are spread evenly."""
    return max(1, math.ceil((stream + 1) * tokens / streams))


def pauses(step_s: float, chance: random.Random) -> Callable[[], float]:
    """Pauses that cover one step evenly, from a random start."""
    start = chance.random()
    count = itertools.count()
    return lambda: step_s * ((start + next(count) * GOLDEN) % 1.0)


class Generator:
    """One run of one load."""

    def __init__(self, load: Load, session: aiohttp.ClientSession) -> None:
        self._load = load
        self._session = session
        self._pause = pauses(load.step_s, random.Random(load.seed))
        self._cold = load.streams
        self._left = load.requests
        self._opened_at: float | None = None  # once every stream is warm
        self._closed_at: float | None = None  # once no counted request is left to send
        self._cpu_at_open = 0.0
        self.measured = Measured()

    async def run(self) -> Measured:
        """Run to the end; raises StreamError."""
        try:
            async with asyncio.TaskGroup() as group:
                for stream in range(self._load.streams):
                    group.create_task(self._stream(stream))
        except ExceptionGroup as errors:  # the group has cancelled the other streams
            raise errors.exceptions[0] from None
        return self.measured

    async def _stream(self, stream: int) -> None:
        load = self._load
        url = load.urls[stream % len(load.urls)]
        await self._ask(url, warm_up_tokens(stream, load.streams, load.tokens), counted=False)
        self._cold -= 1
        if self._cold == 0:
            self._opened_at = time.perf_counter()
            self._cpu_at_open = time.process_time()
        while self._closed_at is None:
            await asyncio.sleep(self._pause())
            counted = self._opened_at is not None
            if counted and not self._take():
                return
            await self._ask(url, load.tokens, counted=counted)

    def _take(self) -> bool:
        """Take one of the counted requests; the first stream that finds none ends the window."""
        if self._left:
            self._left -= 1
            return True
        if self._closed_at is None and self._opened_at is not None:
            self._closed_at = time.perf_counter()
            self.measured.window_s = self._closed_at - self._opened_at
            self.measured.cpu_s = time.process_time() - self._cpu_at_open
        return False

    async def _ask(self, url: str, tokens: int, *, counted: bool) -> None:
        body = _body(self._load.model, tokens)
        counter = StreamCounter()
        measured = self.measured
        first_byte: float | None = None
        first_token: float | None = None
        began = time.perf_counter()
        async with _answer(self._session, url, body, self._load.headers) as response:
            async for data in response.content.iter_any():
                new = counter.feed(data)
                now = time.perf_counter()
                if first_byte is None:
                    first_byte = now - began
                if first_token is None and counter.tokens:
                    first_token = now - began
                if self._opened_at is not None and self._closed_at is None:
                    measured.tokens += new
        if counter.tokens != tokens or not counter.finished:
            end = "ended" if counter.finished else "was cut off"
            raise StreamError(f"{url}: a stream of {tokens} tokens {end} after {counter.tokens}")
        assert first_byte is not None
        assert first_token is not None
        if counted:
            measured.first_byte_s.append(first_byte)
            measured.ttft_s.append(first_token)


@asynccontextmanager
async def _answer(
    session: aiohttp.ClientSession, url: str, body: bytes, headers: dict[str, str]
) -> AsyncIterator[aiohttp.ClientResponse]:
    try:
        async with session.post(url, data=body, headers=headers) as response:
            if response.status != 200:
                raise StreamError(f"{url}: status {response.status}: {(await response.text())[:300]}")
            yield response
    except (aiohttp.ClientError, OSError) as error:  # OSError covers the time limits
        raise StreamError(f"{url}: {type(error).__name__}: {error}") from error


def _body(model: str, tokens: int) -> bytes:
    return json.dumps(
        {
            "model": model,
            "messages": [{"role": "user", "content": PROMPT}],
            "stream": True,
            "max_tokens": tokens,
            "ignore_eos": True,
        }
    ).encode()


async def measure(load: Load) -> Measured:
    """Run one load over connections that are kept; raises StreamError."""
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=60.0),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=5.0, sock_read=SILENCE_LIMIT_S),
        headers={"content-type": "application/json"},
    ) as session:
        return await Generator(load, session).run()


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load", description=__doc__)
    parser.add_argument("--url", action="append", required=True, help="repeat it to spread the streams")
    parser.add_argument("--streams", type=int, required=True)
    parser.add_argument("--requests", type=int, required=True)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--step-s", type=float, default=0.02)
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--header", action="append", default=[], metavar="NAME:VALUE")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    load = Load(
        urls=tuple(asked.url),
        streams=asked.streams,
        requests=asked.requests,
        tokens=asked.tokens,
        step_s=asked.step_s,
        model=asked.model,
        headers={name: value.strip() for name, _, value in (text.partition(":") for text in asked.header)},
        seed=asked.seed,
    )
    try:
        measured = _run(measure(load))
    except StreamError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(json.dumps(asdict(measured)) + "\n")
    return 0


def _run(work: Coroutine[Any, Any, Measured]) -> Measured:
    try:
        import uvloop  # noqa: PLC0415  # absent where it has no wheel
    except ImportError:
        return asyncio.run(work)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


if __name__ == "__main__":
    sys.exit(main())
