"""Rules about variables of the environment: repeated names, switches that Ray reads as off, secrets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from app.k8s.documents import Document, Found, mapping, pairs
from app.k8s.fleet import SERVE, Fleet
from app.k8s.pods import pod_specs
from app.k8s.rules import Rule
from app.k8s.timing_rules import HAPROXY_ENV
from autoscaling.policy_problem import Path
from deployments.config import CONTROLLER
from deployments.local_config import ONE_LOOP

_SECRET = re.compile(
    r"(^|_)(TOKEN|PASSWORD|PASSWD|SECRET|SECRET_KEY|ACCESS_KEY|API_KEY|CREDENTIALS)$", re.IGNORECASE
)
_REFERENCE = re.compile(r"\$\([A-Za-z_][A-Za-z0-9_]*\)")  # of another variable


def of_variables(document: Document) -> Iterator[Found]:
    """Findings about the environments of the containers of any object."""
    for path, pod, _ in pod_specs(document):
        for kind in ("initContainers", "containers"):
            for index, container in pairs(pod.get(kind)):
                yield from _container(document, (*path, kind, index, "env"), container.get("env"))


def _container(document: Document, path: Path, env: Any) -> Iterator[Found]:
    seen: set[str] = set()
    for index, entry in pairs(env):
        name, value = str(entry.get("name")), entry.get("value")
        if name in seen:
            words = f"{name} stands twice, and the last one counts: keep one of them"
            yield Found(Rule.ENVIRONMENT, document, (*path, index, "name"), words)
        seen.add(name)
        if is_secret(name, value):
            words = f"{name} is written out: keep it in a Secret and name that (valueFrom.secretKeyRef)"
            yield Found(Rule.SECRET_DATA, document, (*path, index, "value"), words)


def is_secret(name: str, value: Any) -> bool:
    """Whether a variable's value is a secret that stands there for all to read."""
    if not _SECRET.search(name) or value in (None, ""):
        return False
    return _REFERENCE.fullmatch(str(value)) is None


def of_switches(fleet: Fleet) -> Iterator[Found]:
    """Findings about variables that Ray and Serve read, in the groups and in the Serve config."""
    said = {group.name: group.env(HAPROXY_ENV) for group in fleet.groups}
    on = [name for name, (value, _) in said.items() if value == "1"]
    for name, (value, path) in said.items():
        if value not in (None, "0", "1"):
            words = f'{HAPROXY_ENV} is {value!r} in {name}: Ray takes "1" for on, and anything else for off'
            yield Found(Rule.ENVIRONMENT, fleet.document, path, words)
        elif on and value != "1":
            words = (
                f"{HAPROXY_ENV} is {value or 'not set'} in {name} and on in {on[0]}: the same in all groups"
            )
            yield Found(Rule.ENVIRONMENT, fleet.document, path, words)
    for deployed in fleet.deployments:
        for name, value in deployed.env.items():
            if is_secret(str(name), value):
                words = f"{name} is written out: give it to the group's container (valueFrom.secretKeyRef)"
                yield Found(Rule.SECRET_DATA, fleet.document, SERVE, words, (*deployed.env_path, str(name)))
    controller = fleet.deployment(CONTROLLER)
    for name, value in ONE_LOOP.items() if controller is not None else ():
        assert controller is not None
        if controller.env.get(name) != value:
            words = f'is {controller.env.get(name)!r}: "{value}", or each call waits for a second thread'
            yield Found(Rule.ENVIRONMENT, fleet.document, SERVE, words, (*controller.env_path, name))
    for number, application in pairs(mapping(fleet.serve).get("applications")):
        env = mapping(mapping(application.get("runtime_env")).get("env_vars"))
        for name, value in env.items():
            if is_secret(str(name), value):
                inner = ("applications", number, "runtime_env", "env_vars", str(name))
                words = f"{name} is written out: give it to the group's container (valueFrom.secretKeyRef)"
                yield Found(Rule.SECRET_DATA, fleet.document, SERVE, words, inner)
