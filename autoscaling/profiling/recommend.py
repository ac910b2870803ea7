"""What to set: the engine's own K table, and the limits in the policy file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from autoscaling.goodput import speed_up
from autoscaling.profiling.findings import Fit, PolicyValue, TableRow
from autoscaling.profiling.gains import Gain, cost_at
from autoscaling.routing_rules import StepCost
from autoscaling.step_cost import largest_batch
from autoscaling.types import Role, Tier

# Another K is taken when it brings 3 % more: rows that change for less would only make load swing about a
# boundary, and no measurement tells less apart.
WORTH: Final = 1.03


def draft_table(
    cost: StepCost, gains: Mapping[int, Gain], context_tokens: float, most: int
) -> tuple[TableRow, ...]:
    """K by running sequences, 1 to `most`: a table cannot leave the engine, so K = 0 is this engine's own."""
    rows: list[TableRow] = []
    current: int | None = None
    for sequences in range(1, most + 1):
        ratios = {length: _ratio(cost, length, gain, sequences, context_tokens) for length, gain in gains.items()}
        best = max(sorted(ratios), key=lambda length: ratios[length])
        if current is None or ratios[best] > WORTH * ratios[current]:
            current = best
        if rows and rows[-1].draft_length == current:
            rows[-1] = TableRow(rows[-1].first, sequences, current)
        else:
            rows.append(TableRow(sequences, sequences, current))
    return tuple(rows)


def policy_values(
    fits: Mapping[Role, Fit],
    gains: Mapping[int, Gain],
    context_tokens: float,
    objectives: Mapping[Tier, float],
    most: Mapping[Role, int],
) -> tuple[PolicyValue, ...]:
    """Limits per replica that keep the objectives; none where a fit is not accepted or nothing is promised."""
    wanted = ((Role.SPECULATIVE, Tier.INTERACTIVE), (Role.PLAIN, Tier.STANDARD))
    found = []
    for role, tier in wanted:
        fit, tpot_s = fits.get(role), objectives.get(tier)
        if fit is None or not fit.accepted or tpot_s is None:
            continue
        length = max(gains) if role is Role.SPECULATIVE else 0
        gain = gains[length]
        cost = cost_at(fit.cost, length, gain)
        batch = largest_batch(cost, tpot_s, context_tokens, gain.tokens, most[role])
        words = (
            f"{batch} sequences keep {1000 * tpot_s:g} ms per token of {tier}"
            if batch
            else f"not even one sequence keeps {1000 * tpot_s:g} ms per token of {tier}: "
            "promise more time, or use a faster machine"
        )
        if batch == most[role]:
            words += "; more were not asked of the engine"
        found.append(PolicyValue(f"spec.pools.{role}.limits.softInflight", max(1, batch), words))
    return tuple(found)


def _ratio(cost: StepCost, length: int, gain: Gain, sequences: int, context_tokens: float) -> float:
    if length == 0:
        return 1.0
    return speed_up(cost_at(cost, length, gain), cost, sequences, context_tokens, gain.tokens, length)


