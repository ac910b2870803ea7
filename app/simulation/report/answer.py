"""The first section of the report: what was found, in words, and what to do."""

from __future__ import annotations

from collections.abc import Iterator

from app.report.blocks import Block, Caution, Heading, Points, Section, Text
from app.report.words import joined, name, number, percent
from app.simulation.report.advice import advice
from app.simulation.report.judged import KEPT, Miss, best, misses, promised, tokens_per_hour
from app.simulation.report.sizes import sizes_words
from app.simulation.report.subject import Subject

TITLE = "What was found"


def answer(subject: Subject) -> Section:
    """Whether the policy that was asked about kept its promises, which one is best, and what to do."""
    blocks: list[Block] = [Text(lead(subject), lead=True)]
    if more := details(subject):
        blocks.append(Text(more))
    blocks += [
        Heading("What to do"),
        Points(tuple((sentence,) for sentence in advice(subject, subject.asked))),
    ]
    if subject.notes:
        blocks.append(Caution(subject.notes))
    return Section("answer", TITLE, blocks)


def lead(subject: Subject) -> tuple[str, ...]:
    """The answer in one or two sentences; of several sizes, which one is enough."""
    if subject.sizes:
        return sizes_words(subject)
    top, others = best(subject), len(subject.scores) - len(subject.foresight) - 1
    own = kept(subject, subject.asked)
    if top is None:
        return (own,)
    if top == subject.asked:
        return own, f"None of the {others} others is better." if others > 1 else "The other is not better."
    whose = "what was recorded" if top in subject.recorded else name(top)
    return own, f"{whose[0].upper()}{whose[1:]} is better: {_brings(subject, top)}."


def details(subject: Subject) -> tuple[str, ...]:
    """By what objectives were missed, and what the bounds say; may be empty."""
    return tuple(_details(subject))


def _details(subject: Subject) -> Iterator[str]:
    for miss in misses(subject, subject.asked):
        if miss.because:
            yield f"{miss.tier.capitalize()}: {joined(miss.because)}."
    for bound in subject.scores:
        if bound in subject.foresight:
            yield f"{name(bound)} knows the trace beforehand and is a bound: {_brings(subject, bound)}."


def kept(subject: Subject, one: str) -> str:
    """Whether one policy keeps its objectives, in a sentence."""
    tiers, missed = promised(subject, one), misses(subject, one)
    scores = subject.scores[one].tiers
    if not tiers:
        arrived = sum(score.arrived for score in scores.values())
        answered = sum(score.in_time + score.late for score in scores.values())
        share = percent(answered / arrived) if arrived else "none"
        return f"{name(one)} promises the tiers of this trace nothing; {share} of the requests are answered."
    if not missed:
        shares = joined([f"{percent(scores[tier].attainment)} of {tier}" for tier in tiers])
        return f"{name(one)} keeps every objective of this trace: {shares} requests are in time."
    return (
        f"{name(one)} misses {'an objective' if len(missed) == 1 else 'objectives'} on this trace: "
        f"{joined([_late(miss) for miss in missed])}, and {percent(KEPT)} are promised."
    )


def _late(miss: Miss) -> str:
    return f"{percent(miss.attainment)} of {miss.tier} requests are in time"


def _brings(subject: Subject, one: str) -> str:
    """What a policy brings, in half a sentence."""
    if missed := misses(subject, one):
        late = joined([_late(miss) for miss in missed])
        return late if one in subject.foresight else f"it misses less, {late}"
    keeps = "keeps every objective and " if promised(subject, one) else ""
    value = number(tokens_per_hour(subject.scores[one]))
    return f"it {keeps}brings {value} answer tokens per accelerator-hour"
