"""Odd values of a record in words: what is absent, or no value of its kind, is unknown; never an error."""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, TypeVar

from autoscaling.instants import rfc3339

Record = Mapping[str, Any]
UNKNOWN = "unknown"
LARGEST = 1e15  # a number above it is none that was measured or counted

_E = TypeVar("_E", bound=StrEnum)


def known(value: Any) -> str:
    """The value as it is; `unknown` for None."""
    return UNKNOWN if value is None else str(value)


def number(value: Any) -> float | None:
    """The value when it can be computed with; None for everything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if math.isfinite(value if abs(value) <= LARGEST else math.inf) else None


def figure(value: Any, form: str = ".4g") -> str:
    """A number in four digits, or as `form` says; a text as it is."""
    found = number(value)
    return (value if isinstance(value, str) else UNKNOWN) if found is None else f"{found:{form}}"


def seconds(value: Any) -> str:
    """A duration with its unit."""
    return figure(value) if number(value) is None else f"{figure(value)} s"


def moment(wall: Any) -> str:
    """Unix seconds as RFC 3339."""
    found = number(wall)
    return "an unknown time" if found is None else rfc3339(found)


def mapping(value: Any) -> Record:
    """The value when it is an object; an empty one for everything else."""
    return value if isinstance(value, Mapping) else {}


def objects(value: Any) -> list[Record]:
    """The objects of a list; what is no object is an empty one."""
    return [mapping(one) for one in value] if isinstance(value, list | tuple) else []


def one_of(word: Any, kind: type[_E]) -> _E | None:
    """The word of an enumeration; None for another version's and for what is no word."""
    try:
        return kind(word)
    except ValueError:
        return None
