"""Policy texts for services under test."""

from __future__ import annotations

from typing import Any

import yaml


def policy(
    speculative: int = 1, plain: int = 1, *, most: int | None = None, name: str = "test", **spec: Any
) -> str:
    """A policy that begins with these sizes; `most` accelerators, what the sizes take without.

    `spec` goes over the parts of the same name; a part is replaced, `pools` are joined.
    """
    total = speculative + plain if most is None else most
    pools = {
        role: {"maxReplicas": max(1, total - 1)} | spec.get("pools", {}).get(role, {})
        for role in ("speculative", "plain")
    }
    found: dict[str, Any] = {
        "budget": {"max": total},
        "bootstrap": {"speculative": speculative, "plain": plain},
    }
    return yaml.safe_dump(
        {
            "apiVersion": "twinpool.dev/v1alpha1",
            "kind": "CapacityPolicy",
            "metadata": {"name": name},
            "spec": found | spec | {"pools": pools},
        },
        sort_keys=False,
    )


def steady(settings: dict[str, Any]) -> str:
    """The replicas of the settings, and no move but by an operator's override."""
    sizes = {role: settings.get(role, {}).get("replicas", 1) for role in ("speculative", "plain")}
    never = "Disabled"
    return policy(
        **sizes,
        name="steady",
        budget={"min": 1, "max": sum(sizes.values())},
        behavior={way: {"selectPolicy": never} for way in ("scaleUp", "scaleDown")},
    )
