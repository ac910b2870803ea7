"""What a simulated engine counts: steps, drafts and their fate, as an engine's own metrics have it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Counters:
    """Since the engine's start; positions count from 0."""

    steps: int
    sequence_steps: int  # sequences that decoded, over all steps
    decoded_tokens: int  # that those brought
    prompt_tokens: int  # computed, those computed again included
    preemptions: int
    drafts: int
    drafted: int  # tokens
    accepted: int  # tokens, those cut off at the end of an answer included
    drafted_per_position: tuple[int, ...]
    accepted_per_position: tuple[int, ...]


class Tally:
    """The counters in the making; `by_length[K][n]` are drafts of K with n accepted, the last without one."""

    def __init__(self, longest: int) -> None:
        self.steps = self.sequence_steps = self.decoded_tokens = self.prompt_tokens = self.preemptions = 0
        self.by_length = [[0] * (longest + 2) for _ in range(longest + 1)]

    def counters(self) -> Counters:
        """As they stand."""
        longest = len(self.by_length) - 1
        drafts = [sum(found[: length + 1]) for length, found in enumerate(self.by_length)]
        drafted = tuple(sum(drafts[position + 1 :]) for position in range(longest))
        accepted = tuple(
            sum(sum(found[position + 1 : longest + 1]) for found in self.by_length)
            for position in range(longest)
        )
        return Counters(
            steps=self.steps,
            sequence_steps=self.sequence_steps,
            decoded_tokens=self.decoded_tokens,
            prompt_tokens=self.prompt_tokens,
            preemptions=self.preemptions,
            drafts=sum(drafts),
            drafted=sum(drafted),
            accepted=sum(accepted),
            drafted_per_position=drafted,
            accepted_per_position=accepted,
        )
