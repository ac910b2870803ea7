"""Rules about Serve's own options: each is what Serve takes, and some would undo what twinpool does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from app.k8s.documents import Document, Found, at, mapping, pairs
from app.k8s.fleet import SERVE, Deployed, Fleet
from app.k8s.mounts import mounted_policy
from app.k8s.rules import Rule
from app.k8s.serve_schema import Complaint
from app.k8s.timing_rules import LONGEST
from autoscaling.policy_file import read_policy
from autoscaling.policy_problem import Path
from autoscaling.types import Role
from deployments.config import CONTROLLER, INGRESS
from deployments.ports import is_loopback

PROXIES = "EveryNode"
HOLD = "deployments.actuator:hold"
# As `twinpool serve` sets them: a pool gets nothing but control calls through Serve.
CONTROL_CALLS = {CONTROLLER: 1000, **{role.value: 100 for role in Role}}
DEFAULT_ONGOING = 5  # of Ray Serve
HEALTH = {"health_check_period_s": (0.1, 30), "health_check_timeout_s": (1, 120)}
Said = Iterator[tuple[Path, str]]


def of_serve_options(fleet: Fleet, documents: list[Document]) -> Iterator[Found]:
    """All findings about them."""
    complaints: list[Complaint] = [(Rule.SERVE_OPTIONS, *said) for said in _http(fleet)]
    for number, application in pairs(at(fleet.serve, "applications")):
        path: Path = ("applications", number)
        if application.get("route_prefix", "/") != "/":
            words = f"is {application['route_prefix']!r}: callers and probes ask below /, so leave it at /"
            complaints.append((Rule.SERVE_OPTIONS, (*path, "route_prefix"), words))
        complaints += [(Rule.SERVE_OPTIONS, *said) for said in _runtime(path, application.get("runtime_env"))]
    for deployed in fleet.deployments:
        complaints += [(Rule.SERVE_OPTIONS, *said) for said in _deployed(fleet, deployed, documents)]
    for rule, inner, message in complaints:
        yield Found(rule, fleet.document, SERVE, message, inner)


def _http(fleet: Fleet) -> Said:
    config = mapping(fleet.serve)
    proxies, options = config.get("proxy_location", PROXIES), mapping(config.get("http_options"))
    if proxies != PROXIES:
        words = f"is {proxies!r}: callers reach the fronts of the worker nodes, so it has to be {PROXIES}"
        yield ("proxy_location",), words
    if config.get("target_capacity") is not None:
        yield ("target_capacity",), "scales every deployment behind the policy's back: take it out"
    host = options.get("host")
    if isinstance(host, str) and is_loopback(host):
        words = f"is {host}: no other pod reaches it; leave it out, or 0.0.0.0"
        yield ("http_options", "host"), words
    if options.get("root_path"):
        words = f"is {options['root_path']!r}: callers and probes ask below /, so take it out"
        yield ("http_options", "root_path"), words
    limit, longest = options.get("request_timeout_s"), fleet.annotation(LONGEST)
    if (
        isinstance(limit, int | float)
        and longest is not None
        and longest.isdecimal()
        and limit < int(longest)
    ):
        words = f"is {limit}: it cuts every longer stream; leave it out, or at least L = {longest}"
        yield ("http_options", "request_timeout_s"), words


def _deployed(fleet: Fleet, deployed: Deployed, documents: list[Document]) -> Said:
    yield from _runtime((*deployed.path, "ray_actor_options"), deployed.options.get("runtime_env"))
    least = _in_flight(fleet, documents) if deployed.name == INGRESS else CONTROL_CALLS.get(deployed.name, 0)
    ongoing = deployed.data.get("max_ongoing_requests", DEFAULT_ONGOING)
    if isinstance(ongoing, int) and ongoing < least:
        what = "what pools and queues hold together" if deployed.name == INGRESS else "its control calls"
        words = f"is {ongoing}: Serve would queue, and admission is ours; at least {least}, {what}"
        yield (*deployed.path, "max_ongoing_requests"), words
    for name, (low, high) in HEALTH.items():
        value = deployed.data.get(name)
        if isinstance(value, int | float) and not low <= value <= high:
            words = (
                f"is {value}: outside of {low:g} to {high:g}, a dead replica stays or a busy one is killed"
            )
            yield (*deployed.path, name), words
    if deployed.name in CONTROL_CALLS:
        yield from _scaled(deployed)


def _scaled(deployed: Deployed) -> Said:
    """The sizes are the policy's: Serve's own autoscaling is there and does nothing."""
    autoscaling, number = deployed.data.get("autoscaling_config"), deployed.data.get("num_replicas")
    if number not in (None, "auto"):
        words = f"is {number!r} beside autoscaling_config: the number is the policy's, so write auto"
        yield (*deployed.path, "num_replicas"), words
    function = at(autoscaling, "policy", "policy_function")
    if function != HOLD:
        words = f"is {function!r}: Serve would scale it by its own rule; write {HOLD}"
        yield (*deployed.path, "autoscaling_config", "policy", "policy_function"), words


def _in_flight(fleet: Fleet, documents: list[Document]) -> int:
    """Requests that the pools hold at the most, with those that wait."""
    held = 0
    for role in Role:
        pool = fleet.pool(role)
        if pool is not None and fleet.controller is not None:
            held += pool.hard_limit * fleet.controller.pool(role).most
    policy = mounted_policy(fleet, documents)
    seen = None if policy is None else read_policy(str(at(policy[0].data, "data", policy[1])))
    if seen is not None and seen.policy is not None:
        admission = seen.policy.spec.admission
        held += sum(tier.max_waiting for tier in (admission.interactive, admission.standard, admission.batch))
    return held


def _runtime(path: Path, runtime: Any) -> Said:
    """The image has everything: what a runtime environment adds is fetched at each start of a replica."""
    for key in mapping(runtime):
        if key != "env_vars":
            words = "would be fetched or built at each start, and the image has all: take it out"
            yield (*path, "runtime_env", str(key)), words
