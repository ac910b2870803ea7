"""Selectors of labels, as Kubernetes takes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.k8s.documents import Document, at, entries, mapping, pairs
from app.k8s.pods import Group

NAMESPACE_LABEL = "kubernetes.io/metadata.name"  # which every namespace has


def takes(selector: Any, labels: Mapping[str, Any]) -> bool:
    """Whether a selector takes something with these labels; an empty one takes everything."""
    said = mapping(selector)
    wanted = mapping(said.get("matchLabels"))
    return all(labels.get(label) == value for label, value in wanted.items()) and all(
        _holds(expression, labels) for _, expression in pairs(said.get("matchExpressions"))
    )


def _holds(expression: Mapping[str, Any], labels: Mapping[str, Any]) -> bool:
    label, values = str(expression.get("key")), entries(expression.get("values"))
    match expression.get("operator"):
        case "In":
            return label in labels and labels[label] in values
        case "NotIn":
            return label not in labels or labels[label] not in values
        case "Exists":
            return label in labels
        case "DoesNotExist":
            return label not in labels
        case _:
            return False


def labels_of(group: Group, cluster: str = "") -> dict[str, Any]:
    """The labels of a group's pods, with those that KubeRay adds and that are known before."""
    added = {
        "ray.io/is-ray-node": "yes",
        "ray.io/node-type": "head" if group.head else "worker",
        "ray.io/group": "headgroup" if group.head else group.name,
        "app.kubernetes.io/created-by": "kuberay-operator",
        "app.kubernetes.io/name": "kuberay",
    }
    return {**added, **group.pod_labels} | ({"ray.io/originated-from-cr-name": cluster} if cluster else {})


def namespace_of(document: Document) -> str:
    """The namespace that an object says; empty where it leaves that to kubectl."""
    return str(at(document.data, "metadata", "namespace") or "")


def beside(document: Document, other: Document) -> bool:
    """Whether two objects may be in one namespace: what is not said may be the same."""
    mine, theirs = namespace_of(document), namespace_of(other)
    return not mine or not theirs or mine == theirs


def namespace_labels(document: Document, documents: list[Document]) -> dict[str, Any]:
    """The labels of an object's namespace, as far as they are known."""
    name = namespace_of(document)
    found: dict[str, Any] = {NAMESPACE_LABEL: name} if name else {}
    for other in documents:
        if other.kind == "Namespace" and other.name == name:
            found = {**mapping(at(other.data, "metadata", "labels")), **found}
    return found
