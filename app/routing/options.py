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


@dataclass(frozen=True, slots=True)
class Option:
    """One way to serve a request."""

    role: Role
    reason: RouteReason
    reserved: bool = False  # must leave the interactive reserve
    in_time: bool = False  # must be predicted to meet the tier's objective
    guest: bool = False  # must leave the interactive objective, and go soon
    only: bool = False  # nothing else can serve the request
    yields: bool = False  # to the next way where that is predicted to be sooner

    @property
    def room_is_enough(self) -> bool:
        """Whether every replica with room will do."""
        return not (self.reserved or self.in_time or self.guest)


USUAL: Final[Mapping[Tier, tuple[Option, ...]]] = {
    Tier.INTERACTIVE: (
        Option(Role.SPECULATIVE, RouteReason.TIER_INTERACTIVE, in_time=True),
        Option(Role.PLAIN, RouteReason.SPILL, in_time=True),
    ),
    Tier.STANDARD: (
        Option(Role.PLAIN, RouteReason.TIER_STANDARD),
        Option(Role.SPECULATIVE, RouteReason.SPILL, reserved=True, in_time=True),
    ),
    Tier.BATCH: (
        Option(Role.PLAIN, RouteReason.TIER_BATCH, yields=True),
        Option(Role.SPECULATIVE, RouteReason.BACKFILL, reserved=True, guest=True),
    ),
}
DRAFTABLE: Final = (  # of the tier standard
    Option(Role.SPECULATIVE, RouteReason.DRAFTABLE, reserved=True, in_time=True),
    Option(Role.PLAIN, RouteReason.TIER_STANDARD),
)


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
    return DRAFTABLE if ask.tier is Tier.STANDARD and ask.draftable else USUAL[ask.tier]


def _only(ask: Ask, role: Role, reason: RouteReason) -> Option:
    reserved = role is Role.SPECULATIVE and ask.tier is not Tier.INTERACTIVE
    return Option(role, reason, reserved=reserved, only=True)
