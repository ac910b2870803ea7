"""Rules about the RayCluster as a whole: sizes, head, placement, upgrades, names."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from app.k8s.disruption_rules import of_disruption
from app.k8s.documents import Document, Found, at, mapping, pairs
from app.k8s.fleet import SERVE, Fleet
from app.k8s.name_rules import of_names
from app.k8s.node_resources import lacking
from app.k8s.pods import CLUSTER
from app.k8s.policy_rules import budget_of
from app.k8s.quantities import whole
from app.k8s.rules import Rule
from app.k8s.timing_rules import HAPROXY_ENV
from autoscaling.policy_problem import Path
from autoscaling.types import Role

UPGRADE: Path = ("spec", "upgradeStrategy", "type")
UPGRADE_OPTIONS: Path = ("spec", "upgradeStrategy", "clusterUpgradeOptions")
NEW_CLUSTER = "NewCluster"
INCREMENTAL = "NewClusterWithIncrementalUpgrade"
NO_UPGRADE = "None"


def of_cluster(fleet: Fleet, documents: list[Document]) -> Iterator[Found]:
    """All findings about one RayCluster."""
    yield from _sizes(fleet)
    yield from _head(fleet)
    yield from _placement(fleet)
    yield from _upgrade(fleet)
    yield from _demand(fleet, documents)
    yield from _together(fleet)
    yield from _routes(fleet, documents)
    yield from of_disruption(fleet, documents)
    yield from of_names(fleet)


def _sizes(fleet: Fleet) -> Iterator[Found]:
    for group in fleet.workers:
        least, most, now = (whole(group.data.get(key)) for key in ("minReplicas", "maxReplicas", "replicas"))
        if least is None or most is None:
            words = f"{group.name} says minReplicas {least} and maxReplicas {most}: say both"
            yield Found(Rule.GROUP_SIZE, fleet.document, (*group.path, "maxReplicas"), words)
            continue
        if least > most:
            words = f"is {least}, above maxReplicas {most}"
            yield Found(Rule.GROUP_SIZE, fleet.document, (*group.path, "minReplicas"), words)
        elif least != most and not fleet.autoscaled:
            words = f"is {most}, minReplicas is {least}: without Ray's autoscaler none is made above it"
            yield Found(Rule.GROUP_SIZE, fleet.document, (*group.path, "maxReplicas"), words)
        if now is not None and not least <= now <= most:
            words = f"is {now}, outside of {least} to {most}"
            yield Found(Rule.GROUP_SIZE, fleet.document, (*group.path, "replicas"), words)


def _head(fleet: Fleet) -> Iterator[Found]:
    for group in fleet.groups:
        if not group.head:
            continue
        params = mapping(group.data.get("rayStartParams"))
        if params.get("num-cpus") != "0":
            where = (*group.path, "rayStartParams", "num-cpus")
            yield Found(Rule.HEAD_IDLE, fleet.document, where, f'is {params.get("num-cpus")}: "0"')
        if group.accelerators:
            where = (*group.container_path, "resources", "limits")
            yield Found(
                Rule.HEAD_IDLE, fleet.document, where, "the head has an accelerator that no pool can use"
            )
    if at(fleet.document.data, "spec", "excludeHeadPodFromServeSvc") is not True:
        path = ("spec", "excludeHeadPodFromServeSvc")
        yield Found(Rule.HEAD_IDLE, fleet.document, path, "callers would go through the head: true")


def _placement(fleet: Fleet) -> Iterator[Found]:
    for deployed in fleet.deployments:
        if not any(deployed.fits(group) for group in fleet.workers):
            near = min(
                (list(lacking(group, deployed.options)) for group in fleet.workers), key=len, default=[]
            )
            words = (
                f"no group has what {deployed.name} asks for; the nearest lacks {', '.join(near)}: ask for "
                "less, or say it of the group (labels, rayStartParams, resources)"
            )
            yield Found(Rule.PLACEMENT, fleet.document, SERVE, words, (*deployed.path, "ray_actor_options"))
    if any(fleet.deployment(role.value) is None for role in Role):
        return
    used = {group.name for role in Role for group in fleet.serving(role)}
    for group in fleet.workers:
        if fleet.slots(group) and group.name not in used:
            kind = "accelerators" if group.accelerators else "engine slots"
            words = (
                f"nobody uses these {group.most} pods with {group.most * fleet.slots(group)} {kind}: name "
                f"{group.name}'s labels, {dict(group.labels)}, in the label_selector of a pool "
                "(settings/serve.yaml), or take the group out"
            )
            yield Found(Rule.PLACEMENT, fleet.document, (*group.path, "groupName"), words)


def _upgrade(fleet: Fleet) -> Iterator[Found]:
    kind = at(fleet.document.data, *UPGRADE)
    if kind not in (NEW_CLUSTER, INCREMENTAL, NO_UPGRADE):
        words = f"is {kind!r}: {NEW_CLUSTER}, {INCREMENTAL} or {NO_UPGRADE!r}, said out loud"
        yield Found(Rule.UPGRADE, fleet.document, UPGRADE, words)
    if kind != INCREMENTAL:
        return
    options = mapping(at(fleet.document.data, *UPGRADE_OPTIONS))
    step, surge = whole(options.get("stepSizePercent")), _surge(options)
    if step is None or step > surge:
        words = f"is {step}, above maxSurgePercent {surge}"
        yield Found(Rule.UPGRADE, fleet.document, (*UPGRADE_OPTIONS, "stepSizePercent"), words)
    if not fleet.autoscaled:
        words = "an incremental upgrade needs Ray's autoscaler: true"
        yield Found(Rule.UPGRADE, fleet.document, (*CLUSTER, "enableInTreeAutoscaling"), words)


def _surge(options: Mapping[str, Any]) -> int:
    surge = whole(options.get("maxSurgePercent"))
    return 100 if surge is None else surge


def demand(fleet: Fleet, resource: str) -> tuple[int, int]:
    """Accelerators of one name that one cluster takes, and the most that an upgrade takes at once."""
    each = [(group, group.accelerators_by_name.get(resource, 0)) for group in fleet.groups]
    one = sum(group.most * size for group, size in each)
    least = sum(group.least * size for group, size in each)
    kind = at(fleet.document.data, *UPGRADE)
    if kind == NO_UPGRADE:
        return one, one
    if kind == INCREMENTAL:
        surge = _surge(mapping(at(fleet.document.data, *UPGRADE_OPTIONS)))
        return one, one + max(math.ceil(one * surge / 100), least)
    return one, 2 * one


def _demand(fleet: Fleet, documents: list[Document]) -> Iterator[Found]:
    for resource in sorted({name for group in fleet.groups for name in group.accelerators_by_name}):
        one, needed = demand(fleet, resource)
        if one == 0:
            continue
        quota = budget_of(documents, resource)
        if quota is None:
            words = (
                f"the cluster takes {one} accelerators and an upgrade {needed} at once, and no ResourceQuota "
                f"states how many there are (requests.{resource})"
            )
            yield Found(Rule.UPGRADE_DEMAND, fleet.document, UPGRADE, words)
        elif quota[2] < needed:
            words = (
                f"an upgrade takes {needed} accelerators at once, the quota is {quota[2]}: raise it, or take "
                f"components/incremental-upgrade, or {NO_UPGRADE!r} (delete and apply, with an interruption)"
            )
            yield Found(Rule.UPGRADE_DEMAND, quota[0], quota[1], words)


def _together(fleet: Fleet) -> Iterator[Found]:
    tolerant = fleet.cluster.get("gcsFaultToleranceOptions") is not None
    incremental = at(fleet.document.data, *UPGRADE) == INCREMENTAL
    haproxy = any(group.env(HAPROXY_ENV)[0] == "1" for group in fleet.groups)
    if tolerant and incremental and haproxy:
        words = f"GCS fault tolerance, {INCREMENTAL} and {HAPROXY_ENV}=1: leave one of them out (ray#65102)"
        yield Found(Rule.RAY_65102, fleet.document, UPGRADE, words)


def _routes(fleet: Fleet, documents: list[Document]) -> Iterator[Found]:
    """An incremental upgrade moves the callers by a route of its own, which another one would pass by."""
    if at(fleet.document.data, *UPGRADE) != INCREMENTAL:
        return
    service = f"{fleet.document.name}-serve-svc"
    for document in documents:
        rules = pairs(at(document.data, "spec", "rules")) if document.kind == "HTTPRoute" else ()
        backends = [back.get("name") for _, rule in rules for _, back in pairs(rule.get("backendRefs"))]
        if service in backends:
            words = (
                f"{INCREMENTAL} makes a Gateway and a route of its own, and callers of {document.label} "
                "would not be moved: take components/gateway or components/incremental-upgrade out of the "
                "overlay's kustomization.yaml"
            )
            yield Found(Rule.UPGRADE, document, ("spec", "rules"), words)
