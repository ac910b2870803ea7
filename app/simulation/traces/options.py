"""Reads the keys and values behind the source of a trace's name; pure."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any, Final, TypeVar

from app.simulation.traces.errors import TraceError
from autoscaling.types import Tier

_Word = TypeVar("_Word", bound=StrEnum)
MOST: Final = 10_000  # hours, or times as many: more is a slip of the pen that would be simulated for days
HOURS: Final = "a number of hours"
TIMES: Final = "how many times the requests, as a number"
FACTOR: Final = "the factor of all times, as a number"
SHARE: Final = "a share, as a number"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,31}")


@dataclass(frozen=True, slots=True)
class Options:
    """How a trace is changed; `None` leaves it as it is."""

    tier: Tier | None = None
    workload: str | None = None
    begin: float | None = None  # hours
    hours: float | None = None
    stretch: float | None = None
    rate: float | None = None
    tiers: Mapping[Tier, float] | None = None


def one_of(words: type[_Word], text: str, what: str) -> _Word:
    """The word of a list.  Raises TraceError, which names the list."""
    try:
        return words(text)
    except ValueError:
        raise TraceError(f"{what} is {text!r}: write one of {', '.join(words)}") from None


def _number(key: str, text: str, what: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise TraceError(f"{key} is {text!r}: write {what} above 0")
    if value > MOST:
        raise TraceError(f"{key} is {text!r}: write {what} up to {MOST:,}")
    return value


def _begin(key: str, text: str) -> float:
    return 0.0 if text == "0" else _number(key, text, HOURS)


def _name(key: str, text: str) -> str:
    if not _NAME.fullmatch(text):
        raise TraceError(f"{key} is {text!r}: write a name of letters, digits and -_. such as chat")
    return text


def _shares(key: str, text: str) -> Mapping[Tier, float]:
    shares: dict[Tier, float] = {}
    for part in text.split("/"):
        word, _, share = part.partition(":")
        tier = one_of(Tier, word, f"a tier of {key}={text}")
        if tier in shares:
            raise TraceError(f"{key}={text} has {tier} twice: give each tier one share")
        shares[tier] = _number(f"the share of {tier} in {key}", share, SHARE)
    if not math.isclose(1, sum(shares.values())):
        raise TraceError(f"the shares of {key}={text} add up to {sum(shares.values()):g}: make it 1")
    return shares


# The key as it is written: the field of Options, and what reads its value.
COMMON: Final[dict[str, tuple[str, Callable[[str, str], Any]]]] = {
    "from": ("begin", _begin),
    "hours": ("hours", partial(_number, what=HOURS)),
    "stretch": ("stretch", partial(_number, what=FACTOR)),
    "rate": ("rate", partial(_number, what=TIMES)),
    "tiers": ("tiers", _shares),
}
OF_FILES: Final[dict[str, tuple[str, Callable[[str, str], Any]]]] = {
    "tier": ("tier", lambda key, text: one_of(Tier, text, key)),
    "workload": ("workload", _name),
}


def options_of(
    parts: Sequence[str], known: Mapping[str, tuple[str, Callable[[str, str], Any]]], source: str
) -> Options:
    """What `KEY=VALUE` texts ask for.  Raises TraceError for an unknown key, a bad value, or one twice."""
    found: dict[str, Any] = {}
    for part in parts:
        key, equals, text = part.partition("=")
        if not equals or key not in known:
            raise TraceError(
                f"{part!r} is no option of {source} traces: write KEY=VALUE with one of "
                f"{', '.join(known)}; a path cannot have a comma"
            )
        field, read = known[key]
        if field in found:
            raise TraceError(f"{key} is given twice: give it once")
        found[field] = read(key, text)
    if "tier" in found and "tiers" in found:
        raise TraceError("tier and tiers are given: give the one that should hold")
    return Options(**found)
