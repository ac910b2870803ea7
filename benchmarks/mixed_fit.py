"""From answers of calibration to the profile, and to the rate of the standard tier; pure.

The answers are streams of one pool, all of its other streams being open too.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from app.demo.answers import Answer
from autoscaling.profile import MEAN, SCHEMA_VERSION
from autoscaling.routing_rules import StepCost
from autoscaling.types import Role
from benchmarks.errors import BenchError

FEWEST: Final = 3  # answers that make the mean of a class
BUSY: Final = 0.8  # of the standard tier's time per token is what the plain pool shall need
LEAST_RATE, MOST_RATE = 0.2, 20.0  # requests per second; outside, the loops of other tiers are the load


@dataclass(frozen=True, slots=True)
class Point:
    """One number of streams: what a step held on average, and what it took."""

    streams: int
    tokens: float
    step_s: float


@dataclass(frozen=True, slots=True)
class Drafting:
    """What drafts gave over all classes."""

    tokens_per_step: Mapping[str, float]  # class, and the mean
    drafted: float  # tokens per sequence and step


@dataclass(frozen=True, slots=True)
class Cost:
    """What one standard request costs the plain pool beside the bases of its steps, in seconds."""

    request_s: float
    answers: int  # that it was measured with


def steps_of(answer: Answer) -> int:
    """Engine steps of an answer: each gives one token beside those that it accepts; 0 without usage."""
    accepted = 0 if answer.drafts is None else answer.drafts.accepted
    return max(1, answer.tokens - accepted) if answer.tokens else 0


def point(streams: int, answers: Iterable[Answer], prompt_tokens: Mapping[str, int]) -> Point:
    """The average step while `streams` answers were open; `prompt_tokens` by sample.

    An answer's own prompt comes before its first token; those of the other streams are between its steps.
    Raises BenchError without an answer of at least two steps.
    """
    usable = [one for one in answers if one.answered and one.stream_s is not None and steps_of(one) > 1]
    if not usable:
        raise BenchError(f"no complete answer at {streams} streams: the machine is too slow for this run")
    later = sum(steps_of(one) - 1 for one in usable)
    seconds = sum(one.stream_s or 0.0 for one in usable)
    drafted = sum(one.drafts.drafted for one in usable if one.drafts is not None)
    prompts = sum(prompt_tokens[one.sample] for one in usable)
    prefill = (streams - 1) * prompts / sum(steps_of(one) for one in usable)
    return Point(streams, streams * (1 + drafted / later) + prefill, seconds / later)


def fit(points: Sequence[Point]) -> StepCost:
    """Least squares of step = base + per_token * tokens, neither below 0; raises BenchError on one point."""
    if len({one.tokens for one in points}) < 2:
        raise BenchError("steps of one size say nothing about the cost of a token: measure more streams")
    mean_x = sum(one.tokens for one in points) / len(points)
    mean_y = sum(one.step_s for one in points) / len(points)
    spread = sum((one.tokens - mean_x) ** 2 for one in points)
    slope = sum((one.tokens - mean_x) * (one.step_s - mean_y) for one in points) / spread
    if slope < 0:
        return StepCost(base_s=mean_y, per_token_s=0.0)
    if mean_y < slope * mean_x:
        through_zero = sum(one.tokens * one.step_s for one in points) / sum(one.tokens**2 for one in points)
        return StepCost(base_s=0.0, per_token_s=through_zero)
    return StepCost(base_s=mean_y - slope * mean_x, per_token_s=slope)


def drafting(answers: Iterable[Answer], class_of: Mapping[str, str]) -> Drafting:
    """Tokens per step after the first, pooled by class; a class of few answers is left out.

    `class_of` by sample.  Raises BenchError when no answer tells of drafts.
    """
    groups: dict[str, list[Answer]] = defaultdict(list)
    for one in answers:
        if one.answered and one.drafts is not None and (one.tokens or 0) > 1:
            groups[MEAN].append(one)
            groups[class_of[one.sample]].append(one)
    if not groups:
        raise BenchError("no answer of the speculative pool tells of drafts: look at its engine's settings")
    later = sum(steps_of(one) - 1 for one in groups[MEAN])
    drafted = sum(one.drafts.drafted for one in groups[MEAN] if one.drafts is not None)
    found = {
        name: _gain(group) for name, group in sorted(groups.items()) if name == MEAN or len(group) >= FEWEST
    }
    return Drafting(found, drafted / max(1, later))


def _gain(answers: Sequence[Answer]) -> float:
    steps = sum(steps_of(one) - 1 for one in answers)
    tokens = sum((one.tokens or 0) - 1 for one in answers)
    return max(1.0, tokens / max(1, steps))


def draft_length(found: Drafting, most: int) -> int:
    """K of the profile: what is drafted on average, at least what the best class gains; 1 to `most`."""
    gained = math.ceil(max(found.tokens_per_step.values()) - 1)
    return min(most, max(1, round(found.drafted), gained))


def profile_text(
    fingerprint: str,
    made_at: str,
    context_tokens: float,
    costs: Mapping[Role, StepCost],
    found: Drafting,
    length: int,
) -> str:
    """The profile file; `made_at` is RFC 3339."""
    drafts = {Role.SPECULATIVE: length, Role.PLAIN: 0}
    return json.dumps(
        {
            "schemaVersion": SCHEMA_VERSION,
            "fingerprint": fingerprint,
            "madeAt": made_at,
            "contextTokens": round(context_tokens, 1),
            "pools": {
                role.value: {
                    "baseSeconds": round(cost.base_s, 6),
                    "perTokenSeconds": round(cost.per_token_s, 8),
                    "draftLength": drafts[role],
                }
                for role, cost in costs.items()
            },
            "tokensPerStep": {
                name: round(min(value, 1.0 + length), 3) for name, value in found.tokens_per_step.items()
            },
        },
        indent=2,
    )


def request_cost(answers: Iterable[Answer], streams: int, full_until_s: float, plain: StepCost) -> Cost:
    """What of the plain pool's time one standard request takes, by what ended while all streams were open.

    Each stream counts half an answer more: what it had done of one when the time was over.
    Raises BenchError when nothing ended in that time.
    """
    ended = [one for one in answers if one.answered and one.began_s + one.e2e_s <= full_until_s]
    if not ended:
        raise BenchError("no answer of the plain pool while its streams were open: measure more of them")
    tokens = sum(one.tokens or 0 for one in ended) / len(ended)
    whole_s = full_until_s / (len(ended) + streams / 2)
    return Cost(max(whole_s - plain.base_s * tokens / streams, plain.per_token_s * tokens), len(ended))


def standard_rate(
    plain: StepCost, cost: Cost, batch_streams: int, prompt_per_token: float, tpot_s: float
) -> float:
    """Requests per second with which the plain pool, batch included, takes 80 % of a time per token.

    `prompt_per_token` is what of batch's prompts comes on each token of its answers.
    """
    wanted_s = BUSY * tpot_s
    fixed_s = plain.base_s + plain.per_token_s * batch_streams * (1 + prompt_per_token)
    if cost.request_s <= 0:
        return MOST_RATE
    return min(MOST_RATE, max(LEAST_RATE, (1 - fixed_s / wanted_s) / cost.request_s))
