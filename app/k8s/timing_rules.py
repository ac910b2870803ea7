"""Rules about times that must nest, from L, the longest generation, and D, the delay of a move."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

from app.k8s.documents import Document, Found, at, mapping
from app.k8s.fleet import MODELS, SERVE, Deployed, Fleet
from app.k8s.quantities import whole
from app.k8s.rules import Rule
from autoscaling.policy_problem import Path
from autoscaling.types import Role
from deployments.config import INGRESS, IngressSettings, PoolSettings
from deployments.local_cluster import HAPROXY_MARGIN_S
from deployments.local_config import INGRESS_EXTRA_S, STOP_MARGIN_S

LONGEST = "longest-generation-seconds"
DELAY = "move-delay-seconds"
DRAIN_ENV = "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S"
HARD_STOP_ENV = "RAY_SERVE_HAPROXY_HARD_STOP_AFTER_S"
HAPROXY_ENV = "RAY_SERVE_ENABLE_HA_PROXY"
MARGIN_S = 30  # of Ray's drain, and of the pod's grace above it
DEFAULT_HARD_STOP_S = 120
DEFAULT_GRACE_S = 30
DEFAULT_DELETION_S = 60
_STOPPED = (INGRESS, *(role.value for role in Role))


def of_timings(fleet: Fleet, documents: list[Document]) -> Iterator[Found]:
    """All findings about times."""
    longest, delay = (whole(fleet.annotation(name)) for name in (LONGEST, DELAY))
    for name, value, example in ((LONGEST, longest, 900), (DELAY, delay, 120)):
        if value is None:
            path: Path = ("metadata", "annotations", f"twinpool.dev/{name}")
            said = fleet.annotation(name)
            words = f"is {'not set' if said is None else repr(said)}: write seconds, such as {example}"
            yield Found(Rule.TIMINGS, fleet.document, path, words)
    if longest is None or delay is None:
        return
    for deployed in fleet.deployments:
        yield from _serve(fleet, deployed, longest)
    yield from _pods(fleet, longest, delay)
    yield from _profile(fleet, documents, delay)


def _serve(fleet: Fleet, deployed: Deployed, longest: int) -> Iterator[Found]:
    match deployed.settings:
        case PoolSettings() as settings:
            margin = STOP_MARGIN_S
        case IngressSettings() as settings:
            margin = INGRESS_EXTRA_S
        case _:
            return
    if settings.longest_generation_s != longest:
        words = f"longest_generation_s is {settings.longest_generation_s:g}, L is {longest}"
        inner = (*deployed.env_path, MODELS[deployed.name][0])
        yield Found(Rule.TIMINGS, fleet.document, SERVE, words, inner)
    inner = (*deployed.path, "graceful_shutdown_timeout_s")
    said = deployed.data.get("graceful_shutdown_timeout_s")
    if not isinstance(said, int | float) or said < longest + margin:
        words = (
            f"is {said}: Serve would end open streams by force before L + {margin:g} = {longest + margin:g}"
        )
        yield Found(Rule.TIMINGS, fleet.document, SERVE, words, inner)


def _pods(fleet: Fleet, longest: int, delay: int) -> Iterator[Found]:
    """The whole chain from L and D at once: what is too short is judged by what has to be before it."""
    shutdown = max((_shutdown(fleet, name, longest) for name in _STOPPED), default=0.0)
    drains = math.ceil(max(longest + delay + MARGIN_S, shutdown))
    longest_grace, longest_group = 0, ""
    for group in fleet.groups:
        text, path = group.env(DRAIN_ENV)
        drain = whole(text)
        if drain is None or drain < drains:
            words = (
                f"{DRAIN_ENV} is {_said(text)}: at least L + D + {MARGIN_S} = {longest + delay + MARGIN_S}, "
                f"and Serve's longest shutdown, {shutdown:g}"
            )
            yield Found(Rule.TIMINGS, fleet.document, path, words)
        graces = max(drains, drain or 0) + MARGIN_S
        grace = whole(group.pod.get("terminationGracePeriodSeconds"))
        if (grace if grace is not None else DEFAULT_GRACE_S) < graces:
            words = f"is {_said(grace)}: at least Ray's drain + {MARGIN_S} = {graces}"
            yield Found(
                Rule.TIMINGS, fleet.document, (*group.pod_path, "terminationGracePeriodSeconds"), words
            )
        if max(graces, grace or 0) > longest_grace:
            longest_grace, longest_group = max(graces, grace or 0), group.name
        if group.env(HAPROXY_ENV)[0] == "1":
            text, path = group.env(HARD_STOP_ENV)
            stop = whole(text)
            least = int(longest + HAPROXY_MARGIN_S)
            if (stop if stop is not None else DEFAULT_HARD_STOP_S) < least:
                words = f"{HARD_STOP_ENV} is {_said(text)}: at least L + {HAPROXY_MARGIN_S:g} = {least}"
                yield Found(Rule.TIMINGS, fleet.document, path, words)
    deletion = whole(at(fleet.document.data, "spec", "rayClusterDeletionDelaySeconds"))
    if (deletion if deletion is not None else DEFAULT_DELETION_S) < longest_grace:
        words = f"is {_said(deletion)}: at least the pods' grace of {longest_grace} ({longest_group})"
        yield Found(Rule.TIMINGS, fleet.document, ("spec", "rayClusterDeletionDelaySeconds"), words)


def _said(value: Any) -> Any:
    return "not set" if value is None else value


def _shutdown(fleet: Fleet, name: str, longest: int) -> float:
    """How long Serve waits for a deployment, and has to."""
    deployed = fleet.deployment(name)
    if deployed is None:
        return 0.0
    said: Any = deployed.data.get("graceful_shutdown_timeout_s")
    margin = INGRESS_EXTRA_S if name == INGRESS else STOP_MARGIN_S
    return max(longest + margin, float(said) if isinstance(said, int | float) else 0.0)


def _profile(fleet: Fleet, documents: list[Document], delay: int) -> Iterator[Found]:
    """D against what a profile among the ConfigMaps has measured; a move is a stop and a start."""
    for document in documents:
        if document.kind != "ConfigMap" or document.name != "twinpool-profile":
            continue
        for text in mapping(document.data.get("data")).values():
            try:
                moved = mapping(mapping(json.loads(str(text))).get("moveSeconds"))
            except ValueError:
                continue
            seconds = sum(value for value in moved.values() if isinstance(value, int | float))
            if seconds > delay:
                path: Path = ("metadata", "annotations", f"twinpool.dev/{DELAY}")
                words = f"is {delay}; the profile has measured {seconds:g} s for a stop and a start"
                yield Found(Rule.TIMINGS, fleet.document, path, words)
