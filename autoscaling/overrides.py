"""Overrides: forced sizes or bounds of one pool, always with an end, a reason and a name behind them.

An operator sets one while the service runs; the policy file may hold some too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isnan

from autoscaling.claims import Claim, most, resolve
from autoscaling.instants import rfc3339
from autoscaling.policy import CapacityPolicy
from autoscaling.types import Role

BY_POLICY = "policy"  # who stands behind an override of the file
LONGEST_S = 30 * 86_400.0  # what is meant for longer than a month belongs into the pools' bounds
LONGEST_REASON = 500  # characters


@dataclass(frozen=True, slots=True)
class Override:
    """A forced value; `replicas` excludes the bounds.  Times are Unix seconds."""

    id: str
    pool: Role
    replicas: int | None  # exactly so many
    minimum: int | None
    maximum: int | None
    since: float | None  # when it was set, for its place among others; None for one of the file
    until: float
    reason: str
    by: str  # the operator's name, or BY_POLICY


def from_policy(policy: CapacityPolicy) -> tuple[Override, ...]:
    """The file's own overrides, in its order, ended ones included."""
    return tuple(
        Override(
            id=item.name,
            pool=item.pool,
            replicas=item.replicas,
            minimum=item.min_replicas,
            maximum=item.max_replicas,
            since=None,
            until=item.until.timestamp(),
            reason=item.reason,
            by=BY_POLICY,
        )
        for item in policy.spec.overrides
    )


def active(overrides: Iterable[Override], wall: float) -> tuple[Override, ...]:
    """Those that hold at `wall`; an override ends with its last instant, and `since` delays nothing.

    A controller whose clock is a little behind that of its predecessor must not lose an override.
    """
    return tuple(override for override in overrides if wall < override.until)


def weakest_first(overrides: Iterable[Override]) -> tuple[Override, ...]:
    """The file's in its order, then the operators' from the oldest to the newest."""
    return tuple(sorted(overrides, key=lambda one: (one.by != BY_POLICY, one.since or 0.0)))


def claims(overrides: Iterable[Override], wall: float) -> tuple[Claim, ...]:
    """What the active overrides ask of the pools, weakest first."""
    return tuple(
        Claim(
            pool=one.pool,
            label=f"override {one.id}",
            minimum=one.replicas if one.replicas is not None else one.minimum,
            maximum=one.replicas if one.replicas is not None else one.maximum,
            exact=one.replicas is not None,
        )
        for one in weakest_first(active(overrides, wall))
    )


def problems(
    new: Override, policy: CapacityPolicy, overrides: Sequence[Override], wall: float
) -> tuple[str, ...]:
    """Why `new` may not be set at `wall`; empty when it may.

    `overrides` are the operators' present ones; one with the same id counts as replaced.  An override may
    go beyond its pool's bounds, but leaves the other pool the minimum that its bounds and its own
    overrides give it.  A schedule's minimum is not protected: an override is stronger.
    """
    found = [*_time(new, wall), *_words(new), *_values(new)]
    if found:
        return tuple(found)
    others = [one for one in (*from_policy(policy), *overrides) if one.id != new.id]
    room = most(policy, resolve(policy, claims(others, wall)), new.pool)
    for name, value in _asked(new):
        if value > room:
            found.append(
                f"{name} {value} of {new.pool} does not fit: the budget of {policy.spec.budget.max} "
                f"accelerators holds at most {room} beside the minimum of {new.pool.other}; "
                "ask for fewer, or raise budget.max in the policy"
            )
    return tuple(found)


def _time(new: Override, wall: float) -> Iterable[str]:
    if isnan(new.until):
        yield "until is not a number; give the end in Unix seconds"
    elif new.until <= wall:
        yield f"until {rfc3339(new.until)} is in the past: it is {rfc3339(wall)}; give a later end"
    elif new.until - wall > LONGEST_S:
        yield (
            f"until {rfc3339(new.until)} is more than 30 days ahead; "
            "give an earlier end, or change the pool's bounds in the policy"
        )


def _words(new: Override) -> Iterable[str]:
    if not new.id.strip():
        yield "id is empty; give the override a name"
    if not new.reason.strip():
        yield "reason is empty; say why, it is shown wherever the override acts"
    elif len(new.reason) > LONGEST_REASON:
        yield f"reason has {len(new.reason)} characters; say it in at most {LONGEST_REASON}"
    if not new.by.strip() or new.by == BY_POLICY:
        yield f"by {new.by!r} is not an operator's name; say who sets the override"


def _values(new: Override) -> Iterable[str]:
    given = _asked(new)
    if not given:
        yield "neither replicas nor a bound is given; give replicas, or minimum, maximum or both"
    if new.replicas is not None and len(given) > 1:
        yield "replicas and a bound are both given; replicas is exact, so leave the bounds out"
    for name, value in given:
        if value < 0:
            yield f"{name} {value} is negative; give 0 or more"
    if new.minimum is not None and new.maximum is not None and new.minimum > new.maximum:
        yield f"minimum {new.minimum} is above maximum {new.maximum}; exchange them"


def _asked(new: Override) -> list[tuple[str, int]]:
    values = {"replicas": new.replicas, "minimum": new.minimum, "maximum": new.maximum}
    return [(name, value) for name, value in values.items() if value is not None]
