"""Rules about the policy in its ConfigMap, and whether pools, budget and groups fit together."""

from __future__ import annotations

from collections.abc import Iterator

from app.k8s.documents import Document, Found, at, mapping
from app.k8s.fleet import SERVE, Fleet
from app.k8s.mounts import mounted_policy
from app.k8s.pods import Group
from app.k8s.quantities import whole
from app.k8s.rules import Rule
from autoscaling.policy import CapacityPolicy
from autoscaling.policy_file import read_policy
from autoscaling.policy_parts import Pool
from autoscaling.policy_problem import Finding, Path, Problem
from autoscaling.policy_world import check_against
from autoscaling.types import Role
from deployments.default_policy import world


def of_policy(fleet: Fleet, documents: list[Document]) -> Iterator[Found]:
    """All findings about the policy that the controller will read."""
    held = mounted_policy(fleet, documents)
    if held is None:  # the rules about mounts say why
        return
    document, key = held
    seen = read_policy(str(at(document.data, "data", key)))
    problems = list(seen.problems)
    if fleet.controller is not None:
        problems += [new for new in check_against(seen, world(fleet.controller)) if new not in problems]
    for problem in problems:
        yield _in_policy(Rule.POLICY, held, problem)
    if seen.policy is not None:
        for finding in _budget(fleet, seen.policy):
            yield _in_policy(Rule.CAPACITY, held, finding.at(seen.positions))
        yield from _ceiling(fleet)
        yield from _one_group(fleet, seen.policy)


def _in_policy(rule: Rule, held: tuple[Document, str], problem: Problem) -> Found:
    document, key = held
    return Found(rule, document, ("data", key), problem.message, problem=problem)


def _there(fleet: Fleet, *, always: bool = False) -> tuple[int, str]:
    """What the groups that serve a pool have together, at most or always, and the words for it.

    Above its minimum Ray's autoscaler makes no pod that nobody asks for, so only the minimum may be idle.
    """
    groups = {group.name: group for role in Role for group in fleet.serving(role)}.values()
    pods = [(group, group.least if always else group.most) for group in groups]
    there = sum(count * fleet.slots(group) for group, count in pods)
    return there, " and ".join(
        f"{group.name} ({count} pods of {fleet.slots(group)})" for group, count in pods
    )


def _budget(fleet: Fleet, policy: CapacityPolicy) -> Iterator[Finding]:
    """The pools' minimums against the budget, and the budget against the groups."""
    spec = policy.spec
    least = sum(pool.min_replicas * pool.accelerators_per_replica for pool in _pools(policy))
    there, groups = _there(fleet)
    budget = spec.budget.max + spec.surge_slots
    if least > spec.budget.max:
        yield Finding("spec.pools", f"the minimums take {least}, the budget is {spec.budget.max}")
    if groups and budget > there:
        surge = " with surgeSlots" if spec.surge_slots else ""
        yield Finding("spec.budget.max", f"is {budget}{surge}, and the groups have {there}: {groups}")
    always, groups = _there(fleet, always=True)
    if groups and least <= budget < always:
        surge = " with surgeSlots" if spec.surge_slots else ""
        words = (
            f"is {budget}{surge}, and the groups always have {always}: {groups}: {always - budget} are idle"
        )
        yield Finding(
            "spec.budget.max", f"{words} for ever; raise it to {always}, or make the groups smaller"
        )


def _ceiling(fleet: Fleet) -> Iterator[Found]:
    there, groups = _there(fleet)
    if groups and fleet.controller is not None and fleet.controller.ceiling > there:
        yield Found(
            Rule.CAPACITY,
            fleet.document,
            SERVE,
            f"the ceiling is {fleet.controller.ceiling}, and the groups have {there}: {groups}",
            ("applications", 0, "autoscaling_policy", "policy_kwargs", "ceiling"),
        )


def _pools(policy: CapacityPolicy) -> tuple[Pool, ...]:
    return policy.spec.pools.speculative, policy.spec.pools.plain


def _one_group(fleet: Fleet, policy: CapacityPolicy) -> Iterator[Found]:
    serving = [fleet.serving(role) for role in Role]
    if not all(serving) or any(group in serving[1] for group in serving[0]):
        return
    if not _moves(policy):
        return
    cost, delay = (whole(fleet.annotation(name)) for name in ("move-cost-seconds", "move-delay-seconds"))
    second: Group = serving[1][0]
    names = " and ".join(group.name for groups in serving for group in groups)
    if cost is None or delay is None or delay < cost:
        stated = (
            "is not stated (annotation twinpool.dev/move-cost-seconds)" if cost is None else f"is {cost} s"
        )
        yield Found(
            Rule.ONE_GROUP,
            fleet.document,
            (*second.path, "groupName"),
            f"the pools have the groups {names}, and the policy moves capacity between them: what a move "
            f"costs {stated}, D is {delay} s: one group for both, or pools of a fixed size, or D of at least "
            "that cost",
        )


def _moves(policy: CapacityPolicy) -> bool:
    """Whether any size may change: a bound that leaves room, a schedule, an override."""
    spec = policy.spec
    loose = any(pool.min_replicas != pool.max_replicas for pool in _pools(policy))
    return loose or bool(spec.schedules) or bool(spec.overrides)


def kept_pods(fleet: Fleet, documents: list[Document], group: Group) -> int:
    """Pods that a group never has less of: its minimum, or what the policy keeps assigned of its budget.

    The second counts where Ray's autoscaler makes pods and this group alone serves the pools.
    """
    held, slots = mounted_policy(fleet, documents), fleet.slots(group)
    if not fleet.autoscaled or held is None or slots == 0:
        return group.least
    if any(fleet.serving(role) != (group,) for role in Role):
        return group.least
    seen = read_policy(str(at(held[0].data, "data", held[1])))
    assigned = 0 if seen.policy is None else (seen.policy.spec.budget.min or 0)
    return max(group.least, min(group.most, assigned // slots))


def budget_of(documents: list[Document], resource: str) -> tuple[Document, Path, int] | None:
    """The quota of a resource, where a ResourceQuota states one; of several the strictest counts."""
    found = []
    for document in documents:
        if document.kind == "ResourceQuota":
            hard = mapping(at(document.data, "spec", "hard"))
            for key in (f"requests.{resource}", f"limits.{resource}"):
                number = whole(hard.get(key))
                if number is not None:
                    found.append((document, ("spec", "hard", key), number))
    return min(found, key=lambda quota: quota[2], default=None)
