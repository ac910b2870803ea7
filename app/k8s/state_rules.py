"""Rules about the controller's state: a folder for each RayCluster, where all its pods can write."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from app.k8s.documents import Document, Found, at, entries, mapping, pairs
from app.k8s.fleet import MODELS, SERVE, Fleet
from app.k8s.mounts import Mount, controller_groups, mounts_of, under
from app.k8s.pods import Group, pod_specs, volumes_of
from app.k8s.quantities import quantity
from app.k8s.rules import Rule
from deployments.config import CONTROLLER

ACCESS_MODES = ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod")
SHARED = "ReadWriteMany"
CLUSTER_LABEL = "ray.io/cluster"
SMALLEST_CLAIM = 1 << 20  # a MiB: less is a mistyped unit
_VARIABLE = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_]*)\)")


def of_state(fleet: Fleet, documents: list[Document]) -> Iterator[Found]:
    """All findings about it, and about the claims of the other volumes."""
    controller, deployed = fleet.controller, fleet.deployment(CONTROLLER)
    for group in controller_groups(fleet) if controller is not None else ():
        assert controller is not None
        assert deployed is not None
        mount = None if controller.state_dir is None else under(mounts_of(group), controller.state_dir)
        inner = (*deployed.env_path, MODELS[CONTROLLER][0])
        if controller.state_dir is None:
            words = "state_dir is not set: holds, overrides and moves are lost with the pod"
            yield Found(Rule.STATE_PER_CLUSTER, fleet.document, SERVE, words, inner)
        elif mount is None or mount.claim is None:
            words = f"state_dir is {controller.state_dir}, which is on no volume claim"
            yield Found(Rule.STATE_PER_CLUSTER, fleet.document, SERVE, words, inner)
        else:
            yield from _folder(fleet, group, mount)
    for document in documents:
        if document.kind == "PersistentVolumeClaim":
            yield from _claim(document, _readers(documents, document.name))


def _folder(fleet: Fleet, group: Group, mount: Mount) -> Iterator[Found]:
    text, path = str(mount.data.get("subPathExpr") or ""), (*mount.path, "subPathExpr")
    names = _VARIABLE.findall(text)
    if not names:
        words = "two RayClusters would share the folder in an upgrade: subPathExpr with the cluster's name"
        yield Found(Rule.STATE_PER_CLUSTER, fleet.document, path, words)
    elif not any(_field(group, name) == f"metadata.labels['{CLUSTER_LABEL}']" for name in names):
        words = (
            f"is {text}: {', '.join(names)} is not the name of the RayCluster; a variable of this container "
            f"with fieldRef metadata.labels['{CLUSTER_LABEL}']"
        )
        yield Found(Rule.STATE_PER_CLUSTER, fleet.document, path, words)
    for index, volume in pairs(group.pod.get("volumes")):
        same = volume.get("name") == mount.data.get("name")
        if same and at(volume, "persistentVolumeClaim", "readOnly") is True:
            where = (*group.pod_path, "volumes", index, "persistentVolumeClaim", "readOnly")
            yield Found(Rule.STATE_PER_CLUSTER, fleet.document, where, _READ_ONLY)
    if mount.data.get("readOnly") is True:
        yield Found(Rule.STATE_PER_CLUSTER, fleet.document, (*mount.path, "readOnly"), _READ_ONLY)


_READ_ONLY = "the controller writes here: holds, overrides and moves would be lost; take it out"


def _field(group: Group, name: str) -> str | None:
    """The field of the pod that a variable of Ray's container holds, in one way of writing it."""
    for _, entry in reversed(list(pairs(group.container.get("env")))):
        if entry.get("name") == name:
            return str(at(entry, "valueFrom", "fieldRef", "fieldPath")).replace('"', "'")
    return None


def _readers(documents: list[Document], claim: str) -> int:
    """Pods that mount a claim, the most that there may be."""
    found = 0
    for document in documents:
        for path, pod, _ in pod_specs(document):
            claims = volumes_of(pod, "persistentVolumeClaim").values()
            if any(mounted.get("claimName") == claim for mounted in claims):
                most = at(document.data, *path[:-2], "maxReplicas") if document.kind == "RayService" else None
                found += most if isinstance(most, int) else 1
    return found


def _claim(document: Document, pods: int) -> Iterator[Found]:
    modes, path = entries(at(document.data, "spec", "accessModes")), ("spec", "accessModes")
    unknown = [str(mode) for mode in modes if mode not in ACCESS_MODES]
    if unknown or not modes:
        words = f"is {', '.join(unknown) or 'empty'}: one of {', '.join(ACCESS_MODES)}"
        yield Found(Rule.STATE_PER_CLUSTER, document, path, words)
    elif pods > 1 and SHARED not in modes:
        words = f"is {', '.join(modes)}, and up to {pods} pods mount it: on other nodes they need {SHARED}"
        yield Found(Rule.STATE_PER_CLUSTER, document, path, words)
    size: Any = mapping(at(document.data, "spec", "resources", "requests")).get("storage")
    where = ("spec", "resources", "requests", "storage")
    number = quantity(size)
    if number is None:
        words = f"{size!r} is no quantity: units are k, M, G, T or Ki, Mi, Gi, Ti"
        yield Found(Rule.QUANTITY, document, where, words)
    elif number < SMALLEST_CLAIM:
        yield Found(Rule.QUANTITY, document, where, f"{size!r} is {number:g} bytes: is Mi or Gi meant?")
