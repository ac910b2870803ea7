"""A RayService as its parts: groups of pods, deployments with their settings, and who fits where."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from app.k8s.documents import Document, Unreadable, at, mapping, pairs, read_any
from app.k8s.node_resources import lacking, slots
from app.k8s.pods import CLUSTER, Group, groups
from autoscaling.policy_problem import Path
from autoscaling.types import Role
from deployments.config import (
    CONTROLLER,
    CONTROLLER_ENV,
    INGRESS,
    INGRESS_ENV,
    POOL_ENV,
    ControllerSettings,
    IngressSettings,
    PoolSettings,
    Settings,
)

SERVE: Path = ("spec", "serveConfigV2")
MODELS: Mapping[str, tuple[str, type[Settings]]] = {
    INGRESS: (INGRESS_ENV, IngressSettings),
    CONTROLLER: (CONTROLLER_ENV, ControllerSettings),
    **{role.value: (POOL_ENV, PoolSettings) for role in Role},
}


@dataclass(frozen=True, slots=True)
class Deployed:
    """A deployment of the Serve config."""

    name: str
    path: Path  # in the Serve config
    data: Mapping[str, Any]
    settings: Settings | None  # None where there are none, or they are wrong

    @property
    def options(self) -> Mapping[str, Any]:
        """Its `ray_actor_options`."""
        return mapping(self.data.get("ray_actor_options"))

    @property
    def env_path(self) -> Path:
        """Where its environment stands."""
        return (*self.path, "ray_actor_options", "runtime_env", "env_vars")

    @property
    def env(self) -> Mapping[str, Any]:
        """Its environment."""
        return mapping(at(self.options, "runtime_env", "env_vars"))

    def fits(self, group: Group) -> bool:
        """Whether a replica can run in this group's pods."""
        return not group.head and not any(lacking(group, self.options))


@dataclass(frozen=True, slots=True)
class Fleet:
    """One RayService."""

    document: Document
    groups: tuple[Group, ...]  # the head first
    serve: Any  # the Serve config; None when it is no YAML
    deployments: tuple[Deployed, ...]

    @property
    def cluster(self) -> Mapping[str, Any]:
        """Its RayCluster."""
        return mapping(at(self.document.data, *CLUSTER))

    @property
    def workers(self) -> tuple[Group, ...]:
        """Without the head."""
        return tuple(group for group in self.groups if not group.head)

    @property
    def autoscaled(self) -> bool:
        """Whether Ray's autoscaler makes and removes pods."""
        return self.cluster.get("enableInTreeAutoscaling") is True

    def annotation(self, name: str) -> str | None:
        """An annotation of ours on the RayService."""
        value = at(self.document.data, "metadata", "annotations", f"twinpool.dev/{name}")
        return None if value is None else str(value)

    def deployment(self, name: str) -> Deployed | None:
        """One deployment by name."""
        return next((found for found in self.deployments if found.name == name), None)

    def pool(self, role: Role) -> PoolSettings | None:
        """Settings of one pool."""
        found = self.deployment(role.value)
        return found.settings if found is not None and isinstance(found.settings, PoolSettings) else None

    @property
    def controller(self) -> ControllerSettings | None:
        """The controller's settings."""
        found = self.deployment(CONTROLLER)
        settings = None if found is None else found.settings
        return settings if isinstance(settings, ControllerSettings) else None

    def serving(self, role: Role) -> tuple[Group, ...]:
        """The groups that a pool's replicas fit in."""
        found = self.deployment(role.value)
        return () if found is None else tuple(group for group in self.workers if found.fits(group))

    def slots(self, group: Group) -> int:
        """What one pod of a group has for the pools: accelerators, or engine slots."""
        return slots(group)


def fleets(documents: list[Document]) -> list[Fleet]:
    """Every RayService."""
    return [_fleet(document) for document in documents if document.kind == "RayService"]


def _fleet(document: Document) -> Fleet:
    try:
        serve = read_any(str(at(document.data, *SERVE) or ""))
    except Unreadable:
        serve = None
    return Fleet(document, tuple(groups(document, CLUSTER)), serve, tuple(_deployments(serve)))


def _deployments(serve: Any) -> Iterator[Deployed]:
    for number, application in pairs(at(serve, "applications")):
        for index, data in pairs(application.get("deployments")):
            path: Path = ("applications", number, "deployments", index)
            name = str(data.get("name") or "")
            yield Deployed(name, path, data, _settings(name, data))


def _settings(name: str, data: Mapping[str, Any]) -> Settings | None:
    if name not in MODELS:
        return None
    env, model = MODELS[name]
    text = at(data, "ray_actor_options", "runtime_env", "env_vars", env)
    try:
        return model.model_validate_json(text) if isinstance(text, str) else None
    except ValidationError:
        return None
