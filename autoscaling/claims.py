"""Bounds of both pools under claims of schedules and overrides, always feasible and inside the budget.

A claim takes the place of a pool's own values; what it leaves open stays as it is.  Minimums that no
longer fit the budget together are cut: the weaker claim's first, and never below the pool's own minimum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from autoscaling.policy import CapacityPolicy, Pool
from autoscaling.types import Role

OWN = "pools"  # the word for bounds that nothing but the pool itself gives
CUT = ", cut by the budget"


@dataclass(frozen=True, slots=True)
class Claim:
    """What a schedule or an override asks of one pool, in replicas; None leaves the value as it is."""

    pool: Role
    label: str  # "schedule NAME" or "override ID"
    minimum: int | None = None
    maximum: int | None = None
    exact: bool = False  # exactly so many: minimum == maximum


@dataclass(frozen=True, slots=True)
class Bounds:
    """One pool's bounds in replicas and what gives them."""

    minimum: int
    maximum: int
    bound_by: str = OWN
    forced: bool = False
    cut: bool = False  # the minimum is lower than what was asked


@dataclass(slots=True)
class _Asked:
    """A pool's values while claims are laid over them; a rank is a claim's place, -1 for the pool's own."""

    own: int
    minimum: int
    maximum: int
    accelerators: int
    minimum_rank: int = -1
    maximum_rank: int = -1
    claim: Claim | None = None  # the strongest that gives a value

    def lay(self, claim: Claim, rank: int) -> None:
        if claim.minimum is not None:
            self.minimum, self.minimum_rank, self.claim = claim.minimum, rank, claim
        if claim.maximum is not None:
            self.maximum, self.maximum_rank, self.claim = claim.maximum, rank, claim
        # Of two values that exclude each other the stronger one stands.
        if self.minimum > self.maximum and self.maximum_rank > self.minimum_rank:
            self.minimum, self.minimum_rank = self.maximum, rank

    def bounds(self, minimum: int) -> Bounds:
        cut = minimum < self.minimum
        label = self.claim.label if self.claim else OWN
        exact = self.claim is not None and self.claim.exact
        return Bounds(
            minimum=minimum,
            maximum=minimum if exact else max(self.maximum, minimum),
            bound_by=label + CUT if cut else label,
            forced=exact,
            cut=cut,
        )


def resolve(policy: CapacityPolicy, claims: Sequence[Claim]) -> Mapping[Role, Bounds]:
    """Bounds of both pools; `claims` come weakest first.

    The policy's own minimums must fit its budget, as `policy_checks` makes sure.  Then minimum <= maximum
    holds for each pool, and the minimums together cost at most `budget.max` accelerators.
    """
    asked = {role: _own(policy, role) for role in Role}
    for rank, claim in enumerate(claims):
        asked[claim.pool].lay(claim, rank)
    strong, weak = sorted(Role, key=lambda role: asked[role].minimum_rank, reverse=True)
    budget = policy.spec.budget.max
    # First the weaker yields, down to its own minimum; what is still too much the stronger gives up.
    room = _room(budget, asked[strong].minimum, asked[strong].accelerators, asked[weak].accelerators)
    kept = min(asked[weak].minimum, max(room, min(asked[weak].own, asked[weak].minimum)))
    room = _room(budget, kept, asked[weak].accelerators, asked[strong].accelerators)
    return {
        strong: asked[strong].bounds(min(asked[strong].minimum, room)),
        weak: asked[weak].bounds(kept),
    }


def most(policy: CapacityPolicy, bounds: Mapping[Role, Bounds], role: Role) -> int:
    """Replicas of `role` that the budget holds beside the other pool's minimum."""
    return _room(
        policy.spec.budget.max,
        bounds[role.other].minimum,
        pool_of(policy, role.other).accelerators_per_replica,
        pool_of(policy, role).accelerators_per_replica,
    )


def pool_of(policy: CapacityPolicy, role: Role) -> Pool:
    """The file's own words on one pool."""
    return policy.spec.pools.speculative if role is Role.SPECULATIVE else policy.spec.pools.plain


def _own(policy: CapacityPolicy, role: Role) -> _Asked:
    pool = pool_of(policy, role)
    return _Asked(pool.min_replicas, pool.min_replicas, pool.max_replicas, pool.accelerators_per_replica)


def _room(budget: int, replicas: int, accelerators: int, per_replica: int) -> int:
    """Replicas at `per_replica` accelerators beside `replicas` at `accelerators`."""
    return (budget - replicas * accelerators) // per_replica
