"""What was left out of a message of another version, part by part; pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any, TypeVar, get_type_hints

import msgspec

LARGEST = 2**53  # whole numbers up to here are exact in the floats that metrics are written with
MOST_TOLD = 100  # different words; more are not read by anybody

_T = TypeVar("_T")
_K = TypeVar("_K", bound=str)


class Told:
    """What has been logged, so that each cause is told once."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def fresh(self, problems: Iterable[str]) -> tuple[str, ...]:
        """Those that were not told yet; from now on they were."""
        found = []
        for problem in problems:
            if problem not in self._told and len(self._told) < MOST_TOLD:
                self._told.add(problem)
                found.append(problem)
        return tuple(found)


class Notes:
    """What was left out of one message."""

    def __init__(self) -> None:
        self._problems: dict[str, None] = {}

    @property
    def problems(self) -> tuple[str, ...]:
        """Words for a log, each once."""
        return tuple(self._problems)

    def add(self, place: str, reason: object) -> None:
        """Note that what is at this place is left out."""
        self._problems[f"{place} is left out: {reason}"] = None

    def read(self, place: str, value: Any, kind: Any, default: Any) -> Any:
        """`value` as `kind`, a type or a function that raises ValueError; else the default, and a note."""
        try:
            return kind(value) if kind is count else _checked(msgspec.convert(value, kind))
        except (ValueError, OverflowError) as error:  # msgspec's are ValueErrors
            self.add(place, error)
            return default

    def mapping(
        self, place: str, value: Any, key: Callable[[str], _K], read: Callable[[_K, Any, str], Any]
    ) -> dict[_K, Any]:
        """Entries whose key is known and whose value `read` (key, value, place) does not call None."""
        if not isinstance(value, Mapping):
            self.add(place, f"expected an object, got {type(value).__name__}")
            return {}
        found = {}
        for name, entry in value.items():
            try:
                known = key(name)
            except ValueError as error:
                self.add(place, error)
                continue
            if (taken := read(known, entry, f"{place}.{name}")) is not None:
                found[known] = taken
        return found

    def entries(
        self, routing: Mapping[str, Any], name: str, key: Callable[[str], _K], read: Callable[..., Any]
    ) -> dict[_K, Any]:
        """`mapping` of one part of the routing; empty when it is absent."""
        return self.mapping(f"routing.{name}", routing.get(name, {}), key, read)


def by_field(usual: _T, found: Any, place: str, notes: Notes, but: tuple[str, ...] = ()) -> _T:
    """`usual`, a dataclass, with each field of `found` that can be read; those of `but` are not looked at."""
    if not isinstance(found, Mapping):
        notes.add(place, f"expected an object, got {type(found).__name__}")
        return usual
    changes = {
        name: notes.read(f"{place}.{name}", found[name], kind, getattr(usual, name))
        for name, kind in _kinds(type(usual)).items()  # type: ignore[arg-type]  # a class can be hashed
        if name in found and name not in but
    }
    changed: _T = replace(usual, **changes)  # type: ignore[type-var]  # a dataclass, as said above
    return changed


@cache
def _kinds(model: type[Any]) -> Mapping[str, Any]:
    return get_type_hints(model)


def count(value: Any) -> int:
    """A whole number inside 0..`LARGEST`; ValueError for anything else."""
    if type(value) is not int:
        raise ValueError(f"expected a whole number, got {type(value).__name__}")
    return min(max(0, value), LARGEST)


def _checked(value: _T) -> _T:
    """`value`; ValueError for a number, or one in a dataclass, that is none."""
    inside = [getattr(value, one.name) for one in fields(value)] if is_dataclass(value) else [value]
    if any(isinstance(one, float) and not math.isfinite(one) for one in inside):
        raise ValueError("a number is not finite")
    return value
