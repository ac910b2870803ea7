"""Rules about the RayCluster as a whole: sizes, head, placement, upgrades, budgets of disruption."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from app.k8s.documents import Document, Found, at, mapping, whole
from app.k8s.fleet import SERVE, Fleet
from app.k8s.pods import CLUSTER
from app.k8s.policy_rules import budget_of, kept_pods
from app.k8s.rules import Rule
from app.k8s.timing_rules import HAPROXY_ENV
from autoscaling.policy_problem import Path

UPGRADE: Path = ("spec", "upgradeStrategy", "type")
UPGRADE_OPTIONS: Path = ("spec", "upgradeStrategy", "clusterUpgradeOptions")
NEW_CLUSTER = "NewCluster"
INCREMENTAL = "NewClusterWithIncrementalUpgrade"
NO_UPGRADE = "None"
LONGEST_NAME = 47  # characters of a RayService's name; the operator adds to it
_DNS = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_GATED = ("networkPolicy", "tlsOptions", "historyServerOptions")
_IGNORED = ("serviceUnhealthySecondThreshold", "deploymentUnhealthySecondThreshold")


def of_cluster(fleet: Fleet, documents: list[Document]) -> Iterator[Found]:
    """All findings about one RayCluster."""
    yield from _sizes(fleet)
    yield from _head(fleet)
    yield from _placement(fleet)
    yield from _upgrade(fleet)
    yield from _demand(fleet, documents)
    yield from _together(fleet)
    yield from _budgets(fleet, documents)
    yield from _words(fleet)


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
            wanted = {
                key: deployed.options[key]
                for key in ("label_selector", "num_gpus", "resources")
                if deployed.options.get(key)
            }
            words = f"no group has what {deployed.name} asks for: {wanted}"
            yield Found(Rule.PLACEMENT, fleet.document, SERVE, words, (*deployed.path, "ray_actor_options"))


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
            yield Found(Rule.UPGRADE_DEMAND, fleet.document, UPGRADE, words)


def _together(fleet: Fleet) -> Iterator[Found]:
    tolerant = fleet.cluster.get("gcsFaultToleranceOptions") is not None
    incremental = at(fleet.document.data, *UPGRADE) == INCREMENTAL
    haproxy = any(group.env(HAPROXY_ENV)[0] == "1" for group in fleet.groups)
    if tolerant and incremental and haproxy:
        words = f"GCS fault tolerance, {INCREMENTAL} and {HAPROXY_ENV}=1: leave one of them out (ray#65102)"
        yield Found(Rule.RAY_65102, fleet.document, UPGRADE, words)


def _budgets(fleet: Fleet, documents: list[Document]) -> Iterator[Found]:
    covered = set()
    for document in documents:
        if document.kind != "PodDisruptionBudget":
            continue
        wanted = mapping(at(document.data, "spec", "selector", "matchLabels"))
        for group in fleet.groups:
            if wanted and all(group.pod_labels.get(label) == value for label, value in wanted.items()):
                covered.add(group.name)
                yield from _budget(document, group.name, kept_pods(fleet, documents, group), group.head)
    for group in fleet.workers:
        if group.least > 1 and group.name not in covered:
            words = f"group {group.name} has no PodDisruptionBudget: a drain may take all of its pods at once"
            yield Found(Rule.DISRUPTION_BUDGET, fleet.document, (*group.path, "groupName"), words)


def _budget(document: Document, group: str, size: int, head: bool) -> Iterator[Found]:
    spec = mapping(document.data.get("spec"))
    least, path = spec.get("minAvailable"), ("spec", "minAvailable")
    if head:
        words = "selects the head, which is one pod: the drain of its node would be blocked for ever"
        yield Found(Rule.DISRUPTION_BUDGET, document, ("spec", "selector"), words)
    elif "maxUnavailable" in spec or isinstance(least, bool) or not isinstance(least, int):
        words = f"is {least!r}: Ray's pods have no owner with a scale, so it has to be a whole number"
        yield Found(Rule.DISRUPTION_BUDGET, document, path, words)
    elif least >= size:
        words = f"is {least}, and {group} has {size} pods at least: no pod could ever be drained"
        yield Found(Rule.DISRUPTION_BUDGET, document, path, words)
    if spec.get("unhealthyPodEvictionPolicy") != "AlwaysAllow":
        words = "must be AlwaysAllow: a pod without a Serve replica is never ready, and would block a drain"
        yield Found(Rule.DISRUPTION_BUDGET, document, ("spec", "unhealthyPodEvictionPolicy"), words)


def _words(fleet: Fleet) -> Iterator[Found]:
    name = fleet.document.name
    if len(name) > LONGEST_NAME or not _DNS.fullmatch(name):
        words = f"{name!r} is no DNS label of at most {LONGEST_NAME} characters"
        yield Found(Rule.NAME, fleet.document, ("metadata", "name"), words)
    seen: set[str] = set()
    for group in fleet.workers:
        if not _DNS.fullmatch(group.name) or group.name in seen:
            words = f"{group.name!r} is no DNS label of its own"
            yield Found(Rule.NAME, fleet.document, (*group.path, "groupName"), words)
        seen.add(group.name)
    for key in _IGNORED:
        if at(fleet.document.data, "spec", key) is not None:
            yield Found(Rule.DEPRECATED, fleet.document, ("spec", key), "KubeRay ignores it: take it out")
    for key in _GATED:
        if fleet.cluster.get(key) is not None:
            words = "its feature gate is off by default: KubeRay would refuse the object"
            yield Found(Rule.GATED, fleet.document, (*CLUSTER, key), words)
    if at(fleet.cluster, "gcsFaultToleranceOptions", "backend") == "rocksdb":
        path = (*CLUSTER, "gcsFaultToleranceOptions", "backend")
        yield Found(
            Rule.GATED, fleet.document, path, "rocksdb is behind a gate that is off by default: redis"
        )
