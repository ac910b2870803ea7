"""The load of `benchmarks.mixed`: closed loops and an open one over one session, and what came of them."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import aiohttp

from app.demo.answers import Answer, Phase
from app.demo.client import Sending, ask, open_session
from app.demo.plan import Wanted
from autoscaling.request_line import Outcome
from autoscaling.types import Role, Tier
from benchmarks.errors import BenchError
from benchmarks.mixed_plan import Window
from benchmarks.mixed_requests import Arrival
from benchmarks.tasks import cancel, no_fault_for

FINISH_LIMIT_S: Final = 60.0  # for counted requests that are open at the end: their deadline and an answer
PAUSE_AFTER_REFUSAL_S: Final = 0.5
MOST_FAILED: Final = 0.05  # of the answers of one condition; more, and the run is void
UNFINISHED: Final = "unfinished"

LEVEL_LIMIT_S: Final = 60.0  # for one answer of each pool at calibration
FIRST_S: Final = 0.5  # the first answers of a level begin before it

Loops = Mapping[Tier, Sequence[Iterator[Wanted]]]  # one stream each
Source = Callable[[Role, int], Iterator[Wanted]]  # the requests of a pool's stream


class Sender:
    """Sends requests of one condition or one level; keeps every answer that came to its end."""

    def __init__(self, session: aiohttp.ClientSession, name: str) -> None:
        self._session = session
        self._name = name
        self._numbers = itertools.count(1)
        self._began = time.perf_counter()
        self.answers: list[Answer] = []

    @property
    def now_s(self) -> float:
        """Seconds since the beginning."""
        return time.perf_counter() - self._began

    async def loop(self, source: Iterator[Wanted], pin: Role | None = None) -> None:
        """One closed loop, until it is cancelled or its source ends."""
        for wanted in source:
            answer = await self.send(wanted, pin)
            if not answer.answered:
                await asyncio.sleep(PAUSE_AFTER_REFUSAL_S)

    async def arrive(self, arrival: Arrival) -> None:
        """One request of the open loop."""
        await asyncio.sleep(max(0.0, arrival.at_s - self.now_s))
        await self.send(arrival.wanted)

    async def send(self, wanted: Wanted, pin: Role | None = None) -> Answer:
        """One request to its end."""
        id_ = f"{self._name}-{wanted.tier}-{next(self._numbers)}"
        answer = await ask(self._session, Sending(id_, wanted, Phase.MIXED, self.now_s, pin))
        self.answers.append(answer)
        return answer


def run_condition(
    url: str, name: str, loops: Loops, arrivals: Sequence[Arrival], window: Window
) -> list[Answer]:
    """The whole load once; the answers that count.  Raises BenchError when many fail."""
    answers = asyncio.run(_condition(url, name, loops, arrivals, window))
    counted = [one for one in answers if _counts(one, window)]
    failed = [one for one in counted if one.failed and one.code != UNFINISHED]
    if len(failed) > MOST_FAILED * len(counted):
        raise BenchError(f"{name}: {len(failed)} of {len(counted)} requests failed, first {failed[0].code}")
    if not any(one.answered for one in counted):
        raise BenchError(f"{name}: no request was answered in {window.total_s:.0f} s")
    return counted


def _counts(answer: Answer, window: Window) -> bool:
    if answer.tier is Tier.STANDARD:
        return window.arrives_in(answer.began_s)
    return window.ends_in(answer.began_s + answer.e2e_s)


async def _condition(
    url: str, name: str, loops: Loops, arrivals: Sequence[Arrival], window: Window
) -> list[Answer]:
    async with open_session(url) as session:
        sender = Sender(session, name)
        endless = [
            asyncio.create_task(sender.loop(source)) for sources in loops.values() for source in sources
        ]
        shots = {asyncio.create_task(sender.arrive(one)): one for one in arrivals}
        await no_fault_for(window.total_s, [*endless, *shots])
        counted = {task: one for task, one in shots.items() if window.arrives_in(one.at_s)}
        await cancel([*endless, *(task for task in shots if task not in counted)])
        open_ = [task for task in counted if not task.done()]
        late = (await asyncio.wait(open_, timeout=FINISH_LIMIT_S))[1] if open_ else set()
        await cancel(list(late))
        return [*sender.answers, *(_unfinished(counted[task], sender.now_s) for task in late)]


def _unfinished(arrival: Arrival, now_s: float) -> Answer:
    return Answer(
        id=UNFINISHED,
        tier=arrival.wanted.tier,
        sample=arrival.wanted.sample,
        phase=Phase.MIXED,
        outcome=Outcome.FAILED,
        began_s=arrival.at_s,
        e2e_s=now_s - arrival.at_s,
        code=UNFINISHED,
    )


def run_level(url: str, name: str, source: Source, streams: int, seconds: float) -> dict[Role, list[Answer]]:
    """So many streams at each pool at once; the answers of each that ended in time, on a slow machine later.

    The first answer of each stream is left out where there are others: all of these begin together.
    """
    answers = asyncio.run(_level(url, name, source, streams, seconds))
    return {role: [one for one in found if one.began_s > FIRST_S] or found for role, found in answers.items()}


async def _level(
    url: str, name: str, source: Source, streams: int, seconds: float
) -> dict[Role, list[Answer]]:
    async with open_session(url) as session:
        senders = {role: Sender(session, f"{name}-{role}") for role in Role}
        loops = [
            asyncio.create_task(senders[role].loop(source(role, number), role))
            for role in Role
            for number in range(streams)
        ]
        await no_fault_for(seconds, loops)
        while (
            not all(sender.answers for sender in senders.values())
            and senders[Role.PLAIN].now_s < LEVEL_LIMIT_S
        ):
            await no_fault_for(1.0, loops)
        await cancel(loops)
        return {role: sender.answers for role, sender in senders.items()}


def run_once(
    url: str, name: str, deck: Sequence[Wanted], streams: int
) -> tuple[dict[Role, list[Answer]], dict[Role, float]]:
    """Each request once at each pool, so many streams at once; when the last one of each pool was sent."""
    return asyncio.run(_once(url, name, deck, streams))


async def _once(
    url: str, name: str, deck: Sequence[Wanted], streams: int
) -> tuple[dict[Role, list[Answer]], dict[Role, float]]:
    async with open_session(url) as session:
        senders = {role: Sender(session, f"{name}-{role}") for role in Role}
        ended: dict[Role, float] = {}

        async def stream(role: Role, source: Iterator[Wanted]) -> None:
            await senders[role].loop(source, role)
            ended.setdefault(role, senders[role].now_s)  # the first stream that found nothing more to send

        loops = []
        for role in Role:
            shared = iter(deck)
            loops += [asyncio.create_task(stream(role, shared)) for _ in range(streams)]
        await asyncio.gather(*loops)
        return {role: sender.answers for role, sender in senders.items()}, ended
