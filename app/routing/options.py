"""The ways to serve a request, best first, and what each has to satisfy; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from app.routing.ask import Ask
from app.routing.views import PoolView
from autoscaling.route_reasons import RouteReason
from autoscaling.types import Role, Tier

Views = Mapping[Role, PoolView]
OWN_POOL: Final = {Tier.INTERACTIVE: Role.SPECULATIVE, Tier.STANDARD: Role.PLAIN, Tier.BATCH: Role.PLAIN}
OWN_REASON: Final = {
    Tier.INTERACTIVE: RouteReason.TIER_INTERACTIVE,
    Tier.STANDARD: RouteReason.TIER_STANDARD,
    Tier.BATCH: RouteReason.TIER_BATCH,
}


@dataclass(frozen=True, slots=True)
class Option:
    """One way to serve a request."""

    role: Role
    reason: RouteReason
    reserved: bool = False  # must leave the interactive reserve
    in_time: bool = False  # must be predicted to meet the tier's objective
    guest: bool = False  # must leave the interactive objective, and go soon
    only: bool = False  # nothing else can serve the request


def options(ask: Ask, views: Views) -> tuple[Option, ...]:
    """The ways to serve this request, best first.

    Where nothing else can serve it no objective stands against it; of the reserve it takes what it needs
    only at a replica that is idle.
    """
    own = OWN_POOL[ask.tier]
    if ask.pin is not None:
        return (_only(ask, ask.pin, RouteReason.PINNED_BY_CALLER),)
    if not views[own].able:
        lost = RouteReason.CAPABILITY if views[own].accepting else RouteReason.POOL_UNAVAILABLE
        return (_only(ask, own.other, lost),)
    first = Option(own, OWN_REASON[ask.tier])
    if ask.tier is Tier.INTERACTIVE:
        return (
            Option(own, first.reason, in_time=True),
            Option(Role.PLAIN, RouteReason.SPILL, in_time=True),
        )
    if ask.tier is Tier.BATCH:
        return first, Option(Role.SPECULATIVE, RouteReason.BACKFILL, reserved=True, guest=True)
    if ask.draftable:
        return Option(Role.SPECULATIVE, RouteReason.DRAFTABLE, reserved=True, in_time=True), first
    return first, Option(Role.SPECULATIVE, RouteReason.SPILL, reserved=True, in_time=True)


def _only(ask: Ask, role: Role, reason: RouteReason) -> Option:
    reserved = role is Role.SPECULATIVE and ask.tier is not Tier.INTERACTIVE
    return Option(role, reason, reserved=reserved, only=True)
