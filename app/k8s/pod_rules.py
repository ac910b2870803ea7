"""Rules about pods: images, architecture, environment, resources."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from app.k8s.documents import Document, Found, at, mapping, pairs
from app.k8s.fleet import Fleet
from app.k8s.mounts import images
from app.k8s.pods import clusters, groups, is_accelerator, pod_specs
from app.k8s.quantities import quantity
from app.k8s.rules import Rule
from autoscaling.policy_problem import Path

DIGEST = re.compile(r".+@sha256:[0-9a-f]{64}")
ARCHITECTURE = "kubernetes.io/arch"
CLEANUP_ENV = "RAY_process_group_cleanup_enabled"
# With gcsFaultToleranceOptions and authOptions these are the operator's.
OPERATORS_ENV = {"RAY_REDIS_ADDRESS", "REDIS_PASSWORD", "RAY_AUTH_MODE", "RAY_AUTH_TOKEN"}
SMALLEST_MEMORY = 1 << 24  # 16 MiB: less is a mistyped unit


def of_images(fleet: Fleet, documents: list[Document]) -> Iterator[Found]:
    """Digests and tags of every image, one image for all of Ray's pods, and the version of Ray."""
    dev = fleet.annotation("environment") == "dev"
    for document, path, image in images(documents):
        if DIGEST.fullmatch(image):
            continue
        tag = image.rpartition("/")[2].partition(":")[2]
        if "@" in image:
            words = f"{image}: a digest is sha256: and 64 hex digits"
            yield Found(Rule.IMAGE_DIGEST, document, path, words)
        elif not dev:
            yield Found(Rule.IMAGE_DIGEST, document, path, f"{image or 'nothing'} is not named by digest")
        elif tag in ("", "latest"):
            yield Found(Rule.IMAGE_DIGEST, document, path, f"{image or 'nothing'} has no tag that stays")
    own = [(group, str(group.container.get("image"))) for group in fleet.groups]
    for group, image in own[1:]:
        if image != own[0][1]:
            words = f"is {image}; the head runs {own[0][1]}"
            yield Found(Rule.IMAGE_SAME, fleet.document, (*group.container_path, "image"), words)


def of_ray_version(fleet: Fleet, version: str) -> Iterator[Found]:
    """`rayVersion` against the Ray that is installed here, as in the image."""
    said = fleet.cluster.get("rayVersion")
    if said != version:
        path = ("spec", "rayClusterConfig", "rayVersion")
        yield Found(Rule.RAY_VERSION, fleet.document, path, f"is {said}; this twinpool has Ray {version}")


def of_pods(document: Document) -> Iterator[Found]:
    """Findings in the pods of any object."""
    for path, pod, _ in pod_specs(document):
        yield from _architecture(document, path, pod)
        for kind in ("initContainers", "containers"):
            for index, container in pairs(pod.get(kind)):
                where = (*path, kind, index)
                yield from _resources(document, where, container)


def of_ray_pods(document: Document) -> Iterator[Found]:
    """Findings in the pods of Ray's objects only."""
    cluster = clusters(document)
    for group in groups(document, cluster) if cluster is not None else ():
        value, path = group.env(CLEANUP_ENV)
        if value != "1":
            words = f'{CLEANUP_ENV} is {value or "not set"} in {group.name}: set it to "1"'
            yield Found(Rule.PROCESS_GROUPS, document, path, words)
        for index, entry in pairs(group.container.get("env")):
            if str(entry.get("name")) in OPERATORS_ENV:
                where = (*group.container_path, "env", index, "name")
                yield Found(
                    Rule.OPERATORS_ENV, document, where, f"{entry['name']} is the operator's: take it out"
                )


def of_tokens(fleet: Fleet) -> Iterator[Found]:
    """Who gets a token for the API server."""
    for group in fleet.groups:
        said, path = group.pod.get("automountServiceAccountToken"), group.pod_path
        needs = group.head and fleet.autoscaled
        if needs and said is False:
            words = "Ray's autoscaler runs in the head and needs the token: true"
            yield Found(Rule.API_TOKEN, fleet.document, (*path, "automountServiceAccountToken"), words)
        elif not needs and said is not False:
            words = f"the pods of {group.name} never talk to the API server: false"
            yield Found(Rule.API_TOKEN, fleet.document, (*path, "automountServiceAccountToken"), words)


def _architecture(document: Document, path: Path, pod: Mapping[str, Any]) -> Iterator[Found]:
    if mapping(pod.get("nodeSelector")).get(ARCHITECTURE):
        return
    required = at(pod, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    for _, term in pairs(at(required, "nodeSelectorTerms")):
        if any(said.get("key") == ARCHITECTURE for _, said in pairs(term.get("matchExpressions"))):
            return
    words = f"there is no {ARCHITECTURE}: name the architecture that the image is built for"
    yield Found(Rule.ARCHITECTURE, document, (*path, "nodeSelector"), words)


def _resources(document: Document, path: Path, container: Mapping[str, Any]) -> Iterator[Found]:
    requests, limits = (mapping(at(container, "resources", kind)) for kind in ("requests", "limits"))
    for kind, said in (("requests", requests), ("limits", limits)):
        for name, value in said.items():
            yield from _quantity(document, (*path, "resources", kind, name), name, value)
    accelerators = [name for name in {*requests, *limits} if is_accelerator(str(name))]
    for name in ("memory", *accelerators):
        least, most = (quantity(said.get(name)) for said in (requests, limits))
        if least is None or least != most:
            words = (
                f"{name}: requested {requests.get(name)}, limited to {limits.get(name)}: the same for both"
            )
            yield Found(Rule.RESOURCES, document, (*path, "resources"), words)
    if accelerators and "cpu" in limits:
        words = "a CPU limit beside an accelerator throttles the engine: take it out"
        yield Found(Rule.RESOURCES, document, (*path, "resources", "limits", "cpu"), words)
    if "cpu" not in requests:
        yield Found(Rule.RESOURCES, document, (*path, "resources", "requests"), "no CPU is requested")


def _quantity(document: Document, path: Path, name: str, value: Any) -> Iterator[Found]:
    number = quantity(value)
    if number is None:
        words = f"{value!r} is no quantity: units are m, k, M, G, T or Ki, Mi, Gi, Ti"
        yield Found(Rule.QUANTITY, document, path, words)
    elif name in ("memory", "ephemeral-storage") and number < SMALLEST_MEMORY:
        yield Found(Rule.QUANTITY, document, path, f"{value!r} is {number:g} bytes: is Mi or Gi meant?")
    elif is_accelerator(str(name)) and number != int(number):
        yield Found(Rule.QUANTITY, document, path, f"{value!r}: accelerators are whole")
    elif name == "cpu" and number > 1024:
        yield Found(Rule.QUANTITY, document, path, f"{value!r} is {number:g} cores: is m missing?")
