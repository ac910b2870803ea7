"""What a waiting request demands of a replica, so that equal ones are judged once; pure."""

from __future__ import annotations

from collections.abc import Hashable
from math import log2
from typing import Final, NamedTuple

from app.routing.ask import Ask

LOOKAHEAD: Final = 32  # different demands of a lane that are judged in one look
LOOKAHEAD_IN_ALL: Final = 128  # of all lanes together, beside the first of each
STEPS: Final = 4  # lengths within a quarter of a doubling count as equal


class Demand(NamedTuple):
    """What the verdict on a request depends on beside its lane; lengths in quarters of a doubling."""

    like: tuple[bool, bool, float | None, int]  # drafts pay, wider, tokens per step, prompt
    sequences: int
    longest: int | None  # the caller's limit of the answer; None without one


def demand_of(ask: Ask) -> Demand:
    """The demand of a request."""
    like = (ask.draftable, ask.wider, ask.tokens_per_step, _size(ask.prompt_tokens))
    return Demand(like, ask.sequences, None if ask.max_tokens is None else _size(ask.max_tokens))


class Refused:
    """The demands for which no room was found in one look, by lane."""

    def __init__(self) -> None:
        self._found: dict[Hashable, list[Demand]] = {}
        self._judged = 0

    def note(self, lane: Hashable, demand: Demand) -> None:
        """Note one that found no room."""
        self._found.setdefault(lane, []).append(demand)
        self._judged += 1

    def covers(self, lane: Hashable, demand: Demand) -> bool:
        """Whether one of the lane that demands no more has found no room."""
        return any(_at_most(one, demand) for one in self._found.get(lane, ()))

    def enough(self, lane: Hashable) -> bool:
        """Whether no more of a lane are judged in this look; the first of every lane is."""
        judged = len(self._found.get(lane, ()))
        return judged >= LOOKAHEAD or (judged > 0 and self._judged >= LOOKAHEAD_IN_ALL)

    def forget(self) -> None:
        """Begin anew: room has come that was kept from some."""
        self._found.clear()


def _at_most(one: Demand, other: Demand) -> bool:
    if one.like != other.like or one.sequences > other.sequences:
        return False
    if one.longest is None or other.longest is None:
        return one.longest is other.longest
    return one.longest <= other.longest


def _size(tokens: int) -> int:
    return round(STEPS * log2(max(1, tokens)))
