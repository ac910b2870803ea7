"""Continuous batching in simulated time: which sequences run, what a step costs, what it yields.

Pure: time comes in as arguments, nothing sleeps and nothing is sent.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

from deployments.simulated.frames import Add, Configure, Counters, Output, Update
from deployments.simulated.sequence import Sequence


@dataclass(slots=True)
class Step:
    """A step in progress."""

    seconds: float
    decoding: list[Sequence]
    prefilling: list[tuple[Sequence, int]]  # with the tokens that this step computes


class Scheduler:
    """The sequences waiting and running inside one engine."""

    def __init__(self, config: Configure) -> None:
        self._config = config
        self._counters = Counters(
            accepted_per_position=[0] * config.draft_length,
            drafted_per_position=[0] * config.draft_length,
        )
        self._waiting: list[tuple[tuple[int, int], Sequence]] = []  # a heap by rank
        self._running: list[Sequence] = []
        self._live: dict[int, Sequence] = {}  # by key, waiting or running
        self._arrivals = 0

    def add(self, add: Add, now: float) -> None:
        """Queue a sequence."""
        self._arrivals += 1
        sequence = Sequence(add, now, self._arrivals, self._config.seed, self._config.draft_length)
        self._live[add.key] = sequence
        self._wait(sequence)

    def abort(self, keys: tuple[int, ...], now: float) -> list[Output]:
        """End sequences at once, waiting or running; unknown keys are ignored."""
        outputs = []
        for key in keys:
            sequence = self._live.get(key)
            if sequence is None:
                continue
            output = Output(key, "", 0, "abort", None, sequence.record(now))
            if sequence not in self._running:
                self._waiting.remove((sequence.rank, sequence))
                heapq.heapify(self._waiting)
            self._forget(sequence)
            outputs.append(output)
        return outputs

    def begin(self, now: float) -> Step | None:
        """Plan the next step; None when there is nothing to do."""
        if not self._preempt():
            self._admit(now)
        if not self._running:
            return None
        config, budget = self._config, self._config.max_prefill_tokens
        step = Step(0.0, [], [])
        for sequence in self._running:
            missing = sequence.target - sequence.computed
            if missing <= 0:
                step.decoding.append(sequence)
            elif budget:
                step.prefilling.append((sequence, min(missing, budget)))
                budget -= min(missing, budget)
        tokens = len(step.decoding) * (1 + config.draft_length) + sum(part for _, part in step.prefilling)
        context = sum(sequence.context for sequence in step.decoding)
        step.seconds = (
            config.step_base_s + config.step_per_token_s * tokens + config.step_per_context_s * context
        )
        return step

    def finish(self, step: Step, started_at: float, now: float) -> Update:
        """Carry out a planned step; sequences aborted since it began get nothing."""
        counters = self._counters
        counters.steps += 1
        counters.longest_step_s = max(counters.longest_step_s, now - started_at)
        outputs = []
        for sequence, part in step.prefilling:
            sequence.computed += part
            counters.prefill_tokens += part
            if sequence.computed == sequence.target and sequence.add.key in self._live:
                outputs.append(self._write(sequence, 1, now))
        for sequence in step.decoding:
            if sequence.add.key in self._live:
                accepted = sequence.accept(self._config.acceptance)
                self._count_draft(accepted)
                outputs.append(self._write(sequence, 1 + accepted, now))
                counters.request_steps += 1
                counters.decode_tokens += outputs[-1].tokens
        return self.update(True, outputs, step.seconds)

    def update(self, stepped: bool, outputs: list[Output], step_s: float = 0.0) -> Update:
        """Report outputs with the state of the queues."""
        usage = min(1.0, sum(s.context for s in self._running) / self._config.kv_capacity)
        return Update(stepped, outputs, len(self._running), len(self._waiting), usage, self._counters, step_s)

    def _wait(self, sequence: Sequence) -> None:
        heapq.heappush(self._waiting, (sequence.rank, sequence))

    def _need(self, sequence: Sequence) -> int:
        """KV tokens the next step of a sequence may hold, its drafts included."""
        return min(sequence.context + 1 + self._config.draft_length, self._config.max_model_len)

    def _preempt(self) -> bool:
        """Send the newest back to the queue while the rest would outgrow the KV cache."""
        preempted = False
        while sum(map(self._need, self._running)) > self._config.kv_capacity:
            victim = max(self._running, key=lambda sequence: sequence.rank)
            self._running.remove(victim)
            victim.computed = 0  # its cache is gone: prompt and answer are computed again
            victim.preemptions += 1
            self._counters.preemptions += 1
            self._wait(victim)
            preempted = True
        return preempted

    def _admit(self, now: float) -> None:
        free = self._config.kv_capacity - sum(map(self._need, self._running))
        budget = self._config.max_prefill_tokens - sum(s.target - s.computed for s in self._running)
        while self._waiting and budget > 0 and len(self._running) < self._config.max_num_seqs:
            sequence = self._waiting[0][1]
            free -= self._need(sequence)
            if free < 0:
                return
            heapq.heappop(self._waiting)
            sequence.target = sequence.context
            budget -= sequence.target
            if sequence.scheduled_at is None:
                sequence.scheduled_at = now
            self._running.append(sequence)

    def _count_draft(self, accepted: int) -> None:
        length, counters = self._config.draft_length, self._counters
        if not length:
            return
        counters.drafts += 1
        counters.drafted += length
        counters.accepted += accepted
        for position in range(length):
            counters.drafted_per_position[position] += 1
            counters.accepted_per_position[position] += position < accepted

    def _write(self, sequence: Sequence, tokens: int, now: float) -> Output:
        output = sequence.write(tokens, now)
        if output.finish_reason is not None:
            self._forget(sequence)
        return output

    def _forget(self, sequence: Sequence) -> None:
        del self._live[sequence.add.key]
        if sequence in self._running:
            self._running.remove(sequence)
        self._counters.finished += 1
        self._counters.finished_prompt_tokens += sequence.add.prompt_tokens
        self._counters.finished_generated_tokens += sequence.generated
