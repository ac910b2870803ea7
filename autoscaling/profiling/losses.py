"""What a step with drafts costs beyond a plain one, and for what; by the cost models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from autoscaling.profiling.gains import Gain, cost_at
from autoscaling.profiling.measured import EngineFacts
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
    read = step_s(_without_drafting(cost), sequences, context_tokens)
    whole = step_s(cost, sequences, context_tokens)
    return Losses(
        verification=(read - nothing) / plain,
        drafting=(whole - read) / plain,
        rest=(nothing - plain) / plain,
    )


def drafting_s(cost: StepCost, gains: Mapping[int, Gain], context_tokens: float) -> float | None:
    """Seconds that drafting alone costs the step of one sequence at the largest K; None without K > 0."""
    length = max(gains)
    if length == 0:
        return None
    drafted = cost_at(cost, length, gains[length])
    return step_s(drafted, 1, context_tokens) - step_s(_without_drafting(drafted), 1, context_tokens)


def kv_loss(engines: Mapping[Role, EngineFacts]) -> float | None:
    """The share of the plain engine's KV tokens that the speculative one lacks; below 0 where it has more."""
    found = {role: one.kv_cache_tokens for role, one in engines.items()}
    plain, drafted = found.get(Role.PLAIN), found.get(Role.SPECULATIVE)
    return None if not plain or drafted is None else 1.0 - drafted / plain


def _without_drafting(cost: StepCost) -> StepCost:
    """The same tokens to read, made for nothing."""
    return replace(cost, draft_s=0.0, per_draft_s=0.0, draft_per_token_s=0.0, draft_per_context_s=0.0)
