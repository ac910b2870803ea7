"""Calibration of `benchmarks.mixed`: what steps cost in both pools, what drafts give, and the rate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from app.demo.answers import Answer
from app.demo.plan import Wanted
from autoscaling.routing_rules import StepCost
from autoscaling.types import Role, Tier
from benchmarks.errors import BenchError
from benchmarks.mixed_fit import (
    Cost,
    Drafting,
    Point,
    drafting,
    fit,
    point,
    request_cost,
    standard_rate,
)
from benchmarks.mixed_load import run_level, run_once
from benchmarks.mixed_plan import LEVELS, OBJECTIVES, Plan
from benchmarks.mixed_requests import (
    BATCH_STREAMS,
    LONGEST,
    SHORTEST,
    Known,
    measuring,
    some_of_each,
    stepping,
    talking,
    wanted,
)

CLASS_STREAMS: Final = 8
EXPECTED_ANSWER_S: Final = 1.2  # per sample of the pass over all classes, for the time shown

Say = Callable[[str, float], None]


@dataclass(frozen=True, slots=True)
class Calibration:
    """What was measured before the first condition."""

    points: Mapping[Role, Sequence[Point]]
    costs: Mapping[Role, StepCost]
    drafting: Drafting
    request: Cost  # of the standard tier, at the plain pool
    context_tokens: float
    rate_per_s: float  # of the standard tier
    refused: tuple[str, ...] = ()  # samples that this engine does not take


def calibrate(url: str, known: Sequence[Known], plan: Plan, say: Say) -> Calibration:
    """Measure; both pools at once, as they will be loaded.  Raises BenchError."""
    prompts = {one.sample.id: one.prompt_tokens for one in known}
    points: dict[Role, list[Point]] = {role: [] for role in Role}
    steps = stepping(known)
    for streams in LEVELS:
        say(f"calibration: {streams} streams at each pool", plan.level_s)
        found = run_level(url, f"steps-{streams}", partial(_source, steps, streams), streams, plan.level_s)
        for role in Role:
            points[role].append(point(streams, found[role], prompts))
    deck = some_of_each(known, plan.answers_per_class)
    say(f"calibration: {len(deck)} samples of every kind at each pool", EXPECTED_ANSWER_S * len(deck))
    requests = [wanted(Tier.INTERACTIVE, one, SHORTEST, f"classes-{one.sample.id}") for one in deck]
    answers, full_until = run_once(url, "classes", requests, CLASS_STREAMS)
    refused = _refused(answers, len(deck))
    costs = {role: fit(points[role]) for role in Role}
    request = request_cost(answers[Role.PLAIN], CLASS_STREAMS, full_until[Role.PLAIN], costs[Role.PLAIN])
    return Calibration(
        points=points,
        costs=costs,
        drafting=drafting(
            answers[Role.SPECULATIVE], {one.sample.id: one.workload.kind.value for one in known}
        ),
        request=request,
        context_tokens=_context(answers[Role.PLAIN], prompts),
        rate_per_s=rate(costs[Role.PLAIN], request, known),
        refused=refused,
    )


def _source(deck: Sequence[Known], streams: int, role: Role, stream: int) -> Iterator[Wanted]:
    return measuring(deck, f"steps-{streams}-{role}-{stream}")


def rate(plain: StepCost, request: Cost, known: Sequence[Known]) -> float:
    """The standard tier's requests per second."""
    batch = talking(known)
    prompt = sum(one.prompt_tokens for one in batch) / len(batch)
    promised = OBJECTIVES[Tier.STANDARD].tpot_s
    assert promised is not None
    return standard_rate(plain, request, BATCH_STREAMS, prompt / LONGEST, promised)


def _refused(answers: Mapping[Role, Sequence[Answer]], asked: int) -> tuple[str, ...]:
    """Samples that an engine refused with 400, such as a grammar that it cannot follow."""
    found = {one.sample for some in answers.values() for one in some if one.status == 400}
    if 2 * len(found) > asked:
        raise BenchError(f"the engines refuse {len(found)} of {asked} samples: {', '.join(sorted(found))}")
    failed = [one for some in answers.values() for one in some if not one.answered and one.status != 400]
    if failed:
        raise BenchError(f"{len(failed)} answers failed at calibration, the first with {failed[0].code}")
    return tuple(sorted(found))


def _context(answers: Sequence[Answer], prompts: Mapping[str, int]) -> float:
    """Prompt and half of the answer, on average."""
    found = [prompts[one.sample] + (one.tokens or 0) / 2 for one in answers if one.answered]
    return sum(found) / len(found)
