"""Pods that objects make: the groups of a RayCluster, and templates of other kinds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from app.k8s.documents import Document, at, entries, mapping, pairs
from app.k8s.quantities import quantity, whole
from autoscaling.policy_problem import Path

CLUSTER: Path = ("spec", "rayClusterConfig")


# What KubeRay tells Ray of as GPUs, and what Ray finds by itself.
_ACCELERATOR = re.compile(r".*gpu|nvidia\.com/mig-.+|gpu\.intel\.com/(i915|xe)")


def is_accelerator(resource: str) -> bool:
    """Whether a resource of a container is an accelerator of Ray's."""
    return _ACCELERATOR.fullmatch(resource) is not None


@dataclass(frozen=True, slots=True)
class Group:
    """Pods of one kind in a RayCluster: the head, or a worker group."""

    name: str
    path: Path  # of the group in its document
    data: Mapping[str, Any]
    head: bool

    @property
    def pod(self) -> Mapping[str, Any]:
        """Spec of its pods."""
        return mapping(at(self.data, "template", "spec"))

    @property
    def pod_path(self) -> Path:
        """Where that stands."""
        return (*self.path, "template", "spec")

    @property
    def pod_labels(self) -> Mapping[str, Any]:
        """Labels of its pods that the manifest sets."""
        return mapping(at(self.data, "template", "metadata", "labels"))

    @property
    def container(self) -> Mapping[str, Any]:
        """Ray's container, which is the first."""
        return mapping(at(self.pod, "containers", 0))

    @property
    def container_path(self) -> Path:
        """Where that stands."""
        return (*self.pod_path, "containers", 0)

    @property
    def labels(self) -> Mapping[str, Any]:
        """Labels of its Ray nodes."""
        return mapping(self.data.get("labels"))

    @property
    def least(self) -> int:
        """Pods that it has at least; the head is one."""
        return 1 if self.head else whole(self.data.get("minReplicas")) or 0

    @property
    def most(self) -> int:
        """Pods that it has at most."""
        return 1 if self.head else whole(self.data.get("maxReplicas")) or 0

    @property
    def accelerators(self) -> int:
        """Accelerators of one pod's container, whatever Ray is told of them."""
        return sum(self.accelerators_by_name.values())

    @property
    def accelerators_by_name(self) -> dict[str, int]:
        """The same by the name of the resource: `nvidia.com/gpu`, `amd.com/gpu`."""
        limits = mapping(at(self.container, "resources", "limits"))
        return {
            name: int(quantity(value) or 0)
            for name, value in limits.items()
            if is_accelerator(str(name)) and quantity(value)
        }

    def env(self, name: str) -> tuple[str | None, Path]:
        """A variable of Ray's container, and its place; of a repeated name the last one counts."""
        path = (*self.container_path, "env")
        for index, entry in reversed(list(pairs(self.container.get("env")))):
            if entry.get("name") == name:
                value = entry.get("value")
                return None if value is None else str(value), (*path, index, "value")
        return None, path

    def ports(self) -> dict[str, int]:
        """Named ports of Ray's container."""
        found = {}
        for _, port in pairs(self.container.get("ports")):
            number = whole(port.get("containerPort"))
            if number is not None:
                found[str(port.get("name", number))] = number
        return found


def groups(document: Document, cluster: Path) -> Iterator[Group]:
    """The groups of the RayCluster that stands at a path of an object."""
    head = at(document.data, *cluster, "headGroupSpec")
    if isinstance(head, dict):
        yield Group("head", (*cluster, "headGroupSpec"), head, head=True)
    for index, group in pairs(at(document.data, *cluster, "workerGroupSpecs")):
        path = (*cluster, "workerGroupSpecs", index)
        yield Group(str(group.get("groupName") or index), path, group, head=False)


def clusters(document: Document) -> Path | None:
    """Where an object of Ray's keeps its RayCluster."""
    match document.kind:
        case "RayService":
            return CLUSTER
        case "RayCluster":
            return ("spec",)
        case "RayJob" if at(document.data, "spec", "rayClusterSpec") is not None:
            return ("spec", "rayClusterSpec")
        case _:
            return None


def container_images(pod: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """Each container's image, with its place in the pod's spec."""
    for kind in ("initContainers", "containers"):
        for index, container in pairs(pod.get(kind)):
            yield (kind, index, "image"), str(container.get("image") or "")


def pod_specs(document: Document) -> Iterator[tuple[Path, Mapping[str, Any], Mapping[str, Any]]]:
    """Path, spec and labels of each pod that an object makes."""
    cluster = clusters(document)
    templates: list[Path] = []
    if cluster is not None:
        templates = [(*group.path, "template") for group in groups(document, cluster)]
    elif document.kind in ("Deployment", "StatefulSet", "DaemonSet", "Job"):
        templates = [("spec", "template")]
    elif document.kind == "CronJob":
        templates = [("spec", "jobTemplate", "spec", "template")]
    elif document.kind == "Pod":
        templates = [()]
    for path in templates:
        template = mapping(at(document.data, *path))
        labels = mapping(at(template, "metadata", "labels"))
        yield (*path, "spec"), mapping(template.get("spec")), labels


def volumes_of(pod: Mapping[str, Any], kind: str) -> dict[str, Mapping[str, Any]]:
    """A pod's volumes of one kind (`configMap`, `persistentVolumeClaim`) by the volume's name."""
    return {
        str(volume.get("name")): mapping(volume.get(kind))
        for volume in entries(pod.get("volumes"))
        if isinstance(volume, dict) and kind in volume
    }
