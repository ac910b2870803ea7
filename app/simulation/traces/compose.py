"""Makes traces of traces: joined, cut, stretched, made denser or thinner, given other tiers; pure.

Every function takes sorted traces and gives a sorted one, with times rounded to microseconds.  What is
random comes from the generator that is passed in.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from numpy.random import Generator

from app.simulation.arrival import Arrival
from app.simulation.traces.errors import TraceError
from autoscaling.types import Tier

_T = TypeVar("_T")

LARGEST_SHIFT_S: Final = 3600.0  # of a copy: more would flatten the swing of a day


def superpose(traces: Sequence[Sequence[Arrival]]) -> tuple[Arrival, ...]:
    """All traces at once, each from its own beginning.

    Conversations of different traces stay apart: with more than one trace their ids begin with its number.
    """
    if len(traces) == 1:
        return tuple(traces[0])
    return _by_time(
        one if one.conversation is None else replace(one, conversation=f"{number}/{one.conversation}")
        for number, trace in enumerate(traces)
        for one in trace
    )


def cut(trace: Sequence[Arrival], from_s: float, until_s: float) -> tuple[Arrival, ...]:
    """The requests of a window, its end excluded; it begins at 0."""
    return tuple(
        replace(one, at_s=round(one.at_s - from_s, 6)) for one in trace if from_s <= one.at_s < until_s
    )


def stretch(trace: Sequence[Arrival], factor: float) -> tuple[Arrival, ...]:
    """Every time multiplied: 0.5 brings the same requests in half the time.  Raises TraceError."""
    if not 0 < factor < math.inf:
        raise TraceError(f"a trace cannot be stretched by {factor:g}: give a number above 0")
    return tuple(replace(one, at_s=round(one.at_s * factor, 6)) for one in trace)


def scale_rate(trace: Sequence[Arrival], factor: float, rng: Generator) -> tuple[Arrival, ...]:
    """So many times the requests, in the same time.

    Below 1 the trace is thinned: each request stays with that probability, those of one conversation
    together.  Above 1 copies are added, the last one thinned to the fraction.  A copy is shifted by a random
    time of up to an hour, and what leaves at the end comes in at the beginning, so peaks of the copies do
    not meet: the rate grows and bursts grow less, as with more clients of the same kind.  To keep bursts as
    they are relative to the mean, use `stretch`.  Raises TraceError.
    """
    if not 0 < factor < math.inf:
        raise TraceError(f"the rate cannot be multiplied by {factor:g}: give a number above 0")
    whole = int(factor)
    parts: list[Sequence[Arrival]] = [trace] if whole else []
    parts += [_shifted(trace, f"#{number}", rng) for number in range(1, whole)]
    if factor > whole:
        rest = _shifted(trace, f"#{whole}", rng) if whole else trace
        parts.append(_thinned(rest, factor - whole, rng))
    return _by_time(one for part in parts for one in part)


def set_tiers(trace: Sequence[Arrival], shares: Mapping[Tier, float], rng: Generator) -> tuple[Arrival, ...]:
    """Give every request a tier at random by these shares (0..1, together 1), whatever tier it had.

    Requests of one conversation get the same.  Raises TraceError.
    """
    if any(not 0 <= share <= 1 for share in shares.values()) or not math.isclose(1, sum(shares.values())):
        named = ", ".join(f"{tier} {share:g}" for tier, share in shares.items())
        raise TraceError(f"the tiers' shares are {named or 'none'}: give shares of 0 to 1 that add up to 1")
    tiers = [tier for tier in Tier if tier in shares]
    weights = [shares[tier] for tier in tiers]
    drawn = rng.choice(len(tiers), size=len(trace), p=[weight / sum(weights) for weight in weights])
    chosen = _per_conversation(trace, lambda number: tiers[drawn[number]])
    return tuple(replace(one, tier=tier) for one, tier in zip(trace, chosen, strict=True))


def _thinned(trace: Sequence[Arrival], share: float, rng: Generator) -> tuple[Arrival, ...]:
    drawn = rng.random(len(trace))
    kept = _per_conversation(trace, lambda number: bool(drawn[number] < share))
    return tuple(one for one, keep in zip(trace, kept, strict=True) if keep)


def _per_conversation(trace: Sequence[Arrival], draw: Callable[[int], _T]) -> list[_T]:
    """What is drawn for each request, by its number; a conversation gets what its first request got."""
    known: dict[str, _T] = {}
    return [
        draw(number) if one.conversation is None else known.setdefault(one.conversation, draw(number))
        for number, one in enumerate(trace)
    ]


def _shifted(trace: Sequence[Arrival], mark: str, rng: Generator) -> tuple[Arrival, ...]:
    """A copy, moved round in the trace's time; a conversation that is torn by it becomes two."""
    if len(trace) < 2 or trace[-1].at_s <= trace[0].at_s:
        raise TraceError(
            "a trace whose requests all come at one time cannot be copied: give a longer one, or a rate of 1"
        )
    period_s = trace[-1].at_s * len(trace) / (len(trace) - 1)  # one gap behind the last request
    shift_s = rng.uniform(0, min(period_s, LARGEST_SHIFT_S))
    moved = []
    for one in trace:
        at_s = one.at_s + shift_s
        torn = "<" if at_s >= period_s else ""
        name = None if one.conversation is None else f"{one.conversation}{mark}{torn}"
        moved.append(replace(one, at_s=round(at_s % period_s, 6), conversation=name))
    return _by_time(moved)


def _by_time(trace: Iterable[Arrival]) -> tuple[Arrival, ...]:
    return tuple(sorted(trace, key=lambda one: one.at_s))
