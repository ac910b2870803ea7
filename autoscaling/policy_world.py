"""A policy against the service that is to obey it: what only a running service knows; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from autoscaling.decisions import Sizes
from autoscaling.policy import CapacityPolicy, Pool
from autoscaling.policy_file import PolicyRead
from autoscaling.policy_in_force import in_force
from autoscaling.policy_layers import Bound, base, layers
from autoscaling.policy_problem import Finding, Problem
from autoscaling.policy_readable import all_of
from autoscaling.types import Role


@dataclass(frozen=True, slots=True)
class World:
    """What exists, and what acts now.  Per-pool values are there for both pools."""

    ceiling_accelerators: int  # that both pools may ever have
    floors: Mapping[Role, int]  # Ray Serve's own minimum: 0 for a pool that may be empty, else 1
    most: Mapping[Role, int]  # Ray Serve's own maximum, replicas
    accelerators: Mapping[Role, int]  # per replica, as the pools were set up
    targets: Sizes | None = None  # of now; None before the first decision
    active_revision: int | None = None  # None: there is no policy to edit yet
    active_budget: int | None = None  # its budget.max
    active_cut_share: float | None = None  # its guardrails.maxCutShare
    wall: float | None = None  # Unix seconds: what holds now counts too; None: the pools' own bounds only


@dataclass(frozen=True, slots=True)
class _Cut:
    """What an edit would take away."""

    field: str
    gone: float  # share, 0..1
    words: str


def check_against(read: PolicyRead, world: World) -> tuple[Problem, ...]:
    """Why this service cannot or must not obey a policy, by line; the file's own problems if it has some."""
    if read.policy is None:
        return read.problems
    findings = [*_setup(read.policy, world), *_bounds(read.policy, world), *_guard(read.policy, world)]
    return tuple(sorted(finding.at(read.positions) for finding in findings))


def _setup(policy: CapacityPolicy, world: World) -> Iterator[Finding]:
    budget, ceiling, surge = policy.spec.budget.max, world.ceiling_accelerators, policy.spec.surge_slots
    if budget > ceiling:
        yield Finding("spec.budget.max", f"is {budget}, but this service has {ceiling} accelerators")
    elif budget + surge > ceiling:
        yield Finding(
            "spec.surgeSlots",
            f"is {surge}: with budget.max {budget} that is {budget + surge} accelerators, "
            f"but this service has {ceiling}",
        )
    for role, pool in _pools(policy).items():
        if pool.accelerators_per_replica != world.accelerators[role]:
            yield Finding(
                f"spec.pools.{role}.acceleratorsPerReplica",
                f"is {pool.accelerators_per_replica}, but a replica of this pool was set up with "
                f"{world.accelerators[role]}",
            )


def _bounds(policy: CapacityPolicy, world: World) -> Iterator[Finding]:
    """Every bound of the pools, the schedules and the overrides against Ray Serve's own."""
    parts = all_of(policy)
    every = [base(parts.pools), *(layer.bounds for layer in layers(parts, world.wall))]
    for layer in every:
        for role, bounds in layer.items():
            for bound in dict.fromkeys((bounds.minimum, bounds.maximum)):
                if bound is not None:
                    yield from _bound(bound, role, world)


def _bound(bound: Bound, role: Role, world: World) -> Iterator[Finding]:
    if bound.value < world.floors[role]:
        yield Finding(
            bound.field,
            f"is {bound.value}, but the pool {role} was set up to keep {world.floors[role]}: "
            "needs may_be_empty in the pool's settings",
        )
    if bound.value > world.most[role]:
        yield Finding(
            bound.field, f"is {bound.value}, but the pool {role} was set up for {world.most[role]} at most"
        )


def _guard(policy: CapacityPolicy, world: World) -> Iterator[Finding]:
    """The largest cut at once: of a pool, of both, or of the budget while no targets are known."""
    rails, revision = policy.spec.guardrails, world.active_revision
    if revision is None or rails.allow_large_change == revision:
        return
    share, whose = rails.max_cut_share, "maxCutShare"
    # Else one edit could lower the guard and cut at the same time.
    if world.active_cut_share is not None and world.active_cut_share < share:
        share, whose = world.active_cut_share, "the active revision's maxCutShare"
    for cut in _cuts(policy, world):
        if cut.gone > share + 1e-9:
            yield Finding(
                cut.field,
                f"{cut.words} ({cut.gone:.0%} at once, {whose} is {share:g}); cut in smaller edits, or give "
                f"guardrails.allowLargeChange: {revision} to replace revision {revision} all the same",
            )


def _cuts(policy: CapacityPolicy, world: World) -> Iterator[_Cut]:
    budget, before = policy.spec.budget.max, world.targets
    if before is None:
        if world.active_budget is not None and budget < world.active_budget:
            gone = 1 - budget / world.active_budget
            yield _Cut("spec.budget.max", gone, f"lowers the budget from {world.active_budget} to {budget}")
        return
    pools = _pools(policy)
    least, most = _now(policy, world.wall)
    after = {}
    for role, pool in pools.items():
        beside = (budget - least[role.other] * pools[role.other].accelerators_per_replica) // (
            pool.accelerators_per_replica
        )
        after[role] = max(0, min(before[role], most[role], beside))
        if before[role] > 0:
            field = f"spec.pools.{role}.maxReplicas"
            words = f"takes {before[role] - after[role]} of the {before[role]} replicas of {role}"
            if most[role] > beside:
                field, words = "spec.budget.max", f"{words}: {budget} accelerators leave room for {beside}"
            yield _Cut(field, 1 - after[role] / before[role], words)
    had = sum(before[role] * world.accelerators[role] for role in Role)
    left = min(budget, sum(after[role] * world.accelerators[role] for role in Role))
    if had > 0:
        yield _Cut("spec.budget.max", 1 - left / had, f"takes {had - left} of {had} accelerators in use")


def _now(policy: CapacityPolicy, wall: float | None) -> tuple[Sizes, Sizes]:
    """Minimum and maximum of the pools: what holds at `wall`, else their own."""
    if wall is None:
        pools = _pools(policy)
        return (
            {role: pool.min_replicas for role, pool in pools.items()},
            {role: pool.max_replicas for role, pool in pools.items()},
        )
    rules = in_force(policy, 0, "", overrides=(), hold=None, wall=wall).pools
    return (
        {role: rules[role].minimum for role in Role},
        {role: rules[role].maximum for role in Role},
    )


def _pools(policy: CapacityPolicy) -> dict[Role, Pool]:
    return {Role.SPECULATIVE: policy.spec.pools.speculative, Role.PLAIN: policy.spec.pools.plain}
