"""`build(args)`: the composition root of the Serve application."""

from __future__ import annotations

from typing import Any

from ray import serve
from ray.serve import Application

from app.ingress import Ingress
from autoscaling.types import Role
from deployments.config import CONTROLLER, INGRESS
from deployments.controller import Controller
from deployments.replica import Replica


def build(args: dict[str, Any]) -> Application:
    """The application: controller, two pools, ingress.

    Sizes and limits come from the Serve config, settings from each deployment's environment.  `args`
    must be empty: a change of them would restart every replica of both pools.  Raises ValueError.
    """
    if args:
        raise ValueError(
            f"application args {sorted(args)} are not used: set them in the deployments' env_vars"
        )
    controller = serve.deployment(Controller).options(name=CONTROLLER).bind()
    pools = [serve.deployment(Replica).options(name=role.value).bind(controller) for role in Role]
    ingress = serve.deployment(Ingress).options(name=INGRESS)
    return ingress.bind(controller, *pools)
