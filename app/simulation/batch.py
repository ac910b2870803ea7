"""The sequences that run inside a simulated engine: their tokens in memory, and what a step does to them."""

from __future__ import annotations

from app.simulation.engine_counters import Tally
from app.simulation.sequence import Book, Sequence


class Batch:
    """Those that compute their prompts, in the order they were taken, and those that decode.

    A step without drafts brings each that decodes one token: such steps are counted, and written into the
    sequences when one of them ends or anything else happens; `settle` does it at once.
    """

    def __init__(self) -> None:
        self._behind = 0  # steps that are not written yet
        self._until = 0  # so many of them until a sequence ends, or all that is owed to its book has come
        self._owing: dict[Book, int] = {}  # how many owe to each book meanwhile
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
        self.settle()
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

    def settle(self) -> None:
        """Write the steps that were only counted."""
        behind, self._behind = self._behind, 0
        if behind:
            for sequence in self.decoding:
                sequence.left -= behind
                sequence.context += behind
                if sequence.owed:
                    sequence.owed -= behind

    def decode(self, length: int, tally: Tally, now: float) -> list[Sequence]:
        """Give each that decodes what a step at K = `length` brings it; those that ended, which go."""
        before = self.decoded
        if length == 0:
            ended = self._undrafted()
        else:
            self.settle()
            ended = self._drafted(length, tally.by_length[length])
        tally.sequence_steps += len(self.decoding)
        tally.decoded_tokens += self.decoded - before
        return self._leave(now) if ended else []

    def prefill(self, now: float) -> list[Sequence]:
        """Compute the planned parts of prompts, a whole one brings its sequence a token; those that ended."""
        still: list[Sequence] = []
        begun: list[Sequence] = []
        for sequence in self.prefilling:
            sequence.computed += sequence.part
            if sequence.computed < sequence.context:
                still.append(sequence)
                continue
            if sequence.first_token_at is None:
                sequence.first_token_at = now
            sequence.context += 1
            sequence.left -= 1
            if sequence.owed:
                sequence.owed -= 1
                sequence.book.came += 1
            self.held += 1
            self.decoded += sequence.context
            begun.append(sequence)
        self.prefilling = still
        if not begun:
            return []
        self.settle()
        self.decoding += begun
        return self._leave(now) if any(sequence.left == 0 for sequence in begun) else []

    def _undrafted(self) -> bool:
        """One token for each; whether some have ended."""
        if not self._behind:
            self._look_ahead()
        self._behind += 1
        self.held += len(self.decoding)
        self.decoded += len(self.decoding)
        for book, owing in self._owing.items():
            book.came += owing
        if self._behind < self._until:
            return False
        self.settle()
        return True

    def _look_ahead(self) -> None:
        self._until, self._owing = min((sequence.left for sequence in self.decoding), default=0), {}
        for sequence in self.decoding:
            if owed := sequence.owed:
                self._until = min(self._until, owed)
                self._owing[sequence.book] = self._owing.get(sequence.book, 0) + 1

    def _drafted(self, length: int, found: list[int]) -> bool:
        """A token for each, and what is accepted of its draft; whether some have ended."""
        gained, ended = 0, False
        for sequence in self.decoding:
            accepted = (sequence.drawn or sequence.draw()).pop()
            if accepted > length:  # noqa: PLR1730  # min() would be a call more
                accepted = length
            found[accepted] += 1  # -1, no draft, is the last place
            tokens = 1 + accepted if accepted > 0 else 1
            left = sequence.left - tokens
            if left <= 0:
                tokens += left
                left, ended = 0, True
            sequence.left = left
            sequence.context += tokens
            gained += tokens
            owed = sequence.owed
            if owed:
                came = tokens if tokens < owed else owed  # noqa: FURB136  # as above
                sequence.owed = owed - came
                sequence.book.came += came
        self.held += gained
        self.decoded += gained
        return ended

    def _leave(self, now: float) -> list[Sequence]:
        """Those that have nothing left to generate go."""
        ended = [sequence for sequence in self.decoding if not sequence.left]
        for sequence in ended:
            sequence.finished_at = now
            self.held -= sequence.context
            self.decoded -= sequence.context
        if ended:
            self.decoding = [sequence for sequence in self.decoding if sequence.left]
        return ended
