"""Streams that are kept open while something happens, each followed by its caller to its very end."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import threading
import time
from dataclasses import dataclass
from enum import StrEnum
from types import TracebackType
from typing import Final

import aiohttp

from app.demo.stream import StreamReader, error_code
from autoscaling.types import Role
from benchmarks.errors import BenchError
from benchmarks.nodes_plan import STEP_S, TOKENS_PER_STEP

LANES: Final = {Role.SPECULATIVE: "interactive", Role.PLAIN: "batch"}  # who prefers which pool
SECONDS: Final = (4.0, 8.0)  # the shortest and the longest answer of a lane's own pool
PAUSE_S: Final = 0.5  # after a request that was not served
OPEN_LIMIT_S: Final = 30.0
SILENCE_LIMIT_S: Final = 60.0  # then the caller gives up: a stream that hangs
JOIN_LIMIT_S: Final = 120.0


class End(StrEnum):
    """How a request ended, by its caller's word."""

    WHOLE = "whole"  # every token asked for, and the closing event
    TOLD = "told"  # an error event after it had begun
    CUT = "cut"  # the connection broke, and nothing was said
    HUNG = "hung"  # nothing came for SILENCE_LIMIT_S
    REFUSED = "refused"  # an error status before any byte
    UNREACHABLE = "unreachable"  # no connection: it was never sent


LOST: Final = (End.TOLD, End.CUT, End.HUNG)


@dataclass(slots=True)
class Told:
    """One request; times are of the machine's monotonic clock."""

    lane: Role
    asked: int  # tokens
    opened_at: float
    first_at: float | None = None  # its first byte
    last_at: float | None = None  # its newest byte
    ended_at: float | None = None
    silence_s: float = 0.0  # the longest wait for anything, the first byte included
    end: End | None = None
    code: str = ""  # of the error event or the refusal
    replica: str | None = None

    def open_at(self, moment: float) -> bool:
        """Whether it had begun to answer and had not ended."""
        return (
            self.first_at is not None
            and self.first_at <= moment
            and (self.ended_at is None or self.ended_at > moment)
        )


class Streams:
    """Keeps `each` streams open in each lane at `url` from the block's beginning to its end."""

    def __init__(self, url: str, model: str, each: int, seed: str) -> None:
        self.told: list[Told] = []
        self._url = f"{url}/v1/chat/completions"
        self._model = model
        self._each = each
        self._seed = seed
        self._stop = threading.Event()
        self._fault: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="streams", daemon=True)

    def __enter__(self) -> Streams:
        """Raises BenchError when the streams do not begin."""
        self._thread.start()
        deadline = time.monotonic() + OPEN_LIMIT_S
        while sum(one.open_at(time.monotonic()) for one in list(self.told)) < self._each * len(LANES):
            if time.monotonic() > deadline or self._fault is not None:
                self._stop.set()
                ends = [f"{one.end} {one.code}" for one in list(self.told)[:5]]
                raise BenchError(f"the streams do not begin: {self._fault or ends}")
            time.sleep(0.1)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(JOIN_LIMIT_S)
        if kind is None:
            if self._thread.is_alive():
                raise BenchError(f"streams are still open {JOIN_LIMIT_S:.0f} s after the last one began")
            if self._fault is not None:
                raise BenchError(f"the callers failed: {self._fault!r}") from self._fault

    def _work(self) -> None:
        try:
            asyncio.run(self._run())
        except BaseException as error:
            self._fault = error

    async def _run(self) -> None:
        async with aiohttp.ClientSession(
            # Each request its own connection, as of callers who know nothing of each other.
            connector=aiohttp.TCPConnector(limit=0, force_close=True),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=5.0, sock_read=SILENCE_LIMIT_S),
        ) as session:
            await asyncio.gather(
                *(self._caller(session, lane, number) for lane in LANES for number in range(self._each))
            )

    async def _caller(self, session: aiohttp.ClientSession, lane: Role, number: int) -> None:
        chance = random.Random(f"{self._seed}/{lane}/{number}")
        while not self._stop.is_set():
            tokens = max(1, round(chance.uniform(*SECONDS) / STEP_S * TOKENS_PER_STEP[lane]))
            told = Told(lane, tokens, time.monotonic())
            self.told.append(told)
            await self._ask(session, told)
            if told.end is not End.WHOLE:
                await asyncio.sleep(PAUSE_S)

    async def _ask(self, session: aiohttp.ClientSession, told: Told) -> None:
        body = {
            "model": self._model,
            "messages": [{"role": "user", "content": "Tell a story"}],
            "stream": True,
            "stream_options": {"include_usage": True},
            "max_tokens": told.asked,
            "ignore_eos": True,
        }
        try:
            async with session.post(
                self._url, json=body, headers={"x-twinpool-tier": LANES[told.lane]}
            ) as answer:
                told.replica = answer.headers.get("x-twinpool-replica")
                if answer.status != 200:
                    told.code = f"{answer.status} {_code(await answer.text())}"
                    told.end = End.REFUSED
                else:
                    await self._follow(answer, told)
        except aiohttp.ClientConnectorError as error:
            told.end, told.code = End.UNREACHABLE, str(error.os_error)
        except TimeoutError:
            told.end = End.HUNG
        except (aiohttp.ClientError, OSError) as error:
            told.end, told.code = told.end or End.CUT, type(error).__name__
        finally:
            told.ended_at = time.monotonic()
            told.silence_s = max(told.silence_s, told.ended_at - (told.last_at or told.opened_at))

    @staticmethod
    async def _follow(answer: aiohttp.ClientResponse, told: Told) -> None:
        reader = StreamReader()
        async for data in answer.content.iter_any():
            now = time.monotonic()
            told.silence_s = max(told.silence_s, now - (told.last_at or told.opened_at))
            told.last_at = now
            reader.feed(data, now)
            told.first_at = reader.first_at
            if reader.error is not None:
                told.end, told.code = End.TOLD, reader.error
        if told.end is None:
            told.end = End.WHOLE if reader.finished and reader.tokens == told.asked else End.CUT


def _code(text: str) -> str:
    with contextlib.suppress(ValueError):
        if (code := error_code(json.loads(text))) is not None:
            return code
    return text[:80]
