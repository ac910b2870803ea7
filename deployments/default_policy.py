"""The policy of a service that was given none, and what a policy is checked against; pure.

As text, so that it has a hash, a revision and a place in the history like any other.
"""

from __future__ import annotations

import yaml

from autoscaling.policy import API_VERSION, KIND
from autoscaling.policy_world import World
from autoscaling.types import Role
from deployments.config import ControllerSettings

NAME = "default"
# What the embedded model keeps on one core per replica under the demo's load, and as fast as one reads; a
# file of one's own states one's own.
OBJECTIVES = {
    "interactive": {"ttftSeconds": 3, "tpotSeconds": 0.15},
    "standard": {"ttftSeconds": 15, "tpotSeconds": 0.4},
}


def default_policy_text(settings: ControllerSettings) -> str:
    """Begin with the replicas that are set, keep that much assigned, and use at most what exists."""
    pools = {}
    for role in Role:
        own, other = settings.pool(role), settings.pool(role.other)
        most = max(1, (settings.ceiling - other.floor * other.share) // own.share)
        pools[role.value] = {
            "minReplicas": own.floor,
            "maxReplicas": min(own.most, max(most, own.replicas)),
            "acceleratorsPerReplica": own.share,
        }
    taken = sum(settings.pool(role).replicas * settings.pool(role).share for role in Role)
    document = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": NAME},
        "spec": {
            "budget": {"min": taken, "max": settings.ceiling},
            "objectives": OBJECTIVES,
            "bootstrap": {role.value: settings.pool(role).replicas for role in Role},
            "pools": pools,
        },
    }
    return yaml.safe_dump(document, sort_keys=False)


def world(settings: ControllerSettings) -> World:
    """What exists, before anything runs."""
    return World(
        ceiling_accelerators=settings.ceiling,
        floors={role: settings.pool(role).floor for role in Role},
        most={role: settings.pool(role).most for role in Role},
        accelerators={role: settings.pool(role).share for role in Role},
    )
