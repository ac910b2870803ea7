"""What Ray counts on a node of a group, and what a replica asks of it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from app.k8s.documents import at, mapping
from app.k8s.pods import Group
from app.k8s.quantities import quantity
from deployments.local_config import ENGINE_SLOT

ACCELERATOR_TYPE = "accelerator_type:"  # Ray's resource for the kind of an accelerator
TYPE_LABEL = "ray.io/accelerator-type"
DEFAULT_CPUS = 1.0  # of a Serve replica whose options name none
_PARAMS = {"CPU": "num-cpus", "GPU": "num-gpus", "memory": "memory"}


def offered(group: Group) -> dict[str, float]:
    """Ray's resources of one pod: what the group says, else what KubeRay reads off the container."""
    limits, requests = (mapping(at(group.container, "resources", kind)) for kind in ("limits", "requests"))
    cpus = quantity(limits.get("cpu")) or quantity(requests.get("cpu")) or 0
    found = {
        "CPU": float(math.ceil(cpus)),
        "GPU": float(group.accelerators),
        "memory": quantity(limits.get("memory")) or quantity(requests.get("memory")) or 0.0,
    }
    params = mapping(group.data.get("rayStartParams"))
    for said in (
        {name: params.get(param) for name, param in _PARAMS.items()},
        _in_params(params.get("resources")),
        mapping(group.data.get("resources")),
    ):
        found |= {name: number for name, value in said.items() if (number := _number(value)) is not None}
    return found


def slots(group: Group) -> int:
    """What one pod has for the pools: accelerators that Ray counts, or engine slots."""
    there = offered(group)
    return int(there["GPU"] or there.get(ENGINE_SLOT, 0))


def lacking(group: Group, options: Mapping[str, Any]) -> Iterator[str]:
    """What a replica's `ray_actor_options` ask for and no pod of a group has."""
    wanted, there = mapping(options.get("label_selector")), offered(group)
    for label, value in wanted.items():
        if group.labels.get(label) != value:
            yield f"{label}={value}"
    for name, number in _asked(options).items():
        if number > there.get(name, 0):
            yield f"{name} {number:g} (it has {there.get(name, 0):g})"
    kind = options.get("accelerator_type")
    if kind is not None and not _is_of(group, str(kind), there):
        yield f"accelerators of type {kind} (name it: labels {TYPE_LABEL}, or the nodeSelector)"


def _asked(options: Mapping[str, Any]) -> dict[str, float]:
    cpus = quantity(options.get("num_cpus"))
    asked = {
        "CPU": DEFAULT_CPUS if cpus is None else cpus,
        "GPU": quantity(options.get("num_gpus")) or 0.0,
        "memory": quantity(options.get("memory")) or 0.0,
    }
    for name, value in mapping(options.get("resources")).items():
        asked[str(name)] = quantity(value) or 0.0
    return asked


def _is_of(group: Group, kind: str, there: Mapping[str, float]) -> bool:
    """Whether a group says that its accelerators are of a type; Ray itself looks only when a pod starts."""
    if there.get(f"{ACCELERATOR_TYPE}{kind}") or group.labels.get(TYPE_LABEL) == kind:
        return True
    selected = mapping(group.pod.get("nodeSelector")).values()
    return any(kind.lower() in str(value).lower() for value in selected)


def _in_params(value: Any) -> Mapping[str, Any]:
    """The JSON of `rayStartParams.resources`, which a shell reads first."""
    text = str(value or "").strip().strip("'\"").replace('\\"', '"')
    try:
        return mapping(json.loads(text))
    except ValueError:
        return {}


def _number(value: Any) -> float | None:
    return quantity(value.strip()) if isinstance(value, str) else quantity(value)
