"""What an engine step costs, and the largest batch that keeps an objective; closed forms over `StepCost`.

Times are seconds, tokens and sequences are counts.  A step is that of a full batch: every sequence takes
part in it, and `tokens_per_step` (1 or more) tokens of each come out of it on average.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from autoscaling.routing_rules import StepCost


def step_s(
    cost: StepCost,
    sequences: float,
    context_tokens: float,
    prefill_tokens: float = 0,
    draft_length: int | None = None,
) -> float:
    """Seconds of one step of `sequences`, each with `context_tokens`, that `prefill_tokens` share.

    `draft_length` stands in for the cost's own; with 0 nothing is drafted.
    """
    length = cost.draft_length if draft_length is None else draft_length
    decoded = sequences * (1 + drafted_tokens(cost, length))
    context = sequences * context_tokens
    step = cost.base_s + cost.per_token_s * decoded + _per_prefill_s(cost) * prefill_tokens
    step += cost.per_context_s * context
    step += cost.past_hinge_s * max(0.0, decoded + prefill_tokens - cost.hinge_tokens)
    if length > 0:
        step += cost.draft_s + cost.per_draft_s * length
        step += cost.draft_per_token_s * decoded + cost.draft_per_context_s * context
    return step


def drafted_tokens(cost: StepCost, draft_length: int) -> float:
    """Mean draft tokens per sequence and step at K, in proportion to those at the cost's own K."""
    if cost.drafted is None or cost.draft_length == 0:
        return float(draft_length)
    return cost.drafted * draft_length / cost.draft_length


def at_length(cost: StepCost, draft_length: int) -> StepCost:
    """The cost with another K in force, its drafts as full as at the cost's own."""
    drafted = None if cost.drafted is None else drafted_tokens(cost, draft_length)
    return replace(cost, draft_length=draft_length, drafted=drafted)


def per_token(cost: StepCost, gain: float) -> StepCost:
    """A cost whose steps bring one token, each as dear as in steps of `gain`; prompts cost what they did."""
    return replace(
        cost,
        base_s=cost.base_s / gain,
        per_token_s=cost.per_token_s / gain,
        per_context_s=cost.per_context_s / gain,
        draft_s=cost.draft_s / gain,
        per_draft_s=cost.per_draft_s / gain,
        draft_per_token_s=cost.draft_per_token_s / gain,
        draft_per_context_s=cost.draft_per_context_s / gain,
        per_prefill_s=_per_prefill_s(cost),
        past_hinge_s=cost.past_hinge_s / gain,
    )


def tpot_s(cost: StepCost, sequences: float, context_tokens: float, tokens_per_step: float) -> float:
    """Seconds per output token of each sequence of a batch that nothing else shares."""
    return step_s(cost, sequences, context_tokens) / tokens_per_step


def churn_s(cost: StepCost, others: float, prompt_tokens: float, answer_tokens: float) -> float:
    """Seconds that each output token waits for the prompts of those who take turns beside it.

    While one sequence generates an answer, each place beside it is taken over about once, and a prompt holds
    up the whole batch.
    """
    return max(0.0, others) * _per_prefill_s(cost) * prompt_tokens / max(1.0, answer_tokens)


def prefill_s(cost: StepCost, prompt_tokens: float, sequences: float = 0, context_tokens: float = 0) -> float:
    """Seconds of the step that takes a whole prompt, beside `sequences` that decode.

    An engine that cuts the prompt into chunks adds a base for each further one.
    """
    return step_s(cost, sequences, context_tokens, prompt_tokens)


@lru_cache(maxsize=256)  # a controller asks the same at every tick
def largest_batch(
    cost: StepCost, tpot_s_objective: float, context_tokens: float, tokens_per_step: float, most: int
) -> int:
    """B*: the most sequences, up to `most`, whose time per output token is within the objective.

    0 when not even one sequence is.  By bisection: a larger batch never has a shorter step.
    """
    low, high = 0, max(0, most)
    while low < high:
        middle = (low + high + 1) // 2
        if tpot_s(cost, middle, context_tokens, tokens_per_step) <= tpot_s_objective:
            low = middle
        else:
            high = middle - 1
    return low


def _per_prefill_s(cost: StepCost) -> float:
    return cost.per_token_s if cost.per_prefill_s is None else cost.per_prefill_s
