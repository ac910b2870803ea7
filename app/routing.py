"""Which replica serves a request, and why; pure and total.

Interactive work prefers the speculative pool, all other work the plain one.  The other pool helps when
the preferred one has no replica, no room, or refuses a parameter of the request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from app.membership import Candidate
from autoscaling.types import ReplicaView, Role, Tier

Choose = Callable[[int], int]  # choose(n) is a random index in 0..n-1


class RouteReason(StrEnum):
    """Why the pool was taken; a retry is routed, and named, like a first attempt."""

    TIER_INTERACTIVE = "tier_interactive"
    TIER_STANDARD = "tier_standard"
    TIER_BATCH = "tier_batch"
    SPILL = "spill"  # the preferred pool had no room, or had been tried
    POOL_UNAVAILABLE = "pool_unavailable"  # no replica of the preferred pool takes work
    CAPABILITY = "capability"  # the preferred pool refuses a parameter of the request
    PINNED_BY_CALLER = "pinned_by_caller"


class Refusal(StrEnum):
    """Why there is no route."""

    NO_REPLICA = "no_replica"
    FULL = "full"
    CAPABILITY = "capability"
    POOL_PINNED_FULL = "pool_pinned_full"


@dataclass(frozen=True, slots=True)
class Route:
    """The decision about one attempt; made once, passed on, never revised."""

    replica: ReplicaView
    pool: str
    reason: RouteReason


_TIER_REASONS: Final[Mapping[Tier, RouteReason]] = MappingProxyType(
    {
        Tier.INTERACTIVE: RouteReason.TIER_INTERACTIVE,
        Tier.STANDARD: RouteReason.TIER_STANDARD,
        Tier.BATCH: RouteReason.TIER_BATCH,
    }
)


def preferred_role(tier: Tier, pin: Role | None) -> Role:
    """Tell which pool a request is for when both have room."""
    return pin or (Role.SPECULATIVE if tier is Tier.INTERACTIVE else Role.PLAIN)


def route(
    tier: Tier,
    pin: Role | None,
    parameters: frozenset[str],
    candidates: Sequence[Candidate],
    *,
    tried: frozenset[str],
    choose: Choose,
) -> Route | None:
    """Pick a replica that has not been tried; None when `why_none` has to say why.

    Soft room anywhere comes before hard room in the preferred pool.  A pin is never left.
    """
    preferred = preferred_role(tier, pin)
    roles = (preferred,) if pin else (preferred, preferred.other)
    accepting = _accepting(candidates)
    able = _able(accepting, parameters)
    left = [c for c in able if c.replica.replica_id not in tried and c.hard_room]
    for pool in ([c for c in left if c.soft_room], left):
        for role in roles:
            members = [c for c in pool if c.replica.role is role]
            if members:
                replica = _least_loaded_of_two(members, choose).replica
                if role is preferred:
                    reason = RouteReason.PINNED_BY_CALLER if pin else _TIER_REASONS[tier]
                else:
                    there = [c for c in accepting if c.replica.role is preferred]
                    reason = _detour(there, parameters)
                return Route(replica, replica.pool, reason)
    return None


def why_none(pin: Role | None, parameters: frozenset[str], candidates: Sequence[Candidate]) -> Refusal:
    """Tell why `route` found nothing among these candidates."""
    there = [c for c in _accepting(candidates) if pin is None or c.replica.role is pin]
    if not there:
        return Refusal.NO_REPLICA
    if not _able(there, parameters):
        # A plain replica refuses nothing: without a pin one that is back can serve this.
        return Refusal.NO_REPLICA if pin is None else Refusal.CAPABILITY
    return Refusal.FULL if pin is None else Refusal.POOL_PINNED_FULL


def _detour(there: Sequence[Candidate], parameters: frozenset[str]) -> RouteReason:
    """Name why the preferred pool was left; `there` are its replicas that take work, tried or not."""
    if not there:
        return RouteReason.POOL_UNAVAILABLE
    return RouteReason.SPILL if _able(there, parameters) else RouteReason.CAPABILITY


def _accepting(candidates: Iterable[Candidate]) -> list[Candidate]:
    return [c for c in candidates if c.replica.accepting]


def _able(candidates: Iterable[Candidate], parameters: frozenset[str]) -> list[Candidate]:
    return [c for c in candidates if parameters.isdisjoint(c.replica.capabilities.refuses)]


def _least_loaded_of_two(members: Sequence[Candidate], choose: Choose) -> Candidate:
    """Two at random, the emptier one: a burst on one snapshot does not land on one replica."""
    count = len(members)
    if count == 1:
        return members[0]
    first = choose(count) % count
    second = choose(count - 1) % (count - 1)
    if second >= first:
        second += 1
    one, other = members[first], members[second]
    return other if other.load < one.load else one
