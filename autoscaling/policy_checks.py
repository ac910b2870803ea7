"""What no single field of a policy can say: parts that contradict each other, with both values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

from autoscaling.policy import Role
from autoscaling.policy_layers import Bound, Bounds, apply, base, layers
from autoscaling.policy_problem import Finding
from autoscaling.policy_readable import Readable
from autoscaling.zones import unknown_zone


def contradictions(parts: Readable, wall: float | None = None) -> list[Finding]:
    """Everything that refuses the file; checks that need a part that did not read are left out."""
    return [
        *_budget(parts),
        *_pools(parts),
        *_bootstrap(parts),
        *_bounds(parts, wall),
        *_behavior(parts),
        *_schedules(parts),
        *_overrides(parts),
    ]


def _budget(parts: Readable) -> Iterator[Finding]:
    budget = parts.budget
    if budget is None or budget.min is None:
        return
    if budget.min > budget.max:
        yield Finding("spec.budget.min", f"is {budget.min}, above budget.max {budget.max}")
    elif len(parts.pools) == len(Role):
        most = sum(pool.max_replicas * pool.accelerators_per_replica for pool in parts.pools.values())
        if most < budget.min:
            yield Finding(
                "spec.budget.min",
                f"is {budget.min}, but both pools' maxReplicas together take {most} accelerators; "
                "raise a maxReplicas or lower budget.min",
            )


def _pools(parts: Readable) -> Iterator[Finding]:
    for name, pool in parts.pools.items():
        if pool.role is not None and pool.role is not name:
            yield Finding(f"spec.pools.{name}.role", f"is {pool.role}, but this is the pool {name}")
        soft, hard = pool.limits.soft_inflight, pool.limits.hard_inflight
        if soft is not None and hard is not None and soft > hard:
            yield Finding(f"spec.pools.{name}.limits.softInflight", f"is {soft}, above hardInflight {hard}")


def _bootstrap(parts: Readable) -> Iterator[Finding]:
    bootstrap = parts.bootstrap
    if bootstrap is None:
        return
    sizes = {Role.SPECULATIVE: bootstrap.speculative, Role.PLAIN: bootstrap.plain}
    for role, pool in parts.pools.items():
        low, high = pool.min_replicas, pool.max_replicas
        if low <= high and not low <= sizes[role] <= high:
            yield Finding(
                f"spec.bootstrap.{role}",
                f"is {sizes[role]}, outside minReplicas {low} to maxReplicas {high} of the pool {role}",
            )
    if parts.budget is not None and len(parts.pools) == len(Role):
        need, words = _need(parts, sizes)
        if need > parts.budget.max:
            yield Finding(
                "spec.bootstrap", f"needs {need} accelerators ({words}), above budget.max {parts.budget.max}"
            )


def _bounds(parts: Readable, wall: float | None) -> Iterator[Finding]:
    """Minimums above maximums, and minimums above the budget: alone, in each layer, in each two layers.

    What is too much already is not said again of the layers above it.
    """
    own = base(parts.pools)
    yield from _crossings(own, "pools")
    too_much = _too_much(parts, own, (), "spec.budget.max")
    yield from too_much
    alone = []
    for layer in layers(parts, wall):
        with_layer = apply(layer, own)
        yield from _crossings(with_layer, layer.by)
        found = [] if too_much else _too_much(parts, with_layer, (layer.by,), layer.field)
        yield from found
        if not found and not too_much:
            alone.append(layer)
    for one, other in combinations(alone, 2):
        found = _too_much(parts, apply(other, apply(one, own)), (one.by, other.by), other.field)
        # Whether they ever meet is dear to find out; most pairs are free of conflicts.
        if found and one.meets(other):
            yield from found


def _crossings(bounds: Mapping[Role, Bounds], by: str) -> Iterator[Finding]:
    """Minimums above maximums to which `by` contributes.

    Of two layers that cross each other the stronger one's value stands.
    """
    for pool in bounds.values():
        low, high = pool.minimum, pool.maximum
        if low is not None and high is not None and low.value > high.value and by in (low.by, high.by):
            yield _crossed(low, high)


def _too_much(
    parts: Readable, bounds: Mapping[Role, Bounds], by: tuple[str, ...], field: str
) -> list[Finding]:
    """That the minimums do not fit the budget while `by` holds; nothing where something did not read."""
    minimums = {role: pool.minimum.value for role, pool in bounds.items() if pool.minimum is not None}
    if parts.budget is None or len(minimums) < len(Role):
        return []
    need, words = _need(parts, minimums)
    if need <= parts.budget.max:
        return []
    layer = f" while {' and '.join(by)} {'holds' if len(by) == 1 else 'hold'}" if by else ""
    return [
        Finding(
            field,
            f"the pools' minimums need {need} accelerators ({words}){layer}, "
            f"but budget.max is {parts.budget.max}",
        )
    ]


def _crossed(low: Bound, high: Bound) -> Finding:
    if low.by == high.by:
        return Finding(low.field, f"is {low.value}, above maxReplicas {high.value}")
    # Neither value may be passed over in silence, so the schedule or override has to give both.
    if low.by == "pools":
        return Finding(
            high.field,
            f"is {high.value}, below minReplicas {low.value} of the pool; give a minReplicas here too",
        )
    return Finding(
        low.field, f"is {low.value}, above maxReplicas {high.value} of the pool; give a maxReplicas here too"
    )


def _need(parts: Readable, sizes: Mapping[Role, int]) -> tuple[int, str]:
    """Accelerators for so many replicas, and the sum in words."""
    each = {role: parts.pools[role].accelerators_per_replica for role in sizes}
    words = ", ".join(f"{role} {size} x {each[role]}" for role, size in sizes.items())
    return sum(size * each[role] for role, size in sizes.items()), words


def _behavior(parts: Readable) -> Iterator[Finding]:
    band = parts.utilization
    if band is None or band.below < band.above:
        return
    if "below" not in band.model_fields_set:
        yield Finding(
            "spec.behavior.utilization.above",
            f"is {band.above}, and below is {band.below} by default, not below above: give below too",
        )
    else:
        yield Finding(
            "spec.behavior.utilization.below", f"is {band.below}, not below utilization.above {band.above}"
        )


def _schedules(parts: Readable) -> Iterator[Finding]:
    yield from _repeated("spec.schedules", {index: item.name for index, item in parts.schedules.items()})
    for index, schedule in parts.schedules.items():
        unknown = unknown_zone(schedule.time_zone)
        if unknown is not None:
            yield Finding(f"spec.schedules[{index}].timeZone", unknown)


def _overrides(parts: Readable) -> Iterator[Finding]:
    yield from _repeated("spec.overrides", {index: item.name for index, item in parts.overrides.items()})
    for index, override in parts.overrides.items():
        bounded = override.min_replicas is not None or override.max_replicas is not None
        if override.replicas is None and not bounded:
            yield Finding(
                f"spec.overrides[{index}]", "forces nothing; give replicas, or minReplicas or maxReplicas"
            )
        elif override.replicas is not None and bounded:
            yield Finding(
                f"spec.overrides[{index}].replicas",
                f"is {override.replicas}, and minReplicas or maxReplicas is given too; give one or the other",
            )


def _repeated(field: str, names: Mapping[int, str]) -> Iterator[Finding]:
    first: dict[str, int] = {}
    for index, name in names.items():
        if first.setdefault(name, index) != index:
            yield Finding(
                f"{field}[{index}].name", f"{name} is the name of entry {first[name] + 1} of the list too"
            )
