"""What the demo reads of the service's own words: replicas, limits, objectives, moves; pure.

A part that is missing or of another shape is unknown; nothing here raises for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from app.demo.answers import Objective
from autoscaling.types import Role, Tier


@dataclass(frozen=True, slots=True)
class PoolSeen:
    """One pool's replicas; None is unknown."""

    name: str
    running: int | None
    target: int | None


@dataclass(frozen=True, slots=True)
class MoveSeen:
    """One move of the status; a source or receiver of None is the free budget."""

    id: str
    source: str | None
    receiver: str | None
    count: int | None
    reason: str
    state: str


def replicas(ready: Mapping[str, Any]) -> dict[Role, int]:
    """Replicas that take work, by `/ready`."""
    pools = _mapping(ready.get("pools"))
    return {role: found if isinstance(found := pools.get(role.value), int) else 0 for role in Role}


def soft_limits(status: Mapping[str, Any]) -> dict[Role, int | None]:
    """Requests in flight that one replica welcomes: what a pool can serve, by its targeted replicas."""
    found: dict[Role, int | None] = {}
    for role in Role:
        pool = _mapping(_mapping(status.get("pools")).get(role.value))
        capacity, target = pool.get("capacity"), pool.get("target")
        found[role] = round(capacity / target) or None if capacity and target else None
    return found


def pools(status: Mapping[str, Any]) -> tuple[PoolSeen, ...]:
    """The pools; none when nothing is known of them."""
    found = _mapping(status.get("pools"))
    each = ((name, _mapping(pool)) for name, pool in found.items())
    return tuple(PoolSeen(name, pool.get("running"), pool.get("target")) for name, pool in each)


def shares_cores(status: Mapping[str, Any]) -> bool:
    """Whether any replica shares its CPU cores with another, so that times mean little."""
    found = _mapping(status.get("pools")).values()
    return any(
        _mapping(replica).get("oversubscribed") is True
        for pool in found
        for replica in _mapping(pool).get("replicas") or ()
    )


def moves(status: Mapping[str, Any]) -> tuple[MoveSeen, ...]:
    """The moves that the status lists, newest first."""
    return tuple(
        MoveSeen(
            id=str(move.get("id")),
            source=move.get("from"),
            receiver=move.get("to"),
            count=move.get("count"),
            reason=str(move.get("reason")),
            state=str(move.get("state")),
        )
        for move in map(_mapping, status.get("moves") or ())
    )


def acting_revision(status: Mapping[str, Any]) -> int | None:
    """The revision whose objectives count; None when no policy is known."""
    policy = _mapping(status.get("policy"))
    active, shadow = policy.get("active_revision"), policy.get("shadow_revision")
    return active if isinstance(active, int) else shadow if isinstance(shadow, int) else None


def objectives(text: Any) -> dict[Tier, Objective | None]:
    """What each tier is promised by the text of a policy; None for a text that cannot be read."""
    try:
        document = yaml.safe_load(text) if isinstance(text, str) else None
    except yaml.YAMLError:
        document = None
    if not isinstance(document, Mapping):
        return dict.fromkeys(Tier)
    found = _mapping(_mapping(document.get("spec")).get("objectives"))
    each = {tier: _mapping(found.get(tier.value)) for tier in Tier}
    return {
        tier: Objective(_positive(one.get("ttftSeconds")), _positive(one.get("tpotSeconds")))
        for tier, one in each.items()
    }


def _positive(found: Any) -> float | None:
    usable = isinstance(found, int | float) and not isinstance(found, bool) and found > 0
    return float(found) if usable else None


def _mapping(found: Any) -> Mapping[str, Any]:
    return found if isinstance(found, Mapping) else {}
