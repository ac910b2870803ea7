"""From engine steps and answers to what one cell has found; pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Final

from app.bench.answer import Answer
from autoscaling.profiling.measured import Drafting, Steps
from deployments.engine import StepRecord

CUT: Final = 0.25  # of the steps at either end: what else the machine does for a while is not the engine
FAR: Final = 3.0  # times the usual step: something else ran meanwhile
FEWEST: Final = 3  # full steps that make a mean


def full_steps(records: Sequence[StepRecord], sequences: int, prompt_tokens: int) -> Steps | None:
    """The decode steps in which all `sequences` took part and nothing else; None with too few.

    `prompt_tokens` are those of all sequences together.  The records are of one batch, from its first step.
    """
    seen: list[tuple[float, int, float]] = []  # seconds, tokens, context
    every: list[tuple[float, int]] = []  # seconds, and tokens that came out
    context = float(prompt_tokens)
    for one in records:
        if one.step_s is not None and one.sequences and not (one.started or one.prompt_tokens):
            every.append((one.step_s, one.decode_tokens))
            if one.sequences == sequences:
                seen.append((one.step_s, one.sequences + one.drafted, context))
        context += one.started + one.decode_tokens
    if len(seen) < FEWEST:
        return None
    seen.sort()
    cut = int(CUT * len(seen))
    kept = seen[cut : len(seen) - cut]
    times = [one[0] for one in kept]
    far_s = FAR * statistics.median(times)
    calm = [one for one in every if one[0] <= far_s]
    return Steps(
        count=len(kept),
        step_s=statistics.fmean(times),
        spread_s=statistics.pstdev(times),
        tokens=statistics.fmean(one[1] for one in kept),
        context_tokens=statistics.fmean(one[2] for one in kept),
        decoded=statistics.fmean(one[1] for one in calm),
        decoded_s=statistics.fmean(one[0] for one in calm),
    )


def together(parts: Sequence[Steps]) -> Steps | None:
    """Steps of several batches of one cell as one; None without any."""
    count = sum(part.count for part in parts)
    if not count:
        return None

    def mean(values: Sequence[float]) -> float:
        return sum(part.count * value for part, value in zip(parts, values, strict=True)) / count

    def known(values: Sequence[float | None]) -> float | None:
        told = [value for value in values if value is not None]
        return mean(told) if len(told) == len(parts) else None

    step_s = mean([part.step_s for part in parts])
    second = mean([part.spread_s**2 + part.step_s**2 for part in parts])
    return Steps(
        count=count,
        step_s=step_s,
        spread_s=max(0.0, second - step_s**2) ** 0.5,
        tokens=mean([part.tokens for part in parts]),
        context_tokens=mean([part.context_tokens for part in parts]),
        decoded=known([part.decoded for part in parts]),
        decoded_s=known([part.decoded_s for part in parts]),
    )


def drafting(records: Sequence[StepRecord], answers: Sequence[Answer]) -> Drafting:
    """How drafts fared over whole answers; with which of them ended where, from those that tell."""
    drafted = [length for answer in answers for length in answer.drafted_by_step]
    accepted = [length for answer in answers for length in answer.accepted_by_step]
    longest = max(drafted, default=0)
    ends = list(zip(drafted, accepted, strict=True))
    return Drafting(
        request_steps=sum(one.sequences for one in records),
        tokens=sum(one.decode_tokens for one in records),
        drafts=sum(one.drafts for one in records),
        drafted=sum(one.drafted for one in records),
        accepted=sum(one.accepted for one in records),
        at_risk=tuple(
            sum(length > position and kept >= position for length, kept in ends)
            for position in range(longest)
        ),
        survived=tuple(sum(kept > position for _, kept in ends) for position in range(longest)),
    )


def mean(values: Sequence[float | None]) -> float | None:
    """The mean of those that are known; None without any."""
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None
