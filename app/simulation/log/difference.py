"""What would have differed between two policies on a log, made ready to be shown: most important first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from app.routing.replay import Replayed
from app.simulation.log.capacity import CapacityAgain, CapacityChange, Outcome, capacity_again
from app.simulation.log.read import Log
from app.simulation.log.routes import RouteChange, RouteKind, RoutesAgain, records_of, routes_again
from autoscaling.decisions import Sizes
from autoscaling.instants import rfc3339
from autoscaling.policy import CapacityPolicy
from autoscaling.profile import Profile
from autoscaling.types import Role

NOWHERE = "no pool yet"


@dataclass(frozen=True, slots=True)
class LogDifference:
    """Every decision of a log made again under an old and a new policy."""

    capacity: CapacityAgain
    routes: RoutesAgain

    @property
    def is_any(self) -> bool:
        """Whether any decision comes out otherwise."""
        changes = (self.capacity, self.routes)
        return any(one.elsewhere or one.otherwise for one in changes)


def difference(
    log: Log,
    old: CapacityPolicy,
    new: CapacityPolicy,
    profile: Profile | None = None,
    say: Callable[[int], None] | None = None,
) -> LogDifference:
    """Make everything again; `say` is told how many requests are done.  Raises TraceError."""
    return LogDifference(
        capacity_again(log.seen, old, new, profile),
        routes_again(records_of(log.folder), old, new, profile, say),
    )


def capacity_row(change: CapacityChange) -> tuple[str, str, str, str]:
    """When, how long, and what both decide, in words."""
    lasts = f"{change.until - change.wall:.0f} s" if change.until > change.wall else "once"
    return rfc3339(change.wall), lasts, _decided(change.old, change), _decided(change.new, change)


def route_row(change: RouteChange) -> tuple[str, str, str, str, str]:
    """When, which request of which tier, and where it goes under both, in words."""
    return rfc3339(change.wall), change.request, change.tier.value, routed(change.old), routed(change.new)


def kind_row(kind: RouteKind) -> tuple[str, str, str, str]:
    """How many requests of which tier, and where they go under both, in words."""
    one = kind.first
    return f"{kind.requests:,}", one.tier.value, routed(one.old), routed(one.new)


def routed(one: Replayed) -> str:
    """Where a request goes and why: `plain (spill)`, or what stands against each pool."""
    if one.pool is None or one.reason is None:
        against = ", ".join(f"{role}: {one.verdicts[role].value}" for role in Role if role in one.verdicts)
        return f"{NOWHERE} ({against})"
    return f"{one.pool.value} ({one.reason.value})"


def as_json(found: LogDifference) -> dict[str, Any]:
    """For programs; times are RFC 3339, targets replicas per pool."""
    return {
        "capacity": {
            "remade": found.capacity.remade,
            "asRecorded": found.capacity.as_recorded,
            "otherTargets": found.capacity.elsewhere,
            "otherReasonOnly": found.capacity.otherwise,
            "changes": [_capacity_json(one) for one in found.capacity.changes],
        },
        "routes": {
            "remade": found.routes.remade,
            "asRecorded": found.routes.as_recorded,
            "otherPool": found.routes.elsewhere,
            "otherReasonOnly": found.routes.otherwise,
            "notRemade": dict(found.routes.unknown),
            "kinds": [_kind_json(one) for one in found.routes.kinds],
            "changes": [_route_json(one) for one in found.routes.changes],
        },
    }


def _decided(one: Outcome, change: CapacityChange) -> str:
    sizes = "unknown" if one.targets is None else _sizes(one.targets)
    moved = "" if one.targets == change.before or change.before is None else "moves to "
    return f"{moved}{sizes} ({one.reason.value}: {one.summary})"


def _sizes(sizes: Sizes) -> str:
    return ", ".join(f"{role} {sizes[role]}" for role in Role)


def _capacity_json(one: CapacityChange) -> dict[str, Any]:
    return {
        "at": rfc3339(one.wall),
        "until": rfc3339(one.until),
        "targetsBefore": _plain(one.before),
        "old": _outcome_json(one.old),
        "new": _outcome_json(one.new),
    }


def _outcome_json(one: Outcome) -> dict[str, Any]:
    return {"targets": _plain(one.targets), "reason": one.reason.value, "summary": one.summary}


def _kind_json(kind: RouteKind) -> dict[str, Any]:
    one = kind.first
    return {
        "requests": kind.requests,
        "tier": one.tier.value,
        "old": _replayed_json(one.old),
        "new": _replayed_json(one.new),
    }


def _route_json(one: RouteChange) -> dict[str, Any]:
    return {
        "at": rfc3339(one.wall),
        "request": one.request,
        "tier": one.tier.value,
        "old": _replayed_json(one.old),
        "new": _replayed_json(one.new),
    }


def _replayed_json(one: Replayed) -> dict[str, Any]:
    return {
        "pool": None if one.pool is None else one.pool.value,
        "reason": None if one.reason is None else one.reason.value,
        "verdicts": {role.value: verdict.value for role, verdict in one.verdicts.items()},
    }


def _plain(sizes: Sizes | None) -> dict[str, int] | None:
    return None if sizes is None else {role.value: sizes[role] for role in Role}
