"""The load of `benchmarks.goodput` on two engines under one routing, and what came of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import aiohttp

from app.bench.answer import Answer, AnswerReader
from autoscaling.types import Tier
from benchmarks.errors import BenchError
from benchmarks.goodput_plan import BATCH_STREAMS, Window
from benchmarks.goodput_requests import Arrival, Wanted, arrivals, batch_stream
from benchmarks.goodput_routing import Place, RefusedError, Router
from benchmarks.tasks import cancel, no_fault_for

FINISH_LIMIT_S: Final = 60.0  # for answers that count and are open at the end
SILENCE_LIMIT_S: Final = 120.0
PAUSE_AFTER_FAILURE_S: Final = 0.5
MOST_FAILED: Final = 0.05  # of the answers of one condition; more, and the run is void
UNFINISHED: Final = "unfinished"


@dataclass(frozen=True, slots=True)
class Sent:
    """One request and what became of it; seconds since the condition began, `None` is unknown."""

    tier: Tier
    sample: str
    arrived_s: float
    slot: int | None = None  # None: it got no place
    reason: str | None = None  # of the route
    error: str | None = None
    ttft_s: float | None = None  # since it arrived: what it waited for a place is in it
    tpot_s: float | None = None
    tokens: int | None = None  # by the engine's usage
    counted_tokens: float = 0.0  # of these, by the share of its events, in the window

    @property
    def failed(self) -> bool:
        """Whether it broke; a refusal is an answer of our routing."""
        return self.error is not None and self.slot is not None


@dataclass(slots=True)
class _Watched:
    """An answer that is being read, and when its events came."""

    reader: AnswerReader
    events: list[tuple[float, int]] = field(default_factory=list)  # when, how many

    def feed(self, data: bytes, at: float) -> int:
        self.reader.feed(data, at)
        count = data.count(b"data:")
        if count:
            self.events.append((at, count))
        return count


class Sender:
    """Sends the requests of one condition; keeps those that came to their end."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        urls: Sequence[str],
        models: Sequence[str],
        router: Router,
        window: Window,
    ) -> None:
        self._session = session
        self._urls = urls
        self._models = models
        self._router = router
        self._window = window
        self._began = time.perf_counter()
        self.sent: list[Sent] = []
        self.ending = False  # no more batch requests
        self.placed_s: dict[asyncio.Task[Any] | None, float] = {}  # by stream, while a request is at a slot

    @property
    def now_s(self) -> float:
        """Seconds since the condition began."""
        return time.perf_counter() - self._began

    async def arrive(self, arrival: Arrival) -> None:
        """One interactive request at its time."""
        await asyncio.sleep(max(0.0, arrival.at_s - self.now_s))
        await self._send(arrival.wanted, arrival.at_s)

    async def loop(self, source: Iterator[Wanted]) -> None:
        """One batch stream, until it is told to end."""
        for wanted in source:
            if self.ending:
                return
            sent = await self._send(wanted, self.now_s)
            if sent.error is not None:
                await asyncio.sleep(PAUSE_AFTER_FAILURE_S)

    async def _send(self, wanted: Wanted, arrived_s: float) -> Sent:
        try:
            place = await self._router.place(wanted)
        except RefusedError as error:
            sent = Sent(wanted.tier, wanted.sample, arrived_s, error=str(error))
        else:
            stream = asyncio.current_task()
            self.placed_s[stream] = self.now_s
            try:
                sent = await self._at(place, wanted, arrived_s)
            finally:
                del self.placed_s[stream]
                place.release()
        self.sent.append(sent)
        return sent

    async def _at(self, place: Place, wanted: Wanted, arrived_s: float) -> Sent:
        watched = _Watched(AnswerReader(self._began + arrived_s))
        answer = await self._ask(place, wanted.body, watched)
        inside = sum(count for at, count in watched.events if self._window.holds(at - self._began))
        events = sum(count for _, count in watched.events)
        return Sent(
            wanted.tier,
            wanted.sample,
            arrived_s,
            place.slot,
            place.reason,
            answer.error,
            answer.ttft_s,
            answer.tpot_s,
            answer.tokens,
            counted_tokens=answer.tokens * inside / events if answer.ok and answer.tokens and events else 0.0,
        )

    async def _ask(self, place: Place, body: Mapping[str, Any], watched: _Watched) -> Answer:
        url = f"{self._urls[place.slot]}/v1/chat/completions"
        try:
            async with self._session.post(url, json={"model": self._models[place.slot], **body}) as response:
                if response.status != 200:
                    return watched.reader.answer(f"HTTP {response.status}: {(await response.text())[:200]}")
                async for data in response.content.iter_any():
                    place.advance(watched.feed(data, time.perf_counter()))
        except (aiohttp.ClientError, OSError) as error:  # OSError covers the time limits
            return watched.reader.answer(str(error) or type(error).__name__)
        return watched.reader.answer()


async def run_load(
    urls: Sequence[str], models: Sequence[str], router: Router, window: Window, index: int, salt: str
) -> list[Sent]:
    """The whole load once: interactive requests that arrived in the window, and batch with tokens in it.

    Raises BenchError when many fail.
    """
    limits = aiohttp.ClientTimeout(total=None, sock_read=SILENCE_LIMIT_S)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=limits) as session:
        sender = Sender(session, urls, models, router, window)
        loops = [
            asyncio.create_task(sender.loop(batch_stream(index, stream, salt)))
            for stream in range(BATCH_STREAMS)
        ]
        shots = {asyncio.create_task(sender.arrive(one)): one for one in arrivals(window, index, salt)}
        try:
            await no_fault_for(window.end_s, [*loops, *shots])
            counted = [task for task, one in shots.items() if window.holds(one.at_s)]
            late = await _finish(counted)  # under full load, batch and arrivals that do not count included
            unfinished = [_unfinished(shots[task]) for task in late]
            sender.ending = True
            useless = [task for task in loops if sender.placed_s.get(task, window.end_s) >= window.end_s]
            await cancel([*shots, *useless])
            await _finish([task for task in loops if task not in useless])
        finally:
            await cancel([*loops, *shots])
    found = [one for one in [*sender.sent, *unfinished] if _counts(one, window)]
    failed = [one for one in found if one.failed and one.error != UNFINISHED]
    if len(failed) > MOST_FAILED * len(found):
        raise BenchError(f"{salt}: {len(failed)} of {len(found)} requests failed, first: {failed[0].error}")
    if not any(one.error is None for one in found):
        raise BenchError(f"{salt}: no request was answered in {window.end_s:.0f} s")
    return found


def _counts(one: Sent, window: Window) -> bool:
    if one.tier is Tier.INTERACTIVE:
        return window.holds(one.arrived_s)
    return one.counted_tokens > 0 or one.error is not None


def _unfinished(arrival: Arrival) -> Sent:
    return Sent(arrival.wanted.tier, arrival.wanted.sample, arrival.at_s, slot=0, error=UNFINISHED)


async def _finish(tasks: Sequence[asyncio.Task[None]]) -> list[asyncio.Task[None]]:
    """Wait for these, not for ever; those that are still open are returned, cancelled."""
    if not tasks:
        return []
    done, late = await asyncio.wait(tasks, timeout=FINISH_LIMIT_S)
    for task in done:
        task.result()
    await cancel(list(late))
    return list(late)
