"""Recorded routes made again under two policies, from nothing but their records; what comes out otherwise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from app.routing.replay import Record, Replayed, recorded, replay
from app.simulation.log.under import measured_limits, under
from app.simulation.traces.errors import TraceError
from app.simulation.traces.records import REQUESTS
from autoscaling.policy import CapacityPolicy
from autoscaling.profile import Profile
from autoscaling.types import Tier
from deployments.kept_files import StoreError, UnknownSchemaError
from deployments.record_reader import last, read

MOST_KEPT = 1000  # changes with all that is known of them; the others are counted


@dataclass(frozen=True, slots=True)
class RouteChange:
    """One request that would have gone elsewhere, or for another reason."""

    wall: float  # arrival, Unix seconds
    request: str
    tier: Tier
    old: Replayed
    new: Replayed


@dataclass(frozen=True, slots=True)
class RouteKind:
    """Requests of one tier that went one way under the old policy and go another one under the new."""

    first: RouteChange
    requests: int


@dataclass(frozen=True, slots=True)
class RoutesAgain:
    """All routes of a log, made again."""

    remade: int
    as_recorded: int  # of these, the old policy decides as the service did
    unknown: Mapping[str, int]  # why they cannot be made again: how many
    elsewhere: int  # the pool differs, or whether there is one
    otherwise: int  # the pool is the same, the reason is not
    kinds: tuple[RouteKind, ...]  # of all that differ, the most frequent first
    changes: tuple[RouteChange, ...]  # the first of both, by the order of the records


def records_of(folder: Path) -> Iterator[Record]:
    """Every request's record; raises TraceError."""
    try:
        for line in read(folder, REQUESTS):
            found = line.get("request")
            if isinstance(found, dict):
                yield found
    except (StoreError, UnknownSchemaError) as error:
        raise TraceError(str(error)) from error


def how_many(folder: Path) -> int:
    """About as many records as `records_of` gives, without reading them all; raises TraceError."""
    try:
        newest = last(folder, REQUESTS, None, 1)
        first = next(iter(read(folder, REQUESTS)), None)
    except (StoreError, UnknownSchemaError) as error:
        raise TraceError(str(error)) from error
    return int(newest[-1]["seq"] - first["seq"] + 1) if newest and first else 0


def routes_again(
    records: Iterable[Record],
    old: CapacityPolicy,
    new: CapacityPolicy,
    profile: Profile | None = None,
    say: Callable[[int], None] | None = None,
) -> RoutesAgain:
    """Make every recorded route again under both policies.

    Costs, speeds and predicted gains are as they were recorded, and so are the limits of replicas: a policy's
    softInflight lowers them, and with a `profile` of what was served its objectives move them where the
    service had one.  The old policy is taken for the one that acted.  `say` is told how many are done.
    """
    remade = as_recorded = elsewhere = otherwise = 0
    unknown: Counter[str] = Counter()
    changes: list[RouteChange] = []
    kinds: dict[Hashable, RouteKind] = {}
    acting, other = measured_limits(old, profile), measured_limits(new, profile)
    for number, request in enumerate(records, 1):
        if say is not None:
            say(number)
        decision = request.get("decision")
        if not decision:
            continue  # it was refused before anybody was asked
        try:
            before = replay(under(decision, old, acting, acting))
            after = replay(under(decision, new, other, acting))
            was = recorded(decision)
            change = RouteChange(
                request["wall"], str(request["id"]), Tier(decision["ask"]["tier"]), before, after
            )
        except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            unknown[_why(error)] += 1
            continue
        remade += 1
        as_recorded += (before.pool, before.reason) == (was.pool, was.reason)
        elsewhere += before.pool is not after.pool
        otherwise += before.pool is after.pool and before.reason is not after.reason
        if (before.pool, before.reason) == (after.pool, after.reason):
            continue
        key = (change.tier, _way(before), _way(after))
        known = kinds.get(key, RouteKind(change, 0))
        kinds[key] = replace(known, requests=known.requests + 1)
        if len(changes) < MOST_KEPT:
            changes.append(change)
    return RoutesAgain(
        remade,
        as_recorded,
        dict(unknown),
        elsewhere,
        otherwise,
        tuple(sorted(kinds.values(), key=lambda one: -one.requests)),
        tuple(changes),
    )


def _way(one: Replayed) -> Hashable:
    """What requests have in common that go the same way; where there is none, what stands against it."""
    return (one.pool, one.reason, None if one.pool else tuple(sorted(one.verdicts.items())))


def _why(error: Exception) -> str:
    """Without what differs from record to record, so that like ones are counted together."""
    if isinstance(error, KeyError):
        return f"the record has no {error}"
    return str(error).removeprefix("the record of this decision cannot be replayed: ")
