"""Messages of another version: what can be understood of a snapshot or a load, and what was left out; pure.

A rolling update mixes versions.  Unknown fields are ignored; a word, number or part that cannot be read
costs itself and nothing beside it.  `problems` are words for a log, the same for the same cause.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields
from enum import StrEnum
from functools import cache
from typing import Any, TypeVar, get_type_hints

import msgspec

from autoscaling.request_line import RequestLine
from autoscaling.routing_rules import PoolSpeed, RoutingRules, StepCost, TierRules
from autoscaling.types import SCHEMA, IngressLoad, ReplicaView, Role, Snapshot, Tier

LARGEST = 2**53  # whole numbers up to here are exact in the floats that metrics are written with
MOST_TOLD = 100  # different words; more are not read by anybody

_T = TypeVar("_T")
_K = TypeVar("_K", bound=StrEnum)


class UnreadableError(ValueError):
    """A message of which nothing can be used: the former one stays in force."""


@dataclass(frozen=True, slots=True)
class ReadSnapshot:
    """A snapshot, as far as it is understood."""

    snapshot: Snapshot
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReadLoad:
    """A load, as far as it is understood; what cannot be read of it is not in it."""

    load: IngressLoad
    unread: tuple[int | None, ...]  # numbers of the lines that were left out; None for one without
    problems: tuple[str, ...]


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


def read_snapshot(found: Mapping[str, Any]) -> ReadSnapshot:
    """What an ingress can use of a snapshot.

    Raises UnreadableError for another major version, without its age, and when there are replicas and none
    of them can be read: to forget all would be worse than to keep the last ones.
    """
    if found.get("schema", SCHEMA) != SCHEMA:
        raise UnreadableError(f"a snapshot of schema {found['schema']!r}, known here is {SCHEMA}")
    notes = _Notes()
    replicas = _replicas(found.get("replicas"), notes)
    try:
        epoch, seq = (msgspec.convert(found.get(name), int) for name in ("epoch", "seq"))
    except msgspec.ValidationError as error:
        raise UnreadableError(f"a snapshot whose epoch or seq cannot be read: {error}") from None
    snapshot = Snapshot(
        epoch=epoch,
        seq=seq,
        partial=notes.read("partial", found.get("partial"), bool, True),  # removes nobody
        ingresses=notes.read("ingresses", found.get("ingresses"), int, 1),
        replicas=replicas,
        stopping=notes.read("stopping", found.get("stopping", False), bool, False),
        retry_after_s=notes.read("retry_after_s", found.get("retry_after_s"), int | None, None),
        routing=_routing(found.get("routing"), notes),
    )
    return ReadSnapshot(snapshot, notes.problems)


def read_load(found: Mapping[str, Any]) -> ReadLoad:
    """What the controller can use of a load of the known schema; never raises."""
    notes = _Notes()
    lines: list[RequestLine] = []
    unread: list[int | None] = []
    given = found.get("lines")
    for one in given if isinstance(given, list | tuple) else ():
        try:
            line = msgspec.convert(one, RequestLine)
            _count(line.seq)
            lines.append(line)
        except (msgspec.ValidationError, ValueError) as error:
            notes.add("lines[]", error)
            seq = one.get("seq") if isinstance(one, Mapping) else None
            unread.append(notes.read("lines[].seq", seq, _count, None))
    load = IngressLoad(
        wanted=_counts(found, "wanted", Role, notes),
        refused=_counts(found, "refused", Role, notes),
        epoch=notes.read("epoch", found.get("epoch"), int | None, None),
        waiting=_counts(found, "waiting", Tier, notes),
        lines=tuple(lines),
        lines_dropped=notes.read("lines_dropped", found.get("lines_dropped", 0), _count, 0),
    )
    return ReadLoad(load, tuple(unread), notes.problems)


class _Notes:
    """What was left out of one message."""

    def __init__(self) -> None:
        self._problems: dict[str, None] = {}

    @property
    def problems(self) -> tuple[str, ...]:
        return tuple(self._problems)

    def add(self, place: str, reason: object) -> None:
        self._problems[f"{place} is left out: {reason}"] = None

    def read(self, place: str, value: Any, kind: Any, default: Any) -> Any:
        """`value` as `kind`, a type or a function that raises ValueError; else the default, and a note."""
        try:
            return kind(value) if kind is _count else _checked(msgspec.convert(value, kind))
        except ValueError as error:  # msgspec's are, too
            self.add(place, error)
            return default

    def mapping(
        self, place: str, value: Any, key: Callable[[str], _T], read: Callable[[_T, Any, str], Any]
    ) -> dict[_T, Any]:
        """The entries whose key is known and whose value `read` does not answer with None."""
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


def _replicas(found: Any, notes: _Notes) -> tuple[ReplicaView, ...]:
    if not isinstance(found, list | tuple):
        raise UnreadableError(f"a snapshot whose replicas are {type(found).__name__}, no list")
    views = tuple(
        view for one in found if (view := notes.read("replicas[]", one, ReplicaView, None)) is not None
    )
    if found and not views:
        raise UnreadableError(f"a snapshot of which no replica can be read: {'; '.join(notes.problems)}")
    return views


def _routing(found: Any, notes: _Notes) -> RoutingRules | None:
    if found is None:
        return None
    if not isinstance(found, Mapping):
        notes.add("routing", f"expected an object, got {type(found).__name__}")
        return None
    default = RoutingRules()

    def tier(name: Tier, entry: Any, place: str) -> TierRules:
        return _by_field(default.tiers[name], entry, place, notes)

    def cost(_: Role, entry: Any, place: str) -> Any:
        # Whole or not at all: a formula without one of its terms is wrong.
        return notes.read(place, entry, StepCost, None)

    def speed(_: Role, entry: Any, place: str) -> PoolSpeed:
        return _by_field(PoolSpeed(), entry, place, notes)

    def tokens(_: str, entry: Any, place: str) -> Any:
        return notes.read(place, entry, float, None)

    parts: dict[str, tuple[Callable[[str], Any], Callable[[Any, Any, str], Any]]] = {
        "tiers": (Tier, tier),
        "costs": (Role, cost),
        "tokens_per_step": (str, tokens),
        "speeds": (Role, speed),
    }
    read = {
        name: notes.mapping(f"routing.{name}", found[name], *how)
        for name, how in parts.items()
        if name in found
    }
    rest = {name: value for name, value in found.items() if name not in parts}
    rules = _by_field(default, rest, "routing", notes)
    read["tiers"] = {**default.tiers, **read.get("tiers", {})}
    return msgspec.structs.replace(rules, **read) if False else _with(rules, read)
