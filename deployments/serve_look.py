"""Ray Serve's own picture of the pools, reduced to what a decision needs."""

from __future__ import annotations

from typing import Any

from autoscaling.types import RUNNING_STATES, Role, ServePool, ServeStates
from deployments.config import APP_NAME


def serve_states(details: dict[str, Any], at: float) -> ServeStates | None:
    """Both pools from Serve's details; None while the application or a pool is not there."""
    application = details.get("applications", {}).get(APP_NAME)
    deployments = {} if application is None else application.get("deployments", {})
    pools = {role: deployments.get(role.value) for role in Role}
    if any(found is None for found in pools.values()):
        return None
    return ServeStates(at, {role: _pool(found) for role, found in pools.items() if found is not None})


def _pool(found: dict[str, Any]) -> ServePool:
    states: dict[str, int] = {}
    running = set()
    for replica in found.get("replicas", ()):
        state = str(getattr(replica["state"], "value", replica["state"]))
        states[state] = states.get(state, 0) + 1
        if state in RUNNING_STATES:
            running.add(replica["replica_id"])
    return ServePool(int(found["target_num_replicas"]), states, frozenset(running))
