"""What one replica of each kind can sell at an objective."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from autoscaling.goodput import Sellable, capacity
from autoscaling.profiling.findings import Capacity
from autoscaling.profiling.gains import NO_DRAFTS, Gain, cost_at
from autoscaling.profiling.measured import EngineFacts
from autoscaling.routing_rules import StepCost
from autoscaling.types import Role

GRID_S: Final = (0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.15, 0.2)


def capacities(
    costs: Mapping[Role, StepCost],
    gains: Mapping[int, Gain],
    context_tokens: float,
    engines: Mapping[Role, EngineFacts],
    grid: Sequence[float] = GRID_S,
) -> tuple[Capacity, ...]:
    """B* and X of both engines at each objective, in seconds per token; empty without both engines.

    The speculative engine has the K of `gains` that sells most, K = 0 at its own cost among them.  No engine
    sells more sequences than it runs at once or its KV cache holds.
    """
    if set(engines) != set(Role) or set(costs) != set(Role):
        return ()
    found = []
    for tpot_s in grid:
        plain = _sold(costs[Role.PLAIN], {0: NO_DRAFTS}, tpot_s, context_tokens, engines[Role.PLAIN])
        drafted = _sold(costs[Role.SPECULATIVE], gains, tpot_s, context_tokens, engines[Role.SPECULATIVE])
        found.append(
            Capacity(
                tpot_s=tpot_s,
                plain_sequences=plain.sequences,
                plain_tokens_per_s=plain.tokens_per_s,
                draft_length=drafted.draft_length,
                speculative_sequences=drafted.sequences,
                speculative_tokens_per_s=drafted.tokens_per_s,
                limited_by_kv=plain.limited_by_kv or drafted.limited_by_kv,
            )
        )
    return tuple(found)


def _sold(
    cost: StepCost, gains: Mapping[int, Gain], tpot_s: float, context_tokens: float, engine: EngineFacts
) -> Sellable:
    """The best K, each with the draft tokens that it was measured with; of equals the shortest."""
    offers = [
        capacity(
            cost_at(cost, length, gain),
            tpot_s,
            context_tokens,
            {length: gain.tokens},
            engine.max_num_seqs,
            engine.kv_cache_tokens,
        )
        for length, gain in sorted(gains.items())
    ]
    return max(offers, key=lambda one: (one.tokens_per_s, one.limited_by_kv))
