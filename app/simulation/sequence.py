"""One sequence inside a simulated engine: what it asks for, how far it has come, and when."""

from __future__ import annotations

from app.simulation.acceptance import Outcomes


class Book:
    """Tokens that came of several sequences together, as far as they were expected, until it is read."""

    __slots__ = ("came",)

    def __init__(self) -> None:
        self.came = 0

    def read(self) -> int:
        """What came since the last time."""
        came, self.came = self.came, 0
        return came


NOBODYS = Book()  # nothing is owed to it


class Sequence:
    """One answer to generate; the engine writes all but the first six fields, `owed` and `book`.

    `number` tells a request from others in the draws of acceptance: the same one fares the same in every
    engine.  `priority` low runs first.  `cached_tokens` of the prompt lie in the engine's prefix cache, and
    are computed only after a preemption.  Raises ValueError for a prompt or an answer without tokens, and
    for a prompt of which nothing is left to compute.
    """

    __slots__ = (
        "answer_tokens",
        "arrived_at",
        "book",
        "computed",
        "context",
        "drawn",
        "finished_at",
        "first_token_at",
        "identity",
        "left",
        "number",
        "outcomes",
        "owed",
        "part",
        "preemptions",
        "priority",
        "prompt_tokens",
        "rank",
        "scheduled_at",
        "workload",
    )

    def __init__(
        self,
        identity: str,
        workload: str,
        prompt_tokens: int,
        answer_tokens: int,
        number: int = 0,
        priority: int = 0,
        cached_tokens: int = 0,
    ) -> None:
        if prompt_tokens < 1 or answer_tokens < 1:
            raise ValueError(
                f"{identity}: {prompt_tokens} prompt and {answer_tokens} answer tokens: give 1 or more each"
            )
        if not 0 <= cached_tokens < prompt_tokens:
            raise ValueError(
                f"{identity}: {cached_tokens} of {prompt_tokens} prompt tokens cached: at least the last one "
                "has to be computed"
            )
        self.identity = identity
        self.workload = workload
        self.prompt_tokens = prompt_tokens
        self.answer_tokens = answer_tokens
        self.number = number
        self.priority = priority
        self.rank = (
            priority,
            0,
        )  # of those waiting the lowest runs first, of those running the highest yields
        self.context = prompt_tokens  # tokens of prompt and answer so far
        self.computed = cached_tokens  # tokens in the KV cache while the prompt is computed
        self.part = 0  # tokens of the prompt that the step in progress computes
        self.left = answer_tokens  # to generate
        self.outcomes: Outcomes | None = None  # None: nothing drafts
        self.drawn: list[int] = []  # accepted tokens of the next steps, the last step first
        self.owed = 0  # tokens that are still expected, by whoever keeps the book
        self.book = NOBODYS  # where they are counted when they come
        self.preemptions = 0
        self.arrived_at: float | None = None
        self.scheduled_at: float | None = None  # first
        self.first_token_at: float | None = None
        self.finished_at: float | None = None

    @property
    def generated(self) -> int:
        """Tokens of the answer so far."""
        return self.context - self.prompt_tokens

    def draw(self) -> list[int]:
        """Fill `drawn` and return it; RuntimeError in an engine that never drafts."""
        if self.outcomes is None:
            raise RuntimeError(f"{self.identity}: nothing drafts here")
        self.drawn = self.outcomes.more()
        return self.drawn
