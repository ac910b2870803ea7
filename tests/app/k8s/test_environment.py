"""Variables that stand twice, switches that are off without a word, secrets in Git."""

from __future__ import annotations

import pytest

from app.k8s.environment import is_secret
from app.k8s.rules import Rule
from tests.app.k8s.faults import (
    ACCELERATOR,
    CONTAINER,
    DEPLOYMENTS,
    GONE,
    HEAD,
    SERVE,
    SERVICE,
    Fault,
    findings,
    is_found,
)
from tests.app.k8s.manifests import needs_kubectl

ENVIRONMENT, SECRET = Rule.ENVIRONMENT, Rule.SECRET_DATA
ENV = (*HEAD, *CONTAINER, "env")
HAPROXY = 4  # its place in the environment of each group
VARIABLES = (*DEPLOYMENTS, 1, "ray_actor_options", "runtime_env", "env_vars")
LOOP = (*VARIABLES, "RAY_SERVE_RUN_USER_CODE_IN_SEPARATE_THREAD")
TWICE = {"name": "RAY_process_group_cleanup_enabled", "value": "1"}
FAULTS = [
    Fault("a name that stands twice", SERVICE, (*ENV, "+"), TWICE, ENVIRONMENT, "name", "stands twice"),
    Fault("a switch in words", SERVICE, (*ENV, HAPROXY, "value"), "true", ENVIRONMENT, "value", "'true' in"),
    Fault("one group without", SERVICE, (*ENV, HAPROXY, "value"), "0", ENVIRONMENT, "value", "all groups"),
    Fault("two loops", SERVE, LOOP, "1", ENVIRONMENT, "THREAD", "is '1'"),
    Fault("two loops by default", SERVE, LOOP, GONE, ENVIRONMENT, "THREAD", "is None"),
    Fault(
        "a token",
        SERVICE,
        (*ACCELERATOR, *CONTAINER, "env", "+"),
        {"name": "HF_TOKEN", "value": "hf_x"},
        SECRET,
        "value",
        "HF_TOKEN is written out",
    ),
    Fault(
        "a password of a Job",
        "Job/twinpool-prefetch",
        ("spec", *CONTAINER, "env", "+"),
        {"name": "PROXY_PASSWORD", "value": "x"},
        SECRET,
        "value",
        "secretKeyRef",
    ),
    Fault("a token for a pool", SERVE, (*VARIABLES, "HF_TOKEN"), "hf_x", SECRET, "HF_TOKEN", "written out"),
]


@needs_kubectl
@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_wrong_variable_is_found(fault: Fault) -> None:
    """In a container of any object, or in the Serve config."""
    is_found(fault)


@needs_kubectl
def test_of_a_repeated_name_the_last_one_counts() -> None:
    """As Kubernetes has it: the rules judge the value that the container gets."""
    found = findings((SERVICE, (*ENV, "+"), {**TWICE, "value": "0"}))

    assert {Rule.ENVIRONMENT, Rule.PROCESS_GROUPS} == {item.rule for item in found}


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("HF_TOKEN", "hf_x", True),
        ("redis_password", "x", True),
        ("HF_TOKEN", "", False),
        ("HF_TOKEN", "$(OTHER)", False),
        ("HF_TOKEN_PATH", "/run/token", False),
        ("TOKENIZERS_PARALLELISM", "false", False),
    ],
)
def test_what_is_a_secret(name: str, value: str, expected: bool) -> None:
    """By the end of the name, and with a value."""
    assert expected == is_secret(name, value)
