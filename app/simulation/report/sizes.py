"""Several sizes of one policy on one trace: the fewest replicas that keep every objective, in words."""

from __future__ import annotations

from app.report.words import joined, percent
from app.simulation.report.judged import Miss, misses, promised
from app.simulation.report.subject import Subject


def smallest(subject: Subject) -> str | None:
    """The name of the smallest size that keeps every objective; None where none does, or none is promised."""
    if not any(promised(subject, name) for name in subject.scores):
        return None
    keeping = [name for name in subject.scores if not misses(subject, name)]
    return min(keeping, key=lambda name: subject.sizes[name], default=None)


def largest(subject: Subject) -> str:
    """The name of the largest size."""
    return max(subject.sizes, key=lambda name: subject.sizes[name])


def sizes_words(subject: Subject) -> tuple[str, ...]:
    """Which size is enough, and what the next smaller one misses."""
    top = smallest(subject)
    every = joined([f"{size:,}" for size in sorted(subject.sizes.values())])
    if top is None:
        most = largest(subject)
        late = _late(misses(subject, most))
        if not late:
            return ("The policy promises the tiers of this trace nothing, so no size can be called enough.",)
        return (f"None of {every} replicas keeps every objective of this trace: with {most}, {late}.",)
    scores = subject.scores[top].tiers
    shares = joined([f"{percent(scores[tier].attainment)} of {tier}" for tier in promised(subject, top)])
    found = [
        f"{top[0].upper()}{top[1:]} are the fewest of {every} that keep every objective of this trace: "
        f"{shares} "
        "requests are in time."
    ]
    if smaller := [name for name in subject.sizes if subject.sizes[name] < subject.sizes[top]]:
        next_one = max(smaller, key=lambda name: subject.sizes[name])
        found.append(f"With {next_one}, {_late(misses(subject, next_one))}.")
    odd = [
        name for name in subject.sizes if subject.sizes[name] > subject.sizes[top] and misses(subject, name)
    ]
    if odd:
        found.append(f"{joined(odd).capitalize()} miss some all the same: look at what they move, and when.")
    return tuple(found)


def _late(missed: tuple[Miss, ...]) -> str:
    if not missed:
        return ""
    return f"{joined([f'{percent(one.attainment)} of {one.tier}' for one in missed])} requests are in time"
