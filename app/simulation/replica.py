"""One replica in virtual time: its engine's steps on the loop's clock, what it takes, and what it reports."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

from app.simulation.engine import Engine
from app.simulation.engine_profile import EngineProfile
from app.simulation.sequence import Book, Sequence
from autoscaling.types import Capabilities, EngineTotals, FinishedRequest, ReplicaReport, ReplicaState, Role

Advanced = Callable[[str, float], None]  # a replica, and expected tokens that came from it in a step
Ended = Callable[[], None]  # a request has ended, however it did

ENGINE, METHOD, MODEL = "simulated", "simulated-drafts", "simulated"


@dataclass(frozen=True, slots=True)
class Limits:
    """What a replica takes; sequences in flight."""

    soft: int
    hard: int


@dataclass(frozen=True, slots=True)
class Lies:
    """Which kind of engine lies in a pool."""

    role: Role  # its costs and its memory are those of this role
    draft_lengths: tuple[int, ...] | None = None  # K by running sequences, see `Engine`; None: the cost's own

    def longest(self, profile: EngineProfile) -> int:
        """The largest K; 0 for an engine that never drafts."""
        own = profile.cost_of(self.role).draft_length
        return own if self.draft_lengths is None else max(self.draft_lengths)


class Replica:
    """A replica from the moment it runs until it is gone; touched by one virtual loop."""

    def __init__(
        self,
        identity: str,
        pool: Role,
        engine: Engine,
        profile: EngineProfile,
        limits: Limits,
        lies: Lies,
    ) -> None:
        self.identity = identity
        self.pool = pool
        self.state = ReplicaState.RUNNING
        self._engine = engine
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._open: dict[str, tuple[Sequence, Ended]] = {}
        self._books: dict[Advanced, Book] = {}
        self._finished: list[FinishedRequest] = []
        self._seq = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._capabilities = _capabilities(pool, profile, lies, engine.longest)

    @property
    def inflight(self) -> int:
        """Sequences that were taken and have not ended."""
        return len(self._open)

    @property
    def longest(self) -> int:
        """Tokens of prompt and answer together that it takes."""
        return self._engine.longest

    def take(self, sequence: Sequence, advanced: Advanced, ended: Ended) -> bool:
        """Take a request; False while draining or above the hard limit.

        `advanced` is told once a step what has come of all that is `owed` to it, `ended` is called at the
        end.  Raises ValueError for a prompt that never fits.
        """
        if self.state is not ReplicaState.RUNNING or self.inflight >= self._limits.hard:
            return False
        self._engine.add(sequence, self._loop.time())
        sequence.book = self._books.setdefault(advanced, Book())
        self._open[sequence.identity] = sequence, ended
        self._idle.clear()
        self._step()
        return True

    def change_role(self, pool: Role, limits: Limits) -> None:
        """Serve in another pool from now on, with the same engine and all that is open."""
        self.pool, self._limits = pool, limits
        self._capabilities = replace(self._capabilities, role=pool)

    async def drain(self, limit_s: float) -> None:
        """Take nothing more and wait for what is open, at most so long; the rest is broken off."""
        self.state = ReplicaState.DRAINING
        try:
            async with asyncio.timeout(limit_s):
                await self._idle.wait()
        except TimeoutError:
            for identity, (_, ended) in list(self._open.items()):
                self._engine.abort(identity, self._loop.time())
                del self._open[identity]
                ended()
        self.state = ReplicaState.STOPPED

    def report(self) -> ReplicaReport:
        """What it pushes once a second, with the requests that have finished since the last time."""
        self._seq += 1
        finished, self._finished = tuple(self._finished), []
        counters = self._engine.counters
        return ReplicaReport(
            replica_id=self.identity,
            boot_id=self.identity,
            seq=self._seq,
            pool=self.pool.value,
            role=self.pool,
            node_id="virtual",
            host="",
            port=0,
            token="",
            state=self.state,
            pid=0,
            soft_limit=self._limits.soft,
            hard_limit=self._limits.hard,
            inflight=self.inflight,
            running=self._engine.running,
            waiting=self._engine.waiting,
            kv_cache_usage=self._engine.kv_usage,
            draft_length=None,
            capabilities=self._capabilities,
            totals=EngineTotals(steps=counters.steps, preemptions=counters.preemptions),
            finished=finished,
        )

    def _step(self) -> None:
        """Begin a step unless one is in progress or nothing can run."""
        if self._engine.busy:
            return
        seconds = self._engine.begin(self._loop.time())
        if seconds is not None:
            self._loop.call_later(seconds, self._stepped)

    def _stepped(self) -> None:
        done = self._engine.finish(self._loop.time())
        for advanced, book in self._books.items():
            if book.came:
                advanced(self.identity, book.read())
        for sequence in done:
            _, ended = self._open.pop(sequence.identity)
            self._finished.append(_record(sequence))
            ended()
        if not self._open:
            self._idle.set()
        self._step()


def _capabilities(pool: Role, profile: EngineProfile, lies: Lies, tokens: int) -> Capabilities:
    longest = lies.longest(profile)
    return Capabilities(
        role=pool,
        engine=ENGINE,
        engine_version="",
        method=METHOD if longest > 0 else None,
        runner=None,
        draft_length_max=longest,
        draft_length_adjustable=longest > 0,
        max_model_len=tokens,
        max_num_seqs=profile.max_num_seqs,
        refuses=(),
        per_request_metrics=False,
        models=(MODEL,),
        fingerprint=profile.name,
        kv_cache_tokens=profile.kv_tokens[lies.role],
        tensor_parallel=profile.accelerators,
    )


def _record(sequence: Sequence) -> FinishedRequest:
    """As an engine's own record: seconds queued, computing the prompt, and generating."""
    arrived, scheduled = sequence.arrived_at or 0.0, sequence.scheduled_at or 0.0
    first, ended = sequence.first_token_at or 0.0, sequence.finished_at or 0.0
    return FinishedRequest(
        request_id=sequence.identity,
        prompt_tokens=sequence.prompt_tokens,
        generated_tokens=sequence.generated,
        finish_reason="length" if sequence.left else "stop",
        queued_s=scheduled - arrived,
        prefill_s=first - scheduled,
        decode_s=ended - first,
        e2e_s=ended - arrived,
        preemptions=sequence.preemptions,
    )
