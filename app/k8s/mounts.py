"""Rules about volumes: what the settings name, what is mounted, and how."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from app.k8s.documents import Document, Found, mapping, pairs
from app.k8s.fleet import MODELS, SERVE, Fleet
from app.k8s.pods import Group, container_images, pod_specs, volumes_of
from app.k8s.rules import Rule
from autoscaling.policy_problem import Path
from autoscaling.types import Role
from deployments.config import CONTROLLER

_HASHED = re.compile(r"(.+)-[a-z0-9]{10}")


@dataclass(frozen=True, slots=True)
class Mount:
    """A mount of Ray's container, with the volume behind it."""

    path: Path
    folder: PurePosixPath
    data: Mapping[str, Any]
    config_map: str | None
    claim: str | None


def mounts_of(group: Group) -> list[Mount]:
    """The mounts of a group's Ray container."""
    maps, claims = (volumes_of(group.pod, kind) for kind in ("configMap", "persistentVolumeClaim"))
    found = []
    for index, mount in pairs(group.container.get("volumeMounts")):
        name = str(mount.get("name"))
        found.append(
            Mount(
                path=(*group.container_path, "volumeMounts", index),
                folder=PurePosixPath(str(mount.get("mountPath") or "/")),
                data=mount,
                config_map=str(maps[name].get("name")) if name in maps else None,
                claim=str(claims[name].get("claimName")) if name in claims else None,
            )
        )
    return found


def controller_groups(fleet: Fleet) -> list[Group]:
    """The groups that the controller may run in."""
    deployed = fleet.deployment(CONTROLLER)
    return [] if deployed is None else [group for group in fleet.workers if deployed.fits(group)]


def under(mounts: list[Mount], path: str) -> Mount | None:
    """The mount that a path lies in, the deepest one."""
    inside = [mount for mount in mounts if PurePosixPath(path).is_relative_to(mount.folder)]
    return max(inside, key=lambda mount: len(mount.folder.parts), default=None)


def mounted_policy(fleet: Fleet, documents: list[Document]) -> tuple[Document, str] | None:
    """The ConfigMap and the key that the controller reads as its policy."""
    controller = fleet.controller
    if controller is None or controller.policy is None:
        return None
    for group in controller_groups(fleet):
        mount = under(mounts_of(group), controller.policy)
        if mount is None or mount.config_map is None:
            continue
        for document in documents:
            if (document.kind, document.name) == ("ConfigMap", mount.config_map):
                keys = sorted(key for key in mapping(document.data.get("data")) if key.endswith(".yaml"))
                named = PurePosixPath(controller.policy).name
                chosen = [named] if named in keys else keys
                return (document, chosen[0]) if len(chosen) == 1 else None
    return None


def ray_config_maps(documents: list[Document]) -> set[str]:
    """Names of the ConfigMaps that pods of a RayService mount."""
    return {
        str(volume.get("name"))
        for document in documents
        if document.kind == "RayService"
        for _, pod, _ in pod_specs(document)
        for volume in volumes_of(pod, "configMap").values()
    }


def of_mounts(fleet: Fleet, documents: list[Document]) -> Iterator[Found]:
    """All findings about what is mounted."""
    yield from _sub_paths(fleet)
    yield from _config_maps(fleet, documents)
    groups = controller_groups(fleet)
    for group in groups:
        yield from _controller(fleet, group, documents)
    for role in Role:
        for group in fleet.serving(role):
            yield from _model(fleet, role, group)


def _sub_paths(fleet: Fleet) -> Iterator[Found]:
    for group in fleet.groups:
        for mount in mounts_of(group):
            if mount.config_map is not None and (mount.data.get("subPath") or mount.data.get("subPathExpr")):
                words = f"{mount.config_map} is mounted by subPath and would never change: mount the folder"
                yield Found(Rule.POLICY_SUBPATH, fleet.document, (*mount.path, "subPath"), words)


def _config_maps(fleet: Fleet, documents: list[Document]) -> Iterator[Found]:
    there = {document.name: document for document in documents if document.kind == "ConfigMap"}
    for group in fleet.groups:
        for index, volume in pairs(group.pod.get("volumes")):
            said = mapping(volume.get("configMap"))
            name = str(said.get("name"))
            if "configMap" not in volume or name in there:
                continue
            hashed = next((m[0] for m in map(_HASHED.fullmatch, there) if m and m[1] == name), None)
            path = (*group.pod_path, "volumes", index, "configMap", "name")
            if hashed is not None:
                words = f"mounts {name}, and the ConfigMap is called {hashed}: set disableNameSuffixHash"
                yield Found(Rule.POLICY_HASH, fleet.document, path, words)
            elif _HASHED.fullmatch(name) and said.get("optional") is not True:
                yield Found(Rule.POLICY_HASH, fleet.document, path, f"{name} looks like a name with a hash")
            elif said.get("optional") is not True:
                words = f"there is no ConfigMap {name}: the pods would wait for it for ever"
                yield Found(Rule.MOUNTS, fleet.document, path, words)


def _controller(fleet: Fleet, group: Group, documents: list[Document]) -> Iterator[Found]:
    controller, deployed = fleet.controller, fleet.deployment(CONTROLLER)
    if controller is None or deployed is None:
        return
    mounts = mounts_of(group)
    inner = (*deployed.env_path, MODELS[CONTROLLER][0])

    def setting(message: str) -> Found:
        return Found(Rule.MOUNTS, fleet.document, SERVE, message, inner)

    for name in ("policy", "profile"):
        value = getattr(controller, name)
        mount = None if value is None else under(mounts, value)
        if value is None and name == "policy":
            yield setting("policy is not set: the controller would make up a policy of its own")
        elif value is not None and (mount is None or mount.config_map is None):
            yield setting(f"{name} is {value}, where group {group.name} mounts no ConfigMap")
    named = [value for value in (controller.policy, controller.profile) if value is not None]
    for mount in mounts:
        if mount.config_map is not None and not any(under([mount], value) for value in named):
            words = (
                f"{mount.config_map} is mounted at {mount.folder}, and no setting of the controller names it"
            )
            yield Found(Rule.MOUNTS, fleet.document, (*mount.path, "mountPath"), words)
    if controller.policy is not None and mounted_policy(fleet, documents) is None:
        yield setting(f"policy is {controller.policy}: no ConfigMap with exactly one *.yaml is there")


def _model(fleet: Fleet, role: Role, group: Group) -> Iterator[Found]:
    pool, deployed = fleet.pool(role), fleet.deployment(role.value)
    if pool is None or deployed is None:
        return
    draft = str((pool.engine.speculative_config or {}).get("model", ""))
    for name in (pool.engine.model, draft):
        if name.startswith("/") and under(mounts_of(group), name) is None:
            words = f"engine: the model {name} is on no volume of group {group.name}"
            inner = (*deployed.env_path, MODELS[role.value][0])
            yield Found(Rule.MOUNTS, fleet.document, SERVE, words, inner)


def images(documents: list[Document]) -> Iterator[tuple[Document, Path, str]]:
    """Every image of every pod."""
    for document in documents:
        for path, pod, _ in pod_specs(document):
            for inner, image in container_images(pod):
                yield document, (*path, *inner), image
