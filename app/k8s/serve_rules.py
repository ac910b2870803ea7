"""Rules about the Serve config of a RayService: keys, names, settings, bounds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from app.k8s import serve_schema
from app.k8s.documents import Found, Unreadable, at, mapping, pairs, read_any
from app.k8s.fleet import MODELS, SERVE, Deployed, Fleet
from app.k8s.quantities import quantity
from app.k8s.rules import Rule
from app.k8s.settings_rules import of_settings
from autoscaling.policy_problem import Path
from autoscaling.types import Role
from deployments.config import APP_NAME, CONTROLLER, INGRESS, ControllerSettings, IngressSettings
from deployments.ports import is_loopback

BUILD = "app.main:build"
APPLY = "deployments.actuator:ApplyPlan"
DEFAULT_HOST = "0.0.0.0"  # noqa: S104  # of Ray Serve, where the config names none


def of_serve(fleet: Fleet) -> Iterator[Found]:
    """All findings in one Serve config."""

    def found(rule: Rule, inner: Path, message: str) -> Found:
        return Found(rule, fleet.document, SERVE, message, inner)

    text = at(fleet.document.data, *SERVE)
    if not isinstance(text, str):
        yield found(
            Rule.SERVE_SCHEMA, (), "there is no Serve config: an overlay's settings/serve.yaml brings one"
        )
        return
    try:
        read_any(text)
    except Unreadable as error:
        yield found(Rule.SERVE_SCHEMA, (), str(error))
        return
    for rule, inner, message in serve_schema.complaints(fleet.serve):
        yield found(rule, inner, message)
    for inner, import_path in serve_schema.import_paths(fleet.serve):
        why = serve_schema.missing(import_path)
        if why is not None:
            yield found(Rule.IMPORT_PATH, inner, f"{import_path}: {why}")
    for rule, inner, message in (*_names(fleet), *_bounds(fleet), *_admin(fleet)):
        yield found(rule, inner, message)
    for deployed in fleet.deployments:
        for rule, inner, message in _initial(deployed):
            yield found(rule, inner, message)
    yield from of_settings(fleet, text)


def _names(fleet: Fleet) -> Iterator[serve_schema.Complaint]:
    applications = list(pairs(at(fleet.serve, "applications")))
    if len(applications) != 1:
        yield Rule.DEPLOYMENT_NAMES, ("applications",), f"there are {len(applications)} applications, not one"
    for number, application in applications:
        path: Path = ("applications", number)
        expected: list[tuple[tuple[str, ...], Any]] = [
            (("name",), APP_NAME),
            (("import_path",), BUILD),
            (("autoscaling_policy", "policy_function"), APPLY),
            (("autoscaling_policy", "policy_kwargs", "controller"), CONTROLLER),
            (("autoscaling_policy", "policy_kwargs", "pools"), [role.value for role in Role]),
        ]
        for place, value in expected:
            said = at(application, *place)
            if said != value:
                yield Rule.DEPLOYMENT_NAMES, (*path, *place), f"is {said!r}; the code has {value!r}"
        if application.get("args"):
            yield Rule.DEPLOYMENT_NAMES, (*path, "args"), f"must be empty: {BUILD} takes no arguments"
    known, there = set(MODELS), [found.name for found in fleet.deployments]
    for deployed in fleet.deployments:
        if deployed.name not in known:
            words = f"the code has no deployment {deployed.name!r}, only {', '.join(MODELS)}"
            yield Rule.DEPLOYMENT_NAMES, (*deployed.path, "name"), words
    for name in sorted(known - set(there)):
        yield Rule.DEPLOYMENT_NAMES, ("applications", 0, "deployments"), f"the deployment {name} is not there"
    for name in sorted({name for name in there if there.count(name) > 1}):
        yield Rule.DEPLOYMENT_NAMES, ("applications", 0, "deployments"), f"the deployment {name} stands twice"


def _initial(deployed: Deployed) -> Iterator[serve_schema.Complaint]:
    if at(deployed.data, "autoscaling_config", "initial_replicas") is not None:
        path = (*deployed.path, "autoscaling_config", "initial_replicas")
        yield (
            Rule.INITIAL_REPLICAS,
            path,
            "leave it out: the policy's `bootstrap` says where a service begins",
        )


def _bounds(fleet: Fleet) -> Iterator[serve_schema.Complaint]:
    controller = fleet.controller
    if controller is None:
        return
    path: Path = ("applications", 0, "autoscaling_policy", "policy_kwargs", "ceiling")
    ceiling = at(fleet.serve, *path)
    if ceiling != controller.ceiling:
        yield Rule.CEILING, path, f"is {ceiling}; the controller is told a ceiling of {controller.ceiling}"
    for role in Role:
        deployed, pool, world = fleet.deployment(role.value), fleet.pool(role), controller.pool(role)
        if deployed is None:
            continue
        autoscaling = mapping(deployed.data.get("autoscaling_config"))
        expected = {"min_replicas": world.floor, "max_replicas": world.most}
        for key, value in expected.items():
            if autoscaling.get(key) != value:
                words = f"is {autoscaling.get(key)}; the controller is told {value} ({CONTROLLER}: {role})"
                yield Rule.CEILING, (*deployed.path, "autoscaling_config", key), words
        if pool is not None:
            yield from _share(deployed, pool.share, world.share)
            if world.most != max(1, controller.ceiling // pool.share):
                words = (
                    f"{role}.most is {world.most}; a ceiling of {controller.ceiling} holds "
                    f"{max(1, controller.ceiling // pool.share)} replicas of {pool.share}"
                )
                yield Rule.CEILING, _controller_env(fleet), words
    yield from _begins(fleet, controller)


def _begins(fleet: Fleet, controller: ControllerSettings) -> Iterator[serve_schema.Complaint]:
    """The replicas that a service begins with, against what there may be."""
    here = _controller_env(fleet)
    for role in Role:
        world = controller.pool(role)
        if world.replicas > world.most:
            yield (
                Rule.CEILING,
                here,
                f"{role}.replicas is {world.replicas}, above {role}.most of {world.most}",
            )
    taken = sum(controller.pool(role).replicas * controller.pool(role).share for role in Role)
    if taken > controller.ceiling:
        words = f"the replicas of both pools take {taken} together, the ceiling is {controller.ceiling}"
        yield Rule.CEILING, here, f"{words}: begin with fewer"


def _share(deployed: Deployed, share: int, told: int) -> Iterator[serve_schema.Complaint]:
    if share != told:
        words = f"a replica takes {share}, and the controller is told {told} ({deployed.name}.share)"
        yield Rule.CEILING, (*deployed.env_path, MODELS[deployed.name][0]), words
    resources = mapping(deployed.options.get("resources"))
    asked = deployed.options.get("num_gpus") or sum(quantity(value) or 0 for value in resources.values())
    if asked != share:
        words = f"asks Ray for {asked} accelerators or engine slots; its settings say that it takes {share}"
        yield Rule.CEILING, (*deployed.path, "ray_actor_options"), words


def _controller_env(fleet: Fleet) -> Path:
    deployed = fleet.deployment(CONTROLLER)
    return () if deployed is None else (*deployed.env_path, MODELS[CONTROLLER][0])


def _admin(fleet: Fleet) -> Iterator[serve_schema.Complaint]:
    deployed = fleet.deployment(INGRESS)
    host = str(mapping(at(fleet.serve, "http_options")).get("host", DEFAULT_HOST))
    if deployed is None or not isinstance(deployed.settings, IngressSettings):
        return
    if deployed.settings.admin_writable and not is_loopback(host):
        words = f'set "admin_writable": false: the service listens on {host}'
        yield Rule.ADMIN_OPEN, (*deployed.env_path, MODELS[INGRESS][0]), words
