"""One replica's engine in virtual time, step by step: continuous batching, prompts in parts, drafts, memory.

Pure: the caller advances time.  It calls `begin`, lets that many seconds pass, and calls `finish`.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable
from dataclasses import replace
from random import Random
from typing import Final

from app.simulation.acceptance import Draws
from app.simulation.batch import Batch
from app.simulation.engine_counters import Counters, Tally
from app.simulation.engine_profile import EngineProfile
from app.simulation.sequence import Sequence
from autoscaling.step_cost import step_s
from autoscaling.types import Role


class Engine:
    """The sequences waiting and running inside one engine of `role`.

    `draft_lengths[n]` is K while n sequences run, the last entry stands for more; without it, the cost's own.
    Requests fare the same in all engines of one `seed`.  `jitter` is the standard deviation of the logarithm
    of a step's seconds, around a mean that stays; `name` tells the engine from others in its draws.
    """

    def __init__(
        self,
        profile: EngineProfile,
        role: Role,
        seed: int,
        draft_lengths: Iterable[int] | None = None,
        jitter: float = 0.0,
        name: str = "",
    ) -> None:
        cost = profile.cost_of(role)
        self._profile, self._seed = profile, seed
        self._every = cost.drafted is None  # whether every sequence drafts in every step
        # A step is priced by the tokens verified in it: without drafts of its own a sequence is one.
        self._cost = replace(cost, drafted=0.0, draft_length=max(1, cost.draft_length))
        self._verify_s = profile.verify_s
        self._lengths = tuple((cost.draft_length,) if draft_lengths is None else draft_lengths)
        if not self._lengths or min(self._lengths) < 0:
            raise ValueError(f"draft_lengths: {self._lengths}: give one or more, each 0 or above")
        self._longest = max(self._lengths)
        self._tax = profile.k0_tax if cost.draft_length > 0 else 1.0
        self._kv = profile.kv_tokens[role]
        self.longest: Final = min(profile.longest, self._kv - self._longest)  # tokens of a sequence
        # Seeded by a string: the same draws in every process.
        self._jitter, self._chance = jitter, Random(f"{seed}/{name}")  # noqa: S311
        self._draws: dict[str, Draws] = {}
        self._live: dict[str, Sequence] = {}  # waiting or running
        self._waiting: list[tuple[tuple[int, int], Sequence]] = []  # a heap by rank
        self._batch = Batch()
        self._length: int | None = None  # K of the step in progress, None between steps
        self._arrivals = 0
        self._tally = Tally(self._longest)

    @property
    def running(self) -> int:
        """Sequences that take part in steps."""
        return len(self._batch)

    @property
    def waiting(self) -> int:
        """Sequences that wait for a place or for memory."""
        return len(self._waiting)

    @property
    def sequences(self) -> tuple[Sequence, ...]:
        """All that run or wait, as they stand, in the order they came."""
        self._batch.settle()
        return tuple(self._live.values())

    @property
    def kv_usage(self) -> float:
        """Share of the KV cache in use, 0..1."""
        return self._batch.held / self._kv

    @property
    def busy(self) -> bool:
        """Whether a step is in progress."""
        return self._length is not None

    @property
    def counters(self) -> Counters:
        """What happened since the start."""
        return self._tally.counters()

    def add(self, sequence: Sequence, now: float) -> None:
        """Queue a sequence, to be cut where prompt and answer reach the longest that fits.

        Raises ValueError for an identity that is here already, and for a prompt that never fits.
        """
        if sequence.identity in self._live:
            raise ValueError(f"{sequence.identity}: is in this engine already: give every sequence its own")
        longest = self.longest
        if sequence.context >= longest:
            raise ValueError(
                f"{sequence.identity}: a prompt of {sequence.context} tokens: give fewer than {longest}"
            )
        self._arrivals += 1
        sequence.arrived_at = now
        sequence.rank = (sequence.priority, self._arrivals)
        sequence.left = min(sequence.left, longest - sequence.context)
        if self._longest > 0:
            sequence.outcomes = self._draws_of(sequence.workload).request(sequence.number)
        self._live[sequence.identity] = sequence
        self._wait(sequence)

    def abort(self, identity: str, now: float) -> Sequence | None:
        """End a sequence at once, waiting or running; None when it is not here.

        A step in progress takes as long as it would have, and brings it nothing.
        """
        sequence = self._live.pop(identity, None)
        if sequence is None:
            return None
        if not self._batch.drop(sequence):
            self._waiting.remove((sequence.rank, sequence))
            heapq.heapify(self._waiting)
        sequence.finished_at = now
        return sequence

    def begin(self, now: float) -> float | None:
        """Plan the next step and say how long it takes; None when nothing can run.

        Raises RuntimeError while a step is in progress.
        """
        if self._length is not None:
            raise RuntimeError("a step is in progress: finish it first")
        if not self._preempt() and self._waiting:
            self._admit(now)
        batch = self._batch
        running, decoding = len(batch), len(batch.decoding)
        if not running:
            return None
        length = self._length = self._lengths[min(running, len(self._lengths) - 1)]
        prompts = 0
        if batch.prefilling:
            prompts = batch.plan(self._profile.max_batched_tokens - decoding * (1 + length))
        if decoding:
            drafting = decoding if self._every or not length else batch.drafting()
            tokens = decoding + length * drafting
            seconds = step_s(self._cost, tokens, batch.decoded / tokens, prompts, length)
            seconds += self._verify_s * (tokens - decoding) * batch.decoded / decoding
            if length == 0:
                seconds *= self._tax
        else:
            seconds = step_s(self._cost, 0, 0, prompts, 0)
        if self._jitter:
            seconds *= math.exp(self._jitter * self._chance.gauss() - self._jitter**2 / 2)
        self._tally.steps += 1
        self._tally.prompt_tokens += prompts
        return seconds

    def finish(self, now: float) -> list[Sequence]:
        """Carry out the step in progress: the sequences that ended with it, the older ones first.

        Raises RuntimeError when there is none.
        """
        length, self._length = self._length, None
        if length is None:
            raise RuntimeError("no step is in progress: begin one first")
        ended = self._batch.decode(length, self._tally, now)
        if self._batch.prefilling:
            ended += self._batch.prefill(now)
        for sequence in ended:
            del self._live[sequence.identity]
        return ended

    def _wait(self, sequence: Sequence) -> None:
        heapq.heappush(self._waiting, (sequence.rank, sequence))

    def _preempt(self) -> bool:
        """Send the newest back to the queue while the rest could outgrow the KV cache in this step."""
        batch, preempted = self._batch, False
        while batch.held + self._growth(len(batch)) > self._kv:
            victim = batch.newest()
            batch.drop(victim)
            victim.computed = 0  # its cache is gone: prompt and answer are computed again
            victim.preemptions += 1
            self._tally.preemptions += 1
            self._wait(victim)
            preempted = True
        return preempted

    def _admit(self, now: float) -> None:
        """Take those who wait, in their order, while there are places, tokens of the step and memory."""
        batch, most = self._batch, self._profile.max_num_seqs
        budget = self._profile.max_batched_tokens - self._growth(len(batch.decoding)) - batch.missing
        while self._waiting and budget > 0 and len(batch) < most:
            sequence = self._waiting[0][1]
            if batch.held + sequence.context + self._growth(len(batch) + 1) > self._kv:
                return
            heapq.heappop(self._waiting)
            if sequence.scheduled_at is None:
                sequence.scheduled_at = now
            budget -= sequence.context - sequence.computed
            batch.take(sequence)

    def _growth(self, sequences: int) -> int:
        """The most tokens that these can add in a step."""
        return sequences * (1 + self._longest)

    def _draws_of(self, workload: str) -> Draws:
        if workload not in self._draws:
            acceptance = self._profile.acceptance_of(workload)
            self._draws[workload] = Draws(acceptance, self._longest, self._seed)
        return self._draws[workload]
