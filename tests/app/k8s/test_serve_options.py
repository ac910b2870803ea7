"""Serve's own options that would undo what twinpool does."""

from __future__ import annotations

import pytest

from app.k8s.rules import Rule
from tests.app.k8s.faults import DEPLOYMENTS, GONE, SERVE, Fault, findings, is_found, serve_text
from tests.app.k8s.manifests import needs_kubectl

OPTIONS = Rule.SERVE_OPTIONS
PLAIN = (*DEPLOYMENTS, 3)
AUTOSCALING = (*PLAIN, "autoscaling_config", "policy")
FAULTS = [
    Fault("one proxy", SERVE, ("proxy_location",), "HeadOnly", OPTIONS, "proxy_location", "EveryNode"),
    Fault("no proxy", SERVE, ("proxy_location",), "Disabled", OPTIONS, "proxy_location", "EveryNode"),
    Fault("own address", SERVE, ("http_options", "host"), "127.0.0.1", OPTIONS, ".host", "no other pod"),
    Fault("prefix", SERVE, ("applications", 0, "route_prefix"), "/llm", OPTIONS, "route_prefix", "below /"),
    Fault("root", SERVE, ("http_options", "root_path"), "/llm", OPTIONS, "root_path", "take it out"),
    Fault("limit", SERVE, ("http_options", "request_timeout_s"), 60, OPTIONS, "timeout_s", "L = 300"),
    Fault("capacity", SERVE, ("target_capacity",), 50, OPTIONS, "target_capacity", "take it out"),
    Fault(
        "ingress queues",
        SERVE,
        (*DEPLOYMENTS, 0, "max_ongoing_requests"),
        3000,
        OPTIONS,
        "deployments[0].max_ongoing_requests",
        "at least 3904",
    ),
    Fault("default", SERVE, (*DEPLOYMENTS, 0, "max_ongoing_requests"), GONE, OPTIONS, "_requests", "is 5"),
    Fault("pool queues", SERVE, (*PLAIN, "max_ongoing_requests"), 1, OPTIONS, "_requests", "at least 100"),
    Fault("number", SERVE, (*PLAIN, "num_replicas"), 2, OPTIONS, "[3].num_replicas", "write auto"),
    Fault("no policy", SERVE, AUTOSCALING, GONE, OPTIONS, "policy_function", "write deployments.actuator"),
    Fault(
        "wrong policy",
        SERVE,
        AUTOSCALING,
        {"policy_function": "deployments.actuator:ApplyPlan"},
        OPTIONS,
        "policy_function",
        "its own rule",
    ),
    Fault("rare", SERVE, (*PLAIN, "health_check_period_s"), 3600, OPTIONS, "period_s", "0.1 to 30"),
    Fault("busy", SERVE, (*PLAIN, "health_check_timeout_s"), 0.1, OPTIONS, "timeout_s", "1 to 120"),
    Fault(
        "packages",
        SERVE,
        (*PLAIN, "ray_actor_options", "runtime_env", "pip"),
        ["vllm"],
        OPTIONS,
        "runtime_env.pip",
        "the image has all",
    ),
    Fault(
        "a folder for all",
        SERVE,
        ("applications", 0, "runtime_env"),
        {"working_dir": "https://example.com/a.zip"},
        OPTIONS,
        "runtime_env.working_dir",
        "the image has all",
    ),
]


@needs_kubectl
@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_an_option_that_undoes_what_is_ours_is_found(fault: Fault) -> None:
    """Serve takes each of them without a word."""
    is_found(fault)


@needs_kubectl
def test_a_key_of_the_settings_that_stands_twice() -> None:
    """Of a repeated key the last one counts."""
    path = (*PLAIN, "ray_actor_options", "runtime_env", "env_vars", "TWINPOOL_POOL")
    text = serve_text(path).replace('"soft_limit": 64', '"soft_limit": 1, "soft_limit": 64')

    found = findings((SERVE, path, text))

    assert [
        (Rule.SETTINGS, "the key soft_limit stands twice, and the last one counts: keep one of them")
    ] == [(item.rule, item.message) for item in found]
