"""Rules about sizes beyond minimum and maximum: switched off, several hosts, requests above limits."""

from __future__ import annotations

from collections.abc import Iterator

from app.k8s.documents import Document, Found, at, mapping, pairs
from app.k8s.fleet import Fleet
from app.k8s.pods import CLUSTER, pod_specs
from app.k8s.quantities import quantity, whole
from app.k8s.rules import Rule

PAIRED = ("memory",)  # and accelerators: the rules about resources want the same of both


def of_sizes(fleet: Fleet) -> Iterator[Found]:
    """Findings in the RayService and its groups."""
    for path in (("spec", "suspend"), (*CLUSTER, "suspend")):
        if at(fleet.document.data, *path) is True:
            words = "nothing would run: take it out"
            yield Found(Rule.GROUP_SIZE, fleet.document, path, words)
    for group in fleet.groups:
        if group.data.get("suspend") is True:
            words = f"{group.name} would have no pods: take it out, or the group"
            yield Found(Rule.GROUP_SIZE, fleet.document, (*group.path, "suspend"), words)
        hosts = group.data.get("numOfHosts")
        if hosts is not None and whole(hosts) != 1:
            words = f"is {hosts}: a replica uses accelerators of one node; raise replicas instead"
            yield Found(Rule.GROUP_SIZE, fleet.document, (*group.path, "numOfHosts"), words)
        for key in ("minReplicas", "replicas", "maxReplicas"):
            value = group.data.get(key)
            least = 0 if key == "minReplicas" and fleet.autoscaled else 1
            if isinstance(value, int) and value < least:
                words = f"is {value}: {group.name} would have no pods; at least {least}"
                yield Found(Rule.GROUP_SIZE, fleet.document, (*group.path, key), words)
        said = mapping(group.data.get("rayStartParams")).get("num-gpus")
        if group.head and said not in (None, "0"):
            where = (*group.path, "rayStartParams", "num-gpus")
            words = f"is {said}: Ray would put replicas on the head; take it out"
            yield Found(Rule.HEAD_IDLE, fleet.document, where, words)


def of_limits(document: Document) -> Iterator[Found]:
    """Requests above limits, which the API server refuses when the pod is made."""
    for path, pod, _ in pod_specs(document):
        for kind in ("initContainers", "containers"):
            for index, container in pairs(pod.get(kind)):
                requests, limits = (
                    mapping(at(container, "resources", part)) for part in ("requests", "limits")
                )
                for name, value in requests.items():
                    asked, most = quantity(value), quantity(limits.get(name))
                    if asked is not None and most is not None and asked > most and name not in PAIRED:
                        words = f"is {value}, above the limit of {limits[name]}: no pod would be made"
                        where = (*path, kind, index, "resources", "requests", str(name))
                        yield Found(Rule.RESOURCES, document, where, words)
