"""The load that pools are judged for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from autoscaling.types import Role, Tier

# Public price lists sell a priority token at about four times a flex token.
WEIGHT: Final = 4.0
# The tiers whose objective sets the limit of a pool, the first that has one, as in a running service.
LIMITED_BY: Final = {Role.SPECULATIVE: (Tier.INTERACTIVE,), Role.PLAIN: (Tier.STANDARD, Tier.BATCH)}


@dataclass(frozen=True, slots=True)
class Load:
    """What two replicas are asked for; rates per second, lengths in tokens."""

    interactive_per_s: float
    interactive_answer_tokens: float
    interactive_prompt_tokens: float
    batch_streams: int  # one request each at a time, without a pause
    batch_answer_tokens: float
    batch_prompt_tokens: float
    interactive_weight: float = WEIGHT  # of an interactive token in time, a batch token counts 1
    ttft_s: float | None = None  # an interactive prompt that takes longer is late

    @property
    def interactive_context(self) -> float:
        """Context tokens of an interactive answer, on average while it is written."""
        return self.interactive_prompt_tokens + self.interactive_answer_tokens / 2

    @property
    def batch_context(self) -> float:
        """The same of a batch answer."""
        return self.batch_prompt_tokens + self.batch_answer_tokens / 2


@dataclass(frozen=True, slots=True)
class Mix:
    """What a user says of the load; the rest follows from the measurement."""

    interactive_at_once: float = 2.0  # answers open on average, while each is alone in its step
    batch_at_once: int | None = None  # requests; None: the largest batch that was measured
    interactive: tuple[str, ...] = ()  # kinds of prompts; all of them without
    batch: tuple[str, ...] = ()
