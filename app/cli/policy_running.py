"""The policy that the controller runs, and what it would surely refuse of a new one."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from app.cli.client import NOT_OURS, ODD, NotReachableError, get
from autoscaling.decisions import Sizes
from autoscaling.policy import CapacityPolicy
from autoscaling.policy_file import PolicyRead, Problem, read_policy
from autoscaling.policy_world import World, check_against
from autoscaling.types import Role


@dataclass(frozen=True, slots=True)
class Running:
    """What the service says; `policy` is the active revision's, None before there is one."""

    path: str | None  # where the controller reads it, in its own file system
    revision: int | None
    sha: str | None
    policy: CapacityPolicy | None
    targets: Sizes | None  # None where they are not known for both pools


def running(service: str) -> Running:
    """Ask the service; raises NotReachableError, RefusedError."""
    try:
        return _running(service)
    except ODD as error:
        raise NotReachableError(service, NOT_OURS) from error


def _running(service: str) -> Running:
    found = get(service, "/admin/policy")
    revision = found["active_revision"]
    if revision is None:
        return Running(found["path"], None, None, None, None)
    kept = get(service, f"/admin/policy/{revision}")
    pools = get(service, "/admin/status").get("pools")
    return Running(
        found["path"], revision, str(kept["sha"]), read_policy(kept["text"]).policy, _targets(pools)
    )


def refusals(read: PolicyRead, beside: Running, wall: float) -> tuple[Problem, ...]:
    """Why the controller would refuse a policy, as far as can be told from outside; by line.

    The largest cut, and accelerators per replica.  How many accelerators the service has, only the
    controller knows.
    """
    active = beside.policy
    if active is None:
        return ()
    spec = active.spec
    pools = {Role.SPECULATIVE: spec.pools.speculative, Role.PLAIN: spec.pools.plain}
    return check_against(
        read,
        World(
            ceiling_accelerators=sys.maxsize,
            floors=dict.fromkeys(Role, 0),
            most=dict.fromkeys(Role, sys.maxsize),
            accelerators={role: pool.accelerators_per_replica for role, pool in pools.items()},
            targets=beside.targets,
            active_revision=beside.revision,
            active_budget=spec.budget.max,
            active_cut_share=spec.guardrails.max_cut_share,
            wall=wall,
        ),
    )


def _targets(pools: dict[str, Any] | None) -> Sizes | None:
    found = {role: (pools or {}).get(role.value, {}).get("target") for role in Role}
    return {role: int(size) for role, size in found.items()} if None not in found.values() else None
