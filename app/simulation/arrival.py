"""One request of a trace: what a caller will ask for, and when."""

from __future__ import annotations

from dataclasses import dataclass

from autoscaling.types import Tier


@dataclass(frozen=True, slots=True)
class Arrival:
    """A request as a trace has it; lengths in tokens."""

    at_s: float  # since the trace's beginning
    tier: Tier
    workload: str  # a kind of work by its name, such as chat, code or grounded; what acceptance depends on
    prompt_tokens: int
    answer_tokens: int
    conversation: str | None = None  # requests of one conversation share it, in order
