"""Which policy kept what it promised, and which of several is the best."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from app.report.words import ms, number, percent
from app.simulation.report.subject import Promise, Subject
from app.simulation.scores import Scores, TierScore
from autoscaling.types import Tier

KEPT = 0.95  # objectives are 95th percentiles: so many requests have to be in time
TIE = 0.01  # closer than this two policies are as good as each other


@dataclass(frozen=True, slots=True)
class Miss:
    """A tier whose objective was missed, and by what, in words."""

    tier: Tier
    attainment: float
    because: tuple[str, ...]


def misses(subject: Subject, name: str) -> tuple[Miss, ...]:
    """The tiers of a policy that were promised something and did not get it; none without requests."""
    found = []
    for tier, score in subject.scores[name].tiers.items():
        promise, attainment = subject.promise(tier, name), score.attainment
        if promise.is_any and attainment is not None and attainment < KEPT:
            found.append(Miss(tier, attainment, tuple(_because(score, promise))))
    return tuple(sorted(found, key=lambda one: list(Tier).index(one.tier)))


def promised(subject: Subject, name: str) -> tuple[Tier, ...]:
    """The tiers of a policy that had requests and were promised something."""
    tiers = subject.scores[name].tiers
    return tuple(
        tier
        for tier in Tier
        if tier in tiers and tiers[tier].arrived > 0 and subject.promise(tier, name).is_any
    )


def best(subject: Subject) -> str | None:
    """The best name of several; None with fewer than two that can be had.

    Those that keep every objective come first, and of these the one with the most answer tokens per
    accelerator-hour.  Where none keeps them all, the one whose worst tier came closest.  What was asked about
    wins a tie.  Of several sizes it is the one that was asked about.
    """
    if subject.sizes:
        return subject.asked
    names = [name for name in subject.scores if name not in subject.foresight]
    if len(names) < 2:
        return None
    keeping = [name for name in names if not misses(subject, name)]
    value = {name: _value(subject, name, keeps=bool(keeping)) for name in keeping or names}
    top = max(value.values())
    near = [name for name, one in value.items() if one >= top * (1 - TIE)]
    return subject.asked if subject.asked in near else max(value, key=lambda name: value[name])


def tokens_per_hour(scores: Scores) -> float | None:
    """Answer tokens of one accelerator-hour; None when none was used."""
    if scores.accelerator_hours <= 0:
        return None
    return scores.tokens_per_s * scores.seconds / scores.accelerator_hours


def _value(subject: Subject, name: str, *, keeps: bool) -> float:
    if keeps:
        return tokens_per_hour(subject.scores[name]) or 0.0
    return min((one.attainment for one in misses(subject, name)), default=1.0)


def _because(score: TierScore, promise: Promise) -> Iterator[str]:
    for what, value, objective in (
        ("time per token", score.tpot_p95_s, promise.tpot_s),
        ("time to the first token", score.ttft_p95_s, promise.ttft_s),
    ):
        if value is not None and objective is not None and value > objective:
            yield f"the 95th percentile of the {what} is {span(value)}, promised are {span(objective)}"
    if score.refused > 0:
        yield f"{percent(score.refused / score.arrived)} were refused"
    if score.failed > 0:
        yield f"{percent(score.failed / score.arrived)} broke off"


def span(seconds: float) -> str:
    """Seconds as a reader says them: `45 ms`, `1.20 s`."""
    return f"{ms(seconds)} ms" if seconds < 1 else f"{number(seconds)} s"
