"""Rules about disruption budgets: each lets one pod of what it selects go at a time."""

from __future__ import annotations

from collections.abc import Iterator

from app.k8s.documents import Document, Found, at, mapping
from app.k8s.fleet import Fleet
from app.k8s.pods import Group
from app.k8s.policy_rules import kept_pods
from app.k8s.rules import Rule
from app.k8s.selectors import labels_of, takes


def of_disruption(fleet: Fleet, documents: list[Document]) -> Iterator[Found]:
    """All findings about the budgets of one RayCluster's pods."""
    covered = set()
    for document in documents:
        if document.kind != "PodDisruptionBudget":
            continue
        selector = at(document.data, "spec", "selector")
        selected = [
            group
            for group in fleet.groups
            if selector is not None and takes(selector, labels_of(group, fleet.document.name))
        ]
        if selected:
            covered |= {group.name for group in selected}
            yield from _budget(document, selected, sum(kept_pods(fleet, documents, one) for one in selected))
    for group in fleet.workers:
        if group.least > 1 and group.name not in covered:
            words = f"group {group.name} has no PodDisruptionBudget: a drain may take all of its pods at once"
            yield Found(Rule.DISRUPTION_BUDGET, fleet.document, (*group.path, "groupName"), words)


def _budget(document: Document, selected: list[Group], size: int) -> Iterator[Found]:
    """One budget against the pods that it selects, of which there are `size` at least."""
    spec = mapping(document.data.get("spec"))
    least, path = spec.get("minAvailable"), ("spec", "minAvailable")
    names = " and ".join(group.name for group in selected)
    if any(group.head for group in selected):
        words = "selects the head, which is one pod: the drain of its node would be blocked for ever"
        yield Found(Rule.DISRUPTION_BUDGET, document, ("spec", "selector"), words)
    elif "maxUnavailable" in spec or isinstance(least, bool) or not isinstance(least, int):
        words = f"is {least!r}: Ray's pods have no owner with a scale, so it has to be a whole number"
        yield Found(Rule.DISRUPTION_BUDGET, document, path, words)
    elif least >= size:
        words = f"is {least}, and there are {size} pods of {names} at least: no pod could ever be drained"
        yield Found(Rule.DISRUPTION_BUDGET, document, path, words)
    elif least < size - 1:
        words = (
            f"is {least}, and there are {size} pods of {names}: a drain may take {size - least} of them "
            f"at once; write {size - 1}, one less than the pods"
        )
        yield Found(Rule.DISRUPTION_BUDGET, document, path, words)
    if spec.get("unhealthyPodEvictionPolicy") != "AlwaysAllow":
        words = "must be AlwaysAllow: a pod without a Serve replica is never ready, and would block a drain"
        yield Found(Rule.DISRUPTION_BUDGET, document, ("spec", "unhealthyPodEvictionPolicy"), words)
