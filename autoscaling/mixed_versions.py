"""Messages of another version: what can be understood of a snapshot or a load, and what was left out; pure.

A rolling update mixes versions.  Unknown fields are ignored; a word, number or part that cannot be read
costs itself and nothing beside it.  `problems` are words for a log, the same for the same cause.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import msgspec

from autoscaling.left_out import Notes, by_field, count
from autoscaling.request_line import RequestLine
from autoscaling.routing_rules import PoolSpeed, RoutingRules, StepCost
from autoscaling.types import SCHEMA, IngressLoad, ReplicaView, Role, Snapshot, Tier

_K = TypeVar("_K", Role, Tier)


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


def read_snapshot(found: Mapping[str, Any]) -> ReadSnapshot:
    """What an ingress can use of a snapshot.

    Raises UnreadableError for another major version, without its age, and when there are replicas and none
    of them can be read: to forget all would be worse than to keep the last ones.
    """
    if found.get("schema", SCHEMA) != SCHEMA:
        raise UnreadableError(f"a snapshot of schema {found['schema']!r}, known here is {SCHEMA}")
    notes = Notes()
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
    notes = Notes()
    lines: list[RequestLine] = []
    unread: list[int | None] = []
    given = found.get("lines")
    for one in given if isinstance(given, list | tuple) else ():
        try:
            line = msgspec.convert(one, RequestLine)
            if count(line.seq) != line.seq:
                raise ValueError("no line has this number")
            lines.append(line)
        except (ValueError, OverflowError) as error:  # msgspec's are ValueErrors
            notes.add("lines[]", error)
            seq = one.get("seq") if isinstance(one, Mapping) else None
            unread.append(seq if type(seq) is int and count(seq) == seq else None)
    load = IngressLoad(
        wanted=_counts(found, "wanted", Role, notes),
        refused=_counts(found, "refused", Role, notes),
        epoch=notes.read("epoch", found.get("epoch"), int | None, None),
        waiting=_counts(found, "waiting", Tier, notes),
        lines=tuple(lines),
        lines_dropped=notes.read("lines_dropped", found.get("lines_dropped", 0), count, 0),
    )
    return ReadLoad(load, tuple(unread), notes.problems)


def _replicas(found: Any, notes: Notes) -> tuple[ReplicaView, ...]:
    if not isinstance(found, list | tuple):
        raise UnreadableError(f"a snapshot whose replicas are {type(found).__name__}, no list")
    views = tuple(
        view for one in found if (view := notes.read("replicas[]", one, ReplicaView, None)) is not None
    )
    if found and not views:
        raise UnreadableError(f"a snapshot of which no replica can be read: {'; '.join(notes.problems)}")
    return views


def _routing(found: Any, notes: Notes) -> RoutingRules | None:
    if found is None:
        return None
    if not isinstance(found, Mapping):
        notes.add("routing", f"expected an object, got {type(found).__name__}")
        return None
    usual = RoutingRules()
    rules = by_field(usual, found, "routing", notes, but=("tiers", "costs", "tokens_per_step", "speeds"))
    return replace(
        rules,
        tiers={
            **usual.tiers,
            **notes.entries(
                found, "tiers", Tier, lambda tier, it, place: by_field(usual.tiers[tier], it, place, notes)
            ),
        },
        # A cost whole or not at all: a formula without one of its terms is wrong.
        costs=notes.entries(found, "costs", Role, lambda _, it, place: notes.read(place, it, StepCost, None)),
        tokens_per_step=notes.entries(
            found, "tokens_per_step", str, lambda _, it, place: notes.read(place, it, float, None)
        ),
        speeds=notes.entries(
            found, "speeds", Role, lambda _, it, place: by_field(PoolSpeed(), it, place, notes)
        ),
    )


def _counts(found: Mapping[str, Any], name: str, key: type[_K], notes: Notes) -> dict[_K, int]:
    given = found.get(name, {})
    return notes.mapping(name, given, key, lambda _, it, place: notes.read(place, it, count, None))
