"""Rules about names of other objects: what a pod, a Role, a budget or a monitor names has to be there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from app.k8s.documents import Document, Found, at, entries, mapping, meant, pairs
from app.k8s.pods import clusters, groups, pod_specs
from app.k8s.rules import Rule
from app.k8s.selectors import beside, labels_of, takes
from autoscaling.policy_problem import Path

BUILT_IN = {
    "ServiceAccount": {"default"},
    "PriorityClass": {"system-cluster-critical", "system-node-critical"},
}
SELECTORS: Mapping[str, Path] = {
    "PodDisruptionBudget": ("spec", "selector"),
    "PodMonitor": ("spec", "selector"),
    "NetworkPolicy": ("spec", "podSelector"),
}
OF_OTHERS = "gateway.networking.k8s.io/"  # labels of pods that the class of a Gateway makes, in no manifest


def of_references(documents: list[Document]) -> Iterator[Found]:
    """All findings about names that lead nowhere."""
    selectable = [(document, labels) for document in documents for labels in _labels(document)]
    for document in documents:
        for path, pod, _ in pod_specs(document):
            yield from _pod(documents, document, path, pod)
        yield from _redis(documents, document)
        yield from _rights(documents, document)
        path = SELECTORS.get(document.kind, ())
        selector = at(document.data, *path) if path else None
        if document.kind == "NetworkPolicy" and not any(beside(document, one) for one, _ in selectable):
            continue
        if path and not _of_others(selector) and not any(takes(selector, labels) for _, labels in selectable):
            words = f"selects no pod of these objects, so {document.label} is without effect: mend its labels"
            yield Found(Rule.REFERENCES, document, path, words)


def _of_others(selector: Any) -> bool:
    """Whether it takes pods that a controller makes of something that is no Ray cluster."""
    keys = [
        *mapping(at(selector, "matchLabels")),
        *(one.get("key") for _, one in pairs(at(selector, "matchExpressions"))),
    ]
    return any(str(key).startswith(OF_OTHERS) for key in keys)


def _labels(document: Document) -> Iterator[Mapping[str, Any]]:
    """The labels of each kind of pod that an object makes."""
    cluster = clusters(document)
    if cluster is None:
        yield from (labels for _, _, labels in pod_specs(document))
        return
    yield from (labels_of(group, document.name) for group in groups(document, cluster))


def _names(documents: list[Document], kind: str) -> set[str]:
    return {document.name for document in documents if document.kind == kind} | BUILT_IN.get(kind, set())


def _missing(documents: list[Document], kind: str, name: Any) -> str | None:
    """What is wrong with the name of an object; None when it is there."""
    there = _names(documents, kind)
    if str(name) in there:
        return None
    return (
        f"there is no {kind} {name} among these objects: add it, or name one that is{meant(str(name), there)}"
    )


def _pod(
    documents: list[Document], document: Document, path: Path, pod: Mapping[str, Any]
) -> Iterator[Found]:
    named: list[tuple[str, Path]] = [
        ("ServiceAccount", ("serviceAccountName",)),
        ("PriorityClass", ("priorityClassName",)),
    ]
    for index, volume in pairs(pod.get("volumes")):
        if "persistentVolumeClaim" in volume:
            claim: Path = ("volumes", index, "persistentVolumeClaim", "claimName")
            named.append(("PersistentVolumeClaim", claim))
        # Of a RayService the rules about mounts say it.
        if "configMap" in volume:
            where: Path = ("volumes", index, "configMap")
            if document.kind != "RayService":
                yield from _config_map(documents, document, (*path, *where), volume["configMap"])
            yield from _items(documents, document, (*path, *where), volume["configMap"])
    for kind, place in named:
        name = at(pod, *place)
        wrong = None if name is None and len(place) == 1 else _missing(documents, kind, name)
        if wrong is not None:
            yield Found(Rule.REFERENCES, document, (*path, *place), wrong)
    for kind in ("initContainers", "containers"):
        for index, container in pairs(pod.get(kind)):
            yield from _environment(documents, document, (*path, kind, index), container)


def _environment(
    documents: list[Document], document: Document, path: Path, container: Mapping[str, Any]
) -> Iterator[Found]:
    for number, entry in pairs(container.get("env")):
        said = at(entry, "valueFrom", "configMapKeyRef")
        if said is not None:
            where = (*path, "env", number, "valueFrom", "configMapKeyRef")
            yield from _config_map(documents, document, where, said)
            if mapping(said).get("optional") is not True:
                yield from _key(documents, document, where, mapping(said).get("name"), said)
    for number, entry in pairs(container.get("envFrom")):
        if "configMapRef" in entry:
            where = (*path, "envFrom", number, "configMapRef")
            yield from _config_map(documents, document, where, entry["configMapRef"])


def _config_map(documents: list[Document], document: Document, path: Path, said: Any) -> Iterator[Found]:
    wrong = _missing(documents, "ConfigMap", mapping(said).get("name"))
    if wrong is not None and mapping(said).get("optional") is not True:
        yield Found(Rule.REFERENCES, document, (*path, "name"), wrong)


def _items(documents: list[Document], document: Document, path: Path, said: Any) -> Iterator[Found]:
    for index, item in pairs(mapping(said).get("items")):
        yield from _key(documents, document, (*path, "items", index), mapping(said).get("name"), item)


def _key(documents: list[Document], document: Document, path: Path, name: Any, said: Any) -> Iterator[Found]:
    key = str(mapping(said).get("key"))
    for held in documents:
        if held.kind == "ConfigMap" and held.name == name:
            keys = {str(one) for part in ("data", "binaryData") for one in mapping(held.data.get(part))}
            if key not in keys:
                words = f"{held.label} has no key {key}{meant(key, keys)}"
                yield Found(Rule.REFERENCES, document, (*path, "key"), words)


def _redis(documents: list[Document], document: Document) -> Iterator[Found]:
    cluster = clusters(document)
    path = (*(cluster or ()), "gcsFaultToleranceOptions", "redisAddress")
    address = None if cluster is None else at(document.data, *path)
    if address is None:
        return
    host = str(address).rpartition("://")[2].rpartition("@")[2].partition(",")[0].partition(":")[0]
    name, _, domain = host.partition(".")
    own = str(at(document.data, "metadata", "namespace"))
    inside = domain in (own, f"{own}.svc", f"{own}.svc.cluster.local")
    wrong = _missing(documents, "Service", name) if not domain or inside else None
    if wrong is not None:
        yield Found(Rule.REFERENCES, document, path, wrong)


def _rights(documents: list[Document], document: Document) -> Iterator[Found]:
    """What a Role names, and what a RoleBinding binds."""
    if document.kind == "Role":
        for number, rule in pairs(document.data.get("rules")):
            for index, name in enumerate(entries(rule.get("resourceNames"))):
                wrong = _missing(documents, "ConfigMap", name)
                if entries(rule.get("resources")) == ["configmaps"] and wrong is not None:
                    where = ("rules", number, "resourceNames", index)
                    yield Found(Rule.REFERENCES, document, where, wrong)
    if document.kind == "RoleBinding" and at(document.data, "roleRef", "kind") == "Role":
        wrong = _missing(documents, "Role", at(document.data, "roleRef", "name"))
        if wrong is not None:
            yield Found(Rule.REFERENCES, document, ("roleRef", "name"), wrong)
