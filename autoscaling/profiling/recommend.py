"""What to set: the engine's own K table, and the limits in the policy file."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from autoscaling.goodput import speed_up
from autoscaling.profiling.findings import Fit, PolicyValue, TableRow
from autoscaling.profiling.gains import NO_DRAFTS, Gain, cost_at
from autoscaling.profiling.load import LIMITED_BY
from autoscaling.routing_rules import RoutingRules, StepCost
from autoscaling.step_cost import step_s
from autoscaling.types import Role, Tier

# Another K is taken when it brings 3 % more: rows that change for less would only make load swing about a
# boundary, and no measurement tells less apart.
WORTH: Final = 1.03
RESERVE: Final = RoutingRules().reserve  # sequences that a policy keeps for interactive by default


def draft_table(
    cost: StepCost, gains: Mapping[int, Gain], context_tokens: float, most: int
) -> tuple[TableRow, ...]:
    """K by running sequences, 1 to `most`: a table cannot leave the engine, so K = 0 is this engine's own.

    At no batch does another K bring 3 % more than the table's.
    """
    rows: list[TableRow] = []
    current: int | None = None
    for sequences in range(1, most + 1):
        ratios = {
            length: _ratio(cost, length, gain, sequences, context_tokens)
            for length, gain in sorted(gains.items())
        }
        best = max(ratios, key=lambda length: ratios[length])
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
    table: Sequence[TableRow],
    context_tokens: float,
    objectives: Mapping[Tier, float],
    most: Mapping[Role, int],
    largest: int | None = None,
) -> tuple[PolicyValue, ...]:
    """Limits per replica that keep the objectives, in seconds per token, with the table's K.

    `most` is what each engine runs at once, `largest` the largest batch that was measured.  Nothing where a
    fit is not accepted or nothing is promised; of a promise that not even one sequence keeps, one that it
    does.
    """
    found = []
    top = largest or max(most.values())
    tables = {Role.SPECULATIVE: table, Role.PLAIN: (TableRow(1, most[Role.PLAIN], 0),)}
    for role, tiers in LIMITED_BY.items():
        fit = fits.get(role)
        tier = next((one for one in tiers if one in objectives), None)
        if fit is None or not fit.accepted or tier is None:
            continue
        tpot_s = objectives[tier]
        limit = _largest_in_time(fit.cost, gains, tables[role], tpot_s, context_tokens)
        if limit == 0:
            alone_s = _token_s(fit.cost, gains, tables[role][0], 1, context_tokens)
            found.append(
                PolicyValue(
                    f"spec.objectives.{tier}.tpotSeconds",
                    math.ceil(1000 * alone_s) / 1000,
                    f"not even one sequence keeps {1000 * tpot_s:g} ms per token of {tier}, so it sets no "
                    "limit: this much it takes alone; promise that or more, or use a faster machine",
                )
            )
            continue
        found.append(
            PolicyValue(
                f"spec.pools.{role}.limits.softInflight", limit, _words(limit, tpot_s, tier, most[role], top)
            )
        )
        if role is Role.SPECULATIVE and limit <= RESERVE:
            found.append(
                PolicyValue(
                    "spec.backfill.reserve",
                    limit - 1,
                    f"a reserve of {RESERVE}, the default, would keep a replica that takes {limit} "
                    "from everybody but interactive requests",
                )
            )
    return tuple(found)


def _largest_in_time(
    cost: StepCost, gains: Mapping[int, Gain], table: Sequence[TableRow], tpot_s: float, context_tokens: float
) -> int:
    """The most sequences up to which every batch keeps the objective; 0 when not even one does."""
    for row in table:
        for sequences in range(row.first, row.last + 1):
            if _token_s(cost, gains, row, sequences, context_tokens) > tpot_s:
                return sequences - 1
    return table[-1].last if table else 0


def _token_s(
    cost: StepCost, gains: Mapping[int, Gain], row: TableRow, sequences: int, context_tokens: float
) -> float:
    """Seconds per token of each sequence, at the K of a row."""
    gain = gains[row.draft_length] if row.draft_length else NO_DRAFTS
    return step_s(cost_at(cost, row.draft_length, gain), sequences, context_tokens) / gain.tokens


def _words(batch: int, tpot_s: float, tier: Tier, most: int, largest: int) -> str:
    kept = f"{1000 * tpot_s:g} ms per token of {tier}, on average over all prompts"
    subject = "1 sequence keeps" if batch == 1 else f"{batch} sequences keep"
    ends = "; the engine runs no more at once" if batch == most else ""
    return f"{subject} {kept}{ends}" + (
        f"; by the cost model, beyond the {largest} measured" if batch > largest else ""
    )


def _ratio(cost: StepCost, length: int, gain: Gain, sequences: int, context_tokens: float) -> float:
    """Tokens per second at K over those of the same engine at K = 0."""
    if length == 0:
        return 1.0
    return speed_up(cost_at(cost, length, gain), cost, sequences, context_tokens, gain.tokens, length)
