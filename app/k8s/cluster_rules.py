"""Rules about the RayCluster as a whole: sizes, head, placement, upgrades, names."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from app.k8s.disruption_rules import of_disruption
from app.k8s.documents import Document, Found, at, mapping, whole
from app.k8s.fleet import SERVE, Fleet
from app.k8s.pods import CLUSTER
from app.k8s.policy_rules import budget_of
from app.k8s.rules import Rule
from app.k8s.timing_rules import HAPROXY_ENV
from autoscaling.policy_problem import Path
from autoscaling.types import Role

UPGRADE: Path = ("spec", "upgradeStrategy", "type")
UPGRADE_OPTIONS: Path = ("spec", "upgradeStrategy", "clusterUpgradeOptions")
NEW_CLUSTER = "NewCluster"
INCREMENTAL = "NewClusterWithIncrementalUpgrade"
NO_UPGRADE = "None"
LONGEST_NAME = 47  # characters of a RayService's name; the operator adds to it
_DNS = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_GATED = ("networkPolicy", "tlsOptions", "historyServerOptions")
_IGNORED = ("serviceUnhealthySecondThreshold", "deploymentUnhealthySecondThreshold")
ACCELERATOR = "nvidia.com/gpu"


def of_cluster(fleet: Fleet, documents: list[Document]) -> Iterator[Found]:
    """All findings about one RayCluster."""
    yield from _sizes(fleet)
    yield from _head(fleet)
    yield from _placement(fleet)
    yield from _upgrade(fleet)
    yield from _demand(fleet, documents)
    yield from _together(fleet)
    yield from of_disruption(fleet, documents)
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


def demand(fleet: Fleet) -> tuple[int, int]:
    """Accelerators of one cluster, and the most that an upgrade takes at once."""
    one = sum(group.most * group.accelerators for group in fleet.groups)
    least = sum(group.least * group.accelerators for group in fleet.groups)
    kind = at(fleet.document.data, *UPGRADE)
    if kind == NO_UPGRADE:
        return one, one
    if kind == INCREMENTAL:
        surge = _surge(mapping(at(fleet.document.data, *UPGRADE_OPTIONS)))
        return one, one + max(math.ceil(one * surge / 100), least)
    return one, 2 * one


def _demand(fleet: Fleet, documents: list[Document]) -> Iterator[Found]:
    one, needed = demand(fleet)
    if one == 0:
        return
    quota = budget_of(documents, ACCELERATOR)
    if quota is None:
        words = (
            f"the cluster takes {one} accelerators and an upgrade {needed} at once, and no ResourceQuota "
            f"states how many there are (requests.{ACCELERATOR})"
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
