"""One run of the demo: the phases one after another, and the streams that each of them needs."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any

import aiohttp

from app.demo import seen
from app.demo.answers import Answer, Phase
from app.demo.client import Sending, ask, look
from app.demo.plan import Load, Wanted, copy_task, requests
from app.demo.view import View, tiers_now
from app.samples import Sample
from autoscaling.request_line import Outcome
from autoscaling.types import Role, Tier

LOOK_EVERY_S = 1.0
MOST_MISSED_LOOKS = 10  # in a row: then nothing of the service answers any more
FINISH_LIMIT_S = 30.0  # for what is open when the last phase ends
AFTER_TROUBLE_S = 1.0  # before the next request of a stream whose last one was refused or failed
THINKING_S = (0.2, 1.0)  # of an interactive caller, between an answer and the next question
COPY_SHARE = 0.6  # of the quiet phase, in which another round of the copying task may begin
COPY_ROUNDS = 5  # at most; the first one warms both pools up and does not count


class Ended(StrEnum):
    """How a run ended."""

    COMPLETE = "complete"
    INTERRUPTED = "interrupted"
    SERVICE_LOST = "service_lost"


class Run:
    """The state of one run; it stays readable when the run was cancelled.

    `status` is the service's at the beginning; `lengths` are seconds of the phases, in order.
    """

    def __init__(
        self,
        load: Load,
        lengths: Mapping[Phase, float],
        samples: Sequence[Sample],
        seed: int,
        status: Mapping[str, Any],
        *,
        both_pools: bool,
    ) -> None:
        self._load = load
        self._lengths = lengths
        self._seed = seed
        self._both_pools = both_pools
        self._requests: dict[Tier, Iterator[Wanted]] = {tier: requests(tier, samples, seed) for tier in Tier}
        self._thinking = random.Random(seed)  # noqa: S311  # repeatable on purpose, and no secret
        self._numbers = itertools.count(1)
        self._streams = dict.fromkeys(Tier, 0)
        self._workers: dict[tuple[Tier, int], asyncio.Task[None]] = {}
        self._tasks: list[asyncio.Task[None]] = []  # every worker there was
        self._open: Counter[Tier] = Counter()
        self._status = status
        self._moves_before = {move.id for move in seen.moves(status)}
        self._missed_looks = 0
        self._over = False
        self._lost = asyncio.Event()
        self._began = time.perf_counter()
        self._phase = Phase.QUIET
        self._phase_ends = 0.0
        self.look_every_s = LOOK_EVERY_S
        self.answers: list[Answer] = []
        self.copies: list[Answer] = []  # of the copying task, warm-up left out, in the order of sending
        self.ended = Ended.INTERRUPTED

    @property
    def moves(self) -> tuple[seen.MoveSeen, ...]:
        """The moves that began during the run, newest first."""
        return tuple(move for move in seen.moves(self._status) if move.id not in self._moves_before)

    @property
    def now_s(self) -> float:
        """Seconds since the run began."""
        return time.perf_counter() - self._began

    async def go(self, session: aiohttp.ClientSession) -> None:
        """Run all phases; what was open at a cancel is noted as cancelled."""
        self._began = time.perf_counter()
        watching = asyncio.create_task(self._watch(session))
        try:
            for phase, length in self._lengths.items():
                self._enter(phase, length)
                if phase is Phase.QUIET and self._both_pools:
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(length):
                            await self._copy(session, length * COPY_SHARE)
                self._staff(session, self._load.at(phase))
                if await self._lost_within(self._phase_ends - self.now_s):
                    self.ended = Ended.SERVICE_LOST
                    return
            self._enter(Phase.FINISHING, FINISH_LIMIT_S)
            self._staff(session, self._load.at(Phase.FINISHING))
            if self._workers:
                await asyncio.wait(self._workers.values(), timeout=FINISH_LIMIT_S)
            self._status = await look(session) or self._status
            self.ended = Ended.COMPLETE
        finally:
            self._over = True  # for a task whose cancel is lost in a library
            tasks = [watching, *self._tasks]
            for task in tasks:
                task.cancel()
            for found in await asyncio.gather(*tasks, return_exceptions=True):
                if isinstance(found, Exception):  # a defect of ours: no failure of a request raises
                    raise found

    def view(self) -> View:
        """What there is to show now."""
        now = self.now_s
        left = max(0.0, self._phase_ends - now)
        order = list(self._lengths)
        after = order[order.index(self._phase) + 1 :] if self._phase in order else []
        return View(
            phase=self._phase,
            left_s=left + sum(self._lengths[phase] for phase in after),
            tiers=tiers_now(self.answers, self._open, now),
            pools=seen.pools(self._status),
            moves=self.moves,
            looks=self._missed_looks == 0,
            copied=len(self.copies),
        )

    def _enter(self, phase: Phase, length: float) -> None:
        self._phase = phase
        self._phase_ends = self.now_s + length

    async def _lost_within(self, seconds: float) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(seconds, 0.0)):
                await self._lost.wait()
        return self._lost.is_set()

    async def _watch(self, session: aiohttp.ClientSession) -> None:
        while not self._over:
            found = await look(session)
            if found is None:
                self._missed_looks += 1
                if self._missed_looks >= MOST_MISSED_LOOKS:
                    self._lost.set()
            else:
                self._missed_looks = 0
                self._status = found
            await asyncio.sleep(self.look_every_s)

    async def _copy(self, session: aiohttp.ClientSession, limit_s: float) -> None:
        """The same task on both pools in turn, one request at a time; who begins alternates."""
        for number in range(COPY_ROUNDS):
            if number > 1 and self.now_s > limit_s:
                return
            roles = list(Role) if number % 2 == 0 else list(reversed(Role))
            for role in roles:
                answer = await ask(session, self._sending(copy_task(), role))
                if number > 0:
                    self.copies.append(answer)

    def _staff(self, session: aiohttp.ClientSession, streams: Mapping[Tier, int]) -> None:
        """Begin the streams that a phase has more than the one before; the others end by themselves."""
        self._streams = dict(streams)
        self._workers = {key: task for key, task in self._workers.items() if not task.done()}
        for tier, count in streams.items():
            for index in range(count):
                if (tier, index) not in self._workers:
                    task = asyncio.create_task(self._stream(session, tier, index))
                    self._workers[tier, index] = task
                    self._tasks.append(task)

    async def _stream(self, session: aiohttp.ClientSession, tier: Tier, index: int) -> None:
        while index < self._streams[tier] and not self._over:
            answer = await self._answer(session, next(self._requests[tier]))
            if not answer.answered:
                await asyncio.sleep(AFTER_TROUBLE_S)
            elif tier is Tier.INTERACTIVE:
                await asyncio.sleep(self._thinking.uniform(*THINKING_S))

    async def _answer(self, session: aiohttp.ClientSession, wanted: Wanted) -> Answer:
        """One request to its end; a refused one of batch is sent again after Retry-After."""
        while True:
            sending = self._sending(wanted)
            self._open[wanted.tier] += 1
            try:
                answer = await ask(session, sending)
            except asyncio.CancelledError:
                self.answers.append(self._cut(sending))
                raise
            finally:
                self._open[wanted.tier] -= 1
            waits = answer.retry_after_s if answer.refused and wanted.tier is Tier.BATCH else None
            if waits is None or self._over:
                self.answers.append(answer)
                return answer
            self.answers.append(replace(answer, again=True))
            try:
                await asyncio.sleep(waits)
            except asyncio.CancelledError:
                self.answers.append(self._cut(self._sending(wanted)))
                raise

    def _sending(self, wanted: Wanted, pin: Role | None = None) -> Sending:
        return Sending(f"demo-{self._seed}-{next(self._numbers)}", wanted, self._phase, self.now_s, pin)

    def _cut(self, sending: Sending) -> Answer:
        return Answer(
            id=sending.id,
            tier=sending.wanted.tier,
            sample=sending.wanted.sample,
            phase=sending.phase,
            outcome=Outcome.CANCELLED,
            began_s=sending.began_s,
            e2e_s=self.now_s - sending.began_s,
        )
