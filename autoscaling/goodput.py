"""When drafting pays, how much to draft, and what a replica can sell; closed forms over `StepCost`.

Times are seconds, tokens and sequences are counts, K is a draft length.  `cost` is that of the speculative
engine, `plain` that of the engine that is really there instead and drafts nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from autoscaling import step_cost
from autoscaling.profiling.findings import Verdict
from autoscaling.routing_rules import StepCost
from autoscaling.step_cost import drafted_tokens, step_s

# Deep positions are reached in easy stretches only, where acceptance nears 1; what lies beyond the measured
# depth is not trusted to be better than this.
MOST_CONDITIONAL = 0.8


@dataclass(frozen=True, slots=True)
class Sellable:
    """The most tokens that one replica gives within an objective, and how."""

    draft_length: int
    sequences: int  # B*; 0: not even one sequence keeps the objective
    tokens_per_s: float  # X, at B*
    limited_by_kv: bool  # the KV memory, not the objective or `most`, sets B*


@dataclass(frozen=True, slots=True)
class Crossing:
    """How the speed-up at one K goes through 1 as the batch grows."""

    kind: Verdict
    at: float | None  # sequences, between two whole batches; None unless the kind is PAYS_BELOW


def tokens_per_step(survival: Sequence[float], draft_length: int, draft_rate: float = 1.0) -> float:
    """Mean tokens of a sequence per step at K: 1 and, of the share of steps that draft, what is accepted.

    `survival[i]` is the share of drafts whose first i+1 tokens were all accepted; one that is above its
    predecessor counts as that.  Beyond the known depth each position loses what the last known one lost, and
    at least a fifth.  Without any survival the result is 1.
    """
    return 1.0 + draft_rate * sum(_deep(survival, draft_length))


def break_even(
    cost: StepCost, plain: StepCost, sequences: float, context_tokens: float, draft_length: int | None = None
) -> float:
    """Theta*: the share of draft tokens that must be accepted for drafting to pay at this batch.

    1 or more: no acceptance can pay; 0 or less: drafting costs nothing.  It does not depend on K where each
    draft token costs the same and both engines are equally fast at K = 0.  `draft_length` stands in for the
    cost's own.  Raises ValueError where nothing is drafted.
    """
    length = cost.draft_length if draft_length is None else draft_length
    drafted = drafted_tokens(cost, length)
    if length < 1 or drafted <= 0:
        raise ValueError(
            f"break-even needs drafts, not {drafted:g} tokens at K={length}: give a K of 1 or more"
        )
    alone = step_s(plain, sequences, context_tokens, draft_length=0)
    return (step_s(cost, sequences, context_tokens, draft_length=length) / alone - 1.0) / drafted


def speed_up(
    cost: StepCost,
    plain: StepCost,
    sequences: float,
    context_tokens: float,
    tokens_per_step: float,
    draft_length: int,
) -> float:
    """Tokens per second of the speculative engine at K over the plain one, at the same batch.

    K = 0 is the speculative engine that drafts nothing: below 1 where that is not free.
    """
    alone = step_s(plain, sequences, context_tokens, draft_length=0)
    return tokens_per_step * alone / step_s(cost, sequences, context_tokens, draft_length=draft_length)


def best_draft_length(
    cost: StepCost,
    plain: StepCost,
    survival: Sequence[float],
    sequences: float,
    context_tokens: float,
    longest: int,
    draft_rate: float = 1.0,
) -> int:
    """K of most tokens per second, 0..`longest`; 0 means `plain`, and wins a tie.

    By the marginal rule from K = 1 on: one more draft token while its chance of being accepted is above the
    share that it adds to the step, times the tokens that the step gives.  That is exact there for every
    `StepCost` without negative parts: each position is accepted no more often than the one before it, and
    costs no less (a hinge only makes it dearer).  It is not exact from K = 0, because the first draft token
    also pays what drafting costs at any K (n-gram, parallel drafters) and because the two engines may differ:
    `plain` is compared with the winner of the rest.
    """

    def step(length: int) -> float:
        return step_s(cost, sequences, context_tokens, draft_length=length)

    if longest < 1:
        return 0
    chances = [draft_rate * share for share in _deep(survival, longest)]
    best, tokens, took = 1, 1.0 + chances[0], step(1)
    for length in range(2, longest + 1):
        longer, chance = step(length), chances[length - 1]
        if chance * took <= (longer - took) * tokens:
            break
        best, tokens, took = length, tokens + chance, longer
    alone = step_s(plain, sequences, context_tokens, draft_length=0)
    return best if tokens * alone > took else 0


def capacity(
    cost: StepCost,
    tpot_s: float,
    context_tokens: float,
    gains: Mapping[int, float],
    most: int,
    kv_tokens: float | None,
) -> Sellable:
    """What one replica sells at an objective for the time per token, at the best of the K in `gains`.

    `gains` has the tokens per step of each K; K = 0 is `cost` without drafts.  B* is the largest batch whose
    time per token is within the objective, up to `most` and to what `kv_tokens` hold (None: no such limit).
    X is B* over the time per token at B*, which is what really comes out.  B* / `tpot_s` would be less,
    and much less where another limit binds first.  With equal X the shorter K.  Raises ValueError without
    gains.
    """
    if not gains:
        raise ValueError("capacity needs the tokens per step of at least one K, also if that is {0: 1.0}")
    sold = [_sold(cost, tpot_s, context_tokens, gain, most, kv_tokens, k) for k, gain in gains.items()]
    return max(sold, key=lambda one: (one.tokens_per_s, one.limited_by_kv, -one.draft_length))


def crossover(
    cost: StepCost,
    plain: StepCost,
    context_tokens: float,
    tokens_per_step: float,
    draft_length: int,
    most: int,
) -> Crossing:
    """Where in the batches 1..`most` the speed-up at K falls to 1, interpolated between whole batches.

    PAYS_ALWAYS when it is above 1 at all of them, NEVER_PAYS when at none.  MIXED when it rises through 1
    anywhere, also if only once: with long contexts drafting may pay from some batch on.
    """
    speeds = [
        speed_up(cost, plain, batch, context_tokens, tokens_per_step, draft_length)
        for batch in range(1, max(1, most) + 1)
    ]
    pays = [speed > 1.0 for speed in speeds]
    if all(pays):
        return Crossing(Verdict.PAYS_ALWAYS, None)
    if not any(pays):
        return Crossing(Verdict.NEVER_PAYS, None)
    last = sum(pays)  # where it pays below: the batches 1..last
    if not all(pays[:last]):
        return Crossing(Verdict.MIXED, None)
    above, below = speeds[last - 1], speeds[last]
    return Crossing(Verdict.PAYS_BELOW, last + (above - 1.0) / (above - below))


def leviathan(alpha: float, draft_length: int, cost_ratio: float) -> float:
    """Speed-up at batch 1 when each draft token is accepted with `alpha`, whatever came before it.

    `cost_ratio` is the time of one draft token over that of a plain step.  `alpha` is not the share of draft
    tokens accepted: 0.7 at K = 4 means a share of 0.443.
    """
    return _of_alpha(alpha, draft_length) / (cost_ratio * draft_length + 1.0)


def rule_of_thumb(alpha: float, draft_length: int) -> float:
    """1 / (1 - a(1 - 1/K)), a formula in circulation for the speed-up; for comparison only, since it is wrong.

    At K = 4 and a = 0.7 it gives 2.105 where a step gives 2.773 tokens, and 2.31 with a draft that costs 0.05
    of a step.  At K = 1 it is 1 for every a, where the tokens are 1 + a.  It knows no cost and no batch and is
    never below 1, so it can never say "off".  Raises ValueError below K = 1.
    """
    if draft_length < 1:
        raise ValueError(f"the rule of thumb needs a K of 1 or more, not {draft_length}")
    return 1.0 / (1.0 - alpha * (1.0 - 1.0 / draft_length))


def effective_alpha(tokens_per_step: float, draft_length: int) -> float:
    """The `alpha` of `leviathan` that would give these tokens per step at K; 0..1, by bisection.

    Raises ValueError below K = 1, where every alpha does.
    """
    if draft_length < 1:
        raise ValueError(f"alpha needs a K of 1 or more, not {draft_length}")
    low, high = 0.0, 1.0
    for _ in range(50):  # halves: the resolution of a float
        middle = (low + high) / 2
        if _of_alpha(middle, draft_length) < tokens_per_step:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _of_alpha(alpha: float, draft_length: int) -> float:
    return sum(alpha**i for i in range(draft_length + 1))


def _deep(survival: Sequence[float], depth: int) -> list[float]:
    """Survival of the first `depth` positions, never rising, extended beyond the known ones."""
    found: list[float] = []
    before = reached = 1.0
    for share in survival[: max(0, depth)]:
        before, reached = reached, min(reached, share)
        found.append(reached)
    kept = min(MOST_CONDITIONAL, reached / before) if survival and before > 0 else 0.0
    while len(found) < depth:
        reached *= kept
        found.append(reached)
    return found


def _sold(
    cost: StepCost,
    tpot_s: float,
    context_tokens: float,
    gain: float,
    most: int,
    kv_tokens: float | None,
    draft_length: int,
) -> Sellable:
    drafted = None if cost.drafted is None else drafted_tokens(cost, draft_length)
    at_k = replace(cost, draft_length=draft_length, drafted=drafted)
    in_time = step_cost.largest_batch(at_k, tpot_s, context_tokens, gain, most)
    fits = in_time
    if kv_tokens is not None and context_tokens > 0:
        fits = min(in_time, int(kv_tokens // context_tokens))
    if fits == 0:
        return Sellable(draft_length, 0, 0.0, in_time > 0)
    sold = fits / step_cost.tpot_s(at_k, fits, context_tokens, gain)
    return Sellable(draft_length, fits, sold, fits < in_time)
