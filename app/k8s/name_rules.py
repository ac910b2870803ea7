"""Rules about names of Ray's objects, and about fields of theirs that KubeRay ignores or refuses."""

from __future__ import annotations

import re
from collections.abc import Iterator

from app.k8s.documents import Found, at
from app.k8s.fleet import Fleet
from app.k8s.pods import CLUSTER
from app.k8s.rules import Rule

LONGEST_NAME = 47  # characters of a RayService's name; the operator adds to it
_DNS = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_GATED = ("networkPolicy", "tlsOptions", "historyServerOptions")
_IGNORED = ("serviceUnhealthySecondThreshold", "deploymentUnhealthySecondThreshold")


def of_names(fleet: Fleet) -> Iterator[Found]:
    """All findings about names, and about fields that count for nothing."""
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
