"""Whether a selector of labels takes a set of labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.k8s.documents import entries, mapping, pairs
from app.k8s.pods import Group


def takes(selector: Any, labels: Mapping[str, Any]) -> bool:
    """As Kubernetes does it: every label and every expression; an empty selector takes everything."""
    said = mapping(selector)
    wanted = mapping(said.get("matchLabels"))
    return all(labels.get(label) == value for label, value in wanted.items()) and all(
        _agrees(expression, labels) for _, expression in pairs(said.get("matchExpressions"))
    )


def _agrees(expression: Mapping[str, Any], labels: Mapping[str, Any]) -> bool:
    label, values = str(expression.get("key")), entries(expression.get("values"))
    match expression.get("operator"):
        case "In":
            return labels.get(label) in values
        case "NotIn":
            return labels.get(label) not in values
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
