"""The Serve application of `benchmarks.control_live`: the controller alone, told of a fleet."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ray import serve
from ray.serve import Application

from autoscaling.types import Role, ServeStates
from benchmarks.control_fleet import FLEET, serve_states
from benchmarks.control_policy import policy_text
from deployments.config import APP_NAME, CONTROLLER
from deployments.controller import Controller
from deployments.local_config import default_settings, serve_config
from deployments.policy_source import FixedPolicy

SIZES = dict.fromkeys(Role, FLEET // 2)


class FleetController(Controller):
    """The real one; it asks Ray Serve as ever, and is told that a thousand replicas run."""

    async def __init__(self) -> None:  # type: ignore[misc]  # Serve awaits it
        await super().__init__()
        ports = self._loop._ports

        def look() -> ServeStates:
            ports.look()
            return serve_states(SIZES, ports.now())

        self._loop._ports = replace(ports, look=look, poll=FixedPolicy(policy_text()).poll)


def build(_args: dict[str, Any]) -> Application:
    """The composition root that the config names."""
    return serve.deployment(FleetController).options(name=CONTROLLER).bind()


def config(port: int) -> dict[str, Any]:
    """The service's own Serve config without pools and ingress."""
    found = serve_config(default_settings("simulated", port=port, slots=FLEET))
    deployments = found["applications"][0]["deployments"]
    controller = [one for one in deployments if one["name"] == CONTROLLER]
    # Its statistics, the plan, would name pools that are not there.
    controller[0] = {**controller[0], "num_replicas": 1}
    controller[0].pop("autoscaling_config")
    return found | {
        "proxy_location": "Disabled",
        "applications": [
            {
                "name": APP_NAME,
                "route_prefix": None,
                "import_path": f"{__name__}:build",
                "args": {},
                "deployments": controller,
            }
        ],
    }
