"""/v1/models from what the replicas say they serve; no replica is asked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from autoscaling.types import ReplicaView

# OpenAI requires `created`; the release of the first version stands for "not known".
CREATED = 1764547200


def model_cards(replicas: Iterable[ReplicaView]) -> list[dict[str, Any]]:
    """One card per served name, aliases included; `max_model_len` is the widest any replica takes."""
    widest: dict[str, int] = {}
    root: dict[str, str] = {}
    for replica in replicas:
        names = replica.capabilities.models
        for name in names:
            widest[name] = max(widest.get(name, 0), replica.capabilities.max_model_len)
            root.setdefault(name, names[0])
    return [
        {
            "id": name,
            "object": "model",
            "created": CREATED,
            "owned_by": "twinpool",
            "root": root[name],
            "parent": None,
            "max_model_len": length,
        }
        for name, length in widest.items()
    ]
