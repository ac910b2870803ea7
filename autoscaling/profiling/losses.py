"""What a step with drafts costs beyond a plain one, and for what; by the cost models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from autoscaling.profiling.gains import Gain, cost_at
from autoscaling.routing_rules import StepCost
from autoscaling.step_cost import step_s
from autoscaling.types import Role


@dataclass(frozen=True, slots=True)
class Losses:
    """Shares of the plain step; together they are t(K) / t0 - 1."""

    verification: float  # the draft tokens that the model reads
    drafting: float  # making them
    rest: float  # what the speculative engine costs more, or less, when it drafts nothing


def losses(
    costs: Mapping[Role, StepCost], sequences: float, context_tokens: float, length: int, gain: Gain
) -> Losses | None:
    """Where the time of a step at K goes; None without both cost models."""
    if Role.PLAIN not in costs or Role.SPECULATIVE not in costs:
        return None
    plain = step_s(costs[Role.PLAIN], sequences, context_tokens)
    cost = cost_at(costs[Role.SPECULATIVE], length, gain)
    nothing = step_s(cost, sequences, context_tokens, draft_length=0)
    # The same tokens in a step for which nothing was drafted.
    read = step_s(cost, sequences, context_tokens, gain.drafted * sequences, draft_length=0)
    if cost.per_prefill_s is not None:
        read += (cost.per_token_s - cost.per_prefill_s) * gain.drafted * sequences
    whole = step_s(cost, sequences, context_tokens)
    return Losses(
        verification=(read - nothing) / plain,
        drafting=(whole - read) / plain,
        rest=(nothing - plain) / plain,
    )
