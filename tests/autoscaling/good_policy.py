"""A whole valid policy, and changes of it by path."""

from __future__ import annotations

import copy
import json
from typing import Any

from autoscaling.policy import CapacityPolicy

TREE: dict[str, Any] = {
    "apiVersion": "twinpool.dev/v1alpha1",
    "kind": "CapacityPolicy",
    "metadata": {"name": "good"},
    "spec": {
        "budget": {"max": 8},
        "pools": {
            "speculative": {"minReplicas": 1, "maxReplicas": 6},
            "plain": {"minReplicas": 2, "maxReplicas": 7},
        },
    },
}
# What an entry of a list has beside the field that a test puts into it.
ENTRIES: dict[str, dict[str, Any]] = {
    "schedules": {
        "name": "day",
        "timeZone": "Europe/Berlin",
        "days": ["Mon"],
        "start": "08:00",
        "end": "19:00",
        "pools": {},
    },
    "overrides": {
        "name": "launch",
        "pool": "plain",
        "until": "2027-03-01T12:00:00Z",
        "reason": "launch day",
    },
    "policies": {"type": "Replicas", "value": 1, "periodSeconds": 60},
}


def policy(changes: dict[str, Any] | None = None) -> CapacityPolicy:
    """The good policy with `changes`: values by path, `[]` for the first entry of a list."""
    tree = copy.deepcopy(TREE)
    for path, value in (changes or {}).items():
        put(tree, path, value)
    return CapacityPolicy.model_validate_json(json.dumps(tree))


def put(tree: dict[str, Any], path: str, value: Any) -> None:
    """Set one value; what leads to it is made."""
    *way, last = path.split(".")
    here = tree
    for part in way:
        name = part.removesuffix("[]")
        if part == name:
            here = here.setdefault(name, {"speculative": 1, "plain": 2} if name == "bootstrap" else {})
        else:
            here = here.setdefault(name, [copy.deepcopy(ENTRIES[name])])[0]
    here[last] = value


def schedule(name: str, **values: Any) -> dict[str, Any]:
    """An entry of `spec.schedules` that holds always, in UTC, unless told otherwise."""
    days = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
    always = {"timeZone": "UTC", "days": days, "start": "00:00", "end": "00:00", "pools": {}}
    return {"name": name} | always | values


def override(name: str, pool: str, **values: Any) -> dict[str, Any]:
    """An entry of `spec.overrides` that lasts until the spring of 2027."""
    return {"name": name, "pool": pool} | values | {"until": "2027-03-01T12:00:00Z", "reason": "a test"}
