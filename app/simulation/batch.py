"""The sequences that run inside a simulated engine: their tokens in memory, and what a step does to them."""

from __future__ import annotations

from app.simulation.engine_counters import Tally
from app.simulation.sequence import Sequence

Progress = tuple[str, int, bool]  # identity of a sequence, tokens it gained, whether those were its last


class Batch:
    """Those that compute their prompts, in the order they were taken, and those that decode."""

    def __init__(self) -> None:
        self.prefilling: list[Sequence] = []
        self.decoding: list[Sequence] = []
        self.held = 0  # tokens of all, of prompts in the making the whole
        self.decoded = 0  # tokens of those that decode, prompts included

    def __len__(self) -> int:
        return len(self.decoding) + len(self.prefilling)

    @property
    def missing(self) -> int:
        """Tokens of prompts that are still to compute."""
        return sum(sequence.context - sequence.computed for sequence in self.prefilling)

    def take(self, sequence: Sequence) -> None:
        """Begin with a sequence's prompt."""
        self.held += sequence.context
        self.prefilling.append(sequence)

    def drop(self, sequence: Sequence) -> bool:
        """Forget a sequence, at whatever point it is; False when it does not run."""
        if sequence in self.decoding:
            self.decoding.remove(sequence)
            self.decoded -= sequence.context
        elif sequence in self.prefilling:
            self.prefilling.remove(sequence)
        else:
            return False
        self.held -= sequence.context
        return True

    def newest(self) -> Sequence:
        """The one that yields first."""
        return max((*self.decoding, *self.prefilling), key=lambda sequence: sequence.rank)

    def plan(self, budget: int) -> int:
        """Share at most `budget` tokens out to the prompts, first come first served; how many they get."""
        planned = 0
        for sequence in self.prefilling:
            sequence.part = max(0, min(sequence.context - sequence.computed, budget - planned))
            planned += sequence.part
        return planned

    def drafting(self) -> int:
        """How many of those that decode have a draft in the next step, in an engine that drafts."""
        return sum((sequence.drawn or sequence.draw())[-1] >= 0 for sequence in self.decoding)

    def decode(self, length: int, tally: Tally, now: float) -> list[Progress]:
        """Give each that decodes what a step at K = `length` brings it; those that end are no longer here."""
        progress: list[Progress] = []
        found, gained, ended = tally.by_length[length], 0, False
        for sequence in self.decoding:
            tokens = 1
            if length:
                drawn = sequence.drawn or sequence.draw()
                accepted = drawn.pop()
                if accepted > length:  # noqa: PLR1730  # min() would be a call more
                    accepted = length
                found[accepted] += 1  # -1, no draft, is the last place
                if accepted > 0:
                    tokens += accepted
            left = sequence.left - tokens
            if left <= 0:
                tokens += left
                left, ended = 0, True
            sequence.left = left
            sequence.context += tokens
            gained += tokens
            progress.append((sequence.identity, tokens, not left))
        self.held += gained
        self.decoded += gained
        tally.sequence_steps += len(progress)
        tally.decoded_tokens += gained
        if ended:
            self.decoding = [sequence for sequence in self.decoding if not self._ended(sequence, now)]
        return progress

    def prefill(self, now: float) -> list[Progress]:
        """Compute the planned parts of prompts; a whole one brings its sequence a token."""
        progress: list[Progress] = []
        still: list[Sequence] = []
        for sequence in self.prefilling:
            sequence.computed += sequence.part
            if sequence.computed < sequence.context:
                still.append(sequence)
                continue
            if sequence.first_token_at is None:
                sequence.first_token_at = now
            sequence.context += 1
            sequence.left -= 1
            self.held += 1
            self.decoded += sequence.context
            progress.append((sequence.identity, 1, sequence.left == 0))
            if not self._ended(sequence, now):
                self.decoding.append(sequence)
        self.prefilling = still
        return progress

    def _ended(self, sequence: Sequence, now: float) -> bool:
        if sequence.left:
            return False
        sequence.finished_at = now
        self.held -= sequence.context
        self.decoded -= sequence.context
        return True
