"""Which kinds can be told to be mistyped: those of groups that are known here."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

# Groups of Kubernetes itself, beside those without a dot, which no CustomResourceDefinition may take.
_BUILT_IN = frozenset(
    f"{name}.k8s.io"
    for name in (
        "admissionregistration",
        "apiextensions",
        "apiregistration",
        "authentication",
        "authorization",
        "certificates",
        "coordination",
        "discovery",
        "events",
        "flowcontrol.apiserver",
        "internal.apiserver",
        "networking",
        "node",
        "rbac.authorization",
        "resource",
        "scheduling",
        "storage",
        "storagemigration",
    )
)
# Every kind of other groups whose objects stand beside a service of ours.
_OTHERS = {
    "ray.io": ("RayCluster", "RayCronJob", "RayJob", "RayService"),
    "monitoring.coreos.com": (
        "Alertmanager",
        "AlertmanagerConfig",
        "PodMonitor",
        "Probe",
        "Prometheus",
        "PrometheusAgent",
        "PrometheusRule",
        "ScrapeConfig",
        "ServiceMonitor",
        "ThanosRuler",
    ),
    "gateway.networking.k8s.io": (
        "BackendTLSPolicy",
        "GRPCRoute",
        "Gateway",
        "GatewayClass",
        "HTTPRoute",
        "ListenerSet",
        "ReferenceGrant",
        "TCPRoute",
        "TLSRoute",
        "UDPRoute",
    ),
}
_ALIKE = 0.9  # of difflib: one or two letters


def group_of(version: str) -> str:
    """The group of an apiVersion; empty for the core's."""
    return version.rpartition("/")[0]


def is_built_in(group: str) -> bool:
    """Whether Kubernetes itself has this group, so that every kind in it is known."""
    return "." not in group or group in _BUILT_IN


def mistyped_kind(group: str, kind: str) -> str | None:
    """The kind that is meant by one which a foreign group does not have; None where nobody can tell."""
    known = _OTHERS.get(group, ())
    return None if kind in known else _near(kind, known)


def mistyped_group(group: str) -> str | None:
    """The known group that a foreign one differs from by a letter or two."""
    return None if group in _OTHERS else _near(group, (*_BUILT_IN, *_OTHERS))


def _near(word: str, known: Iterable[str]) -> str | None:
    found = difflib.get_close_matches(word, list(known), 1, _ALIKE)
    return found[0] if found else None
