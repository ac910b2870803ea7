"""What routing knows of one request."""

from __future__ import annotations

from dataclasses import dataclass

from app.candidates import UNKNOWN_ANSWER
from autoscaling.types import Role, Tier


@dataclass(frozen=True, slots=True)
class Ask:
    """One request, as far as the route depends on it; `None` is unknown."""

    tier: Tier
    pin: Role | None = None  # the pool that the caller names
    parameters: frozenset[str] = frozenset()  # active ones that some engines refuse
    sequences: int = 1
    prompt_tokens: int = 0  # estimated
    max_tokens: int | None = None  # the caller's limit of the answer
    tokens_per_step: float | None = None  # predicted with drafts; None without a drafter or a prediction
    draftable: bool = False  # whether drafts are predicted to pay
    among: frozenset[str] | None = None  # replica ids that may serve it; None: all
    wider: bool = False  # a narrower replica has answered 400: room up to the hard limit will do
    conversation: str | None = None  # same on every turn; None for what need not stay together

    def answer_tokens(self, mean: float | None) -> float:
        """The expected length of the answer, by the pool's mean and the caller's limit."""
        expected = UNKNOWN_ANSWER if mean is None else mean
        return expected if self.max_tokens is None else min(expected, self.max_tokens)

    def longest_answer(self, mean: float | None) -> float:
        """The length to be prepared for: the caller's limit, the expected one without."""
        return self.answer_tokens(mean) if self.max_tokens is None else float(self.max_tokens)
