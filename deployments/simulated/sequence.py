"""One sequence inside the simulated engine: its answer, its draws, its times."""

from __future__ import annotations

from random import Random

from deployments.simulated.frames import Add, Finished, Output
from deployments.simulated.tokens import Writer


class Sequence:
    """One sequence and how far it has come; `order` is its place among the arrivals."""

    def __init__(self, add: Add, arrived_at: float, order: int, seed: int, draft_length: int) -> None:
        self.add = add
        self.rank = (add.priority, order)  # low runs first, high is preempted first
        self.computed = 0  # tokens in the KV cache
        self.target = 0  # tokens to compute before the next one can be generated
        self.preemptions = 0
        self.scheduled_at: float | None = None
        self._draft_length = draft_length
        self._writer = Writer(add.answer, add.stop, add.include_stop, add.min_tokens)
        # Seeded by a string: the same draws in every process and in every order of arrival.
        self._chance = Random(f"{seed}/{add.request_id}/{add.index}")  # noqa: S311
        self._histogram = [0] * (draft_length + 1)
        self._arrived_at = arrived_at
        self._first_token_at: float | None = None
        self._last_token_at: float | None = None

    @property
    def generated(self) -> int:
        """Tokens of the answer so far."""
        return self._writer.tokens

    @property
    def context(self) -> int:
        """Tokens of prompt and answer so far."""
        return self.add.prompt_tokens + self.generated

    def accept(self, acceptance: float) -> int:
        """Draft, and accept a prefix of the draft; 0 without drafts."""
        if not self._draft_length:
            return 0
        accepted = 0
        while accepted < self._draft_length and self._chance.random() < acceptance:
            accepted += 1
        self._histogram[accepted] += 1
        return accepted

    def write(self, tokens: int, now: float) -> Output:
        """Add up to `tokens` tokens; the output has a finish reason when they were the last."""
        add, writer = self.add, self._writer
        written = writer.write(min(tokens, add.max_tokens - writer.tokens))
        self._last_token_at = now
        if self._first_token_at is None:
            self._first_token_at = now
        full = writer.tokens >= add.max_tokens
        if not (full or writer.ended):
            return Output(add.key, writer.take(finished=False), written)
        reason = "length" if full and writer.stopped_by is None else "stop"
        text = writer.take(finished=True)
        return Output(add.key, text, written, reason, writer.stopped_by, self.record(now))

    def record(self, now: float) -> Finished:
        """Sum up the sequence when it ends, at whatever point."""
        scheduled, first, last = self.scheduled_at, self._first_token_at, self._last_token_at
        return Finished(
            request_id=self.add.request_id,
            prompt_tokens=self.add.prompt_tokens,
            generated_tokens=self.generated,
            queued_s=(now if scheduled is None else scheduled) - self._arrived_at,
            prefill_s=0.0 if scheduled is None else (now if first is None else first) - scheduled,
            decode_s=0.0 if first is None or last is None else last - first,
            e2e_s=now - self._arrived_at,
            preemptions=self.preemptions,
            histogram=tuple(self._histogram),
        )
