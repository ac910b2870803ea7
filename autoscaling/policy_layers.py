"""The bounds of the pools as the file gives them, and as each schedule and override changes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from autoscaling.policy import PolicyOverride, Pool, Role, Schedule
from autoscaling.policy_readable import Readable
from autoscaling.zones import ever_together


@dataclass(frozen=True, slots=True)
class Bound:
    """A minimum or maximum, and what set it."""

    value: int
    field: str  # where the file gives it
    by: str  # "pools", "schedule NAME" or "override NAME"


@dataclass(frozen=True, slots=True)
class Bounds:
    """Minimum and maximum of one pool; None in a layer that leaves one as it is."""

    minimum: Bound | None
    maximum: Bound | None


@dataclass(frozen=True, slots=True)
class Layer:
    """One schedule's or override's bounds."""

    by: str
    field: str  # where problems of the layer as a whole are shown
    bounds: Mapping[Role, Bounds]
    schedule: Schedule | None = None  # None for an override, which may meet anything

    def meets(self, other: Layer) -> bool:
        """Whether both may hold at one moment."""
        if self.schedule is None or other.schedule is None:
            return True
        return ever_together(self.schedule, other.schedule)


def base(pools: Mapping[Role, Pool]) -> dict[Role, Bounds]:
    """The pools' own bounds."""
    return {
        role: _bounds(pool.min_replicas, pool.max_replicas, f"spec.pools.{role}", "pools")
        for role, pool in pools.items()
    }


def layers(parts: Readable, wall: float | None) -> list[Layer]:
    """Schedules, then overrides, in the order in which they act: a later one wins.

    An override that has expired at `wall` is left out.
    """
    found = []
    for index, schedule in parts.schedules.items():
        by, where = f"schedule {schedule.name}", f"spec.schedules[{index}].pools"
        given = {Role.SPECULATIVE: schedule.pools.speculative, Role.PLAIN: schedule.pools.plain}
        bounds = {
            role: _bounds(item.min_replicas, item.max_replicas, f"{where}.{role}", by)
            for role, item in given.items()
            if item is not None
        }
        found.append(Layer(by, where, bounds, schedule))
    for index, override in parts.overrides.items():
        if wall is None or override.until.timestamp() > wall:
            found.append(_override(override, f"spec.overrides[{index}]"))
    return found


def _override(override: PolicyOverride, where: str) -> Layer:
    by = f"override {override.name}"
    if override.replicas is not None:
        exactly = Bound(override.replicas, f"{where}.replicas", by)
        bounds = Bounds(exactly, exactly)
    else:
        bounds = _bounds(override.min_replicas, override.max_replicas, where, by)
    return Layer(by, where, {override.pool: bounds})


def apply(layer: Layer, to: Mapping[Role, Bounds]) -> dict[Role, Bounds]:
    """The pools' bounds while a layer holds."""
    after = dict(to)
    for role, bounds in layer.bounds.items():
        if role in after:
            before = after[role]
            after[role] = Bounds(bounds.minimum or before.minimum, bounds.maximum or before.maximum)
    return after


def _bounds(minimum: int | None, maximum: int | None, where: str, by: str) -> Bounds:
    return Bounds(
        None if minimum is None else Bound(minimum, f"{where}.minReplicas", by),
        None if maximum is None else Bound(maximum, f"{where}.maxReplicas", by),
    )
