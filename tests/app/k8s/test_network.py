"""What network policies leave shut, and ranges of ports that meet."""

from __future__ import annotations

import pytest

from app.k8s.rules import Rule
from tests.app.k8s.faults import (
    ACCELERATOR,
    CONTAINER,
    DEPLOYMENTS,
    GONE,
    SERVE,
    SERVICE,
    Fault,
    findings,
    is_found,
    serve_text,
)
from tests.app.k8s.manifests import needs_kubectl

PORTS, POLICY = Rule.PORTS, "NetworkPolicy/twinpool-"
FIRST = ("spec", "ingress", 0, "ports", 0)
PARAMS = (*ACCELERATOR, "rayStartParams")
SETTINGS = (*DEPLOYMENTS, 3, "ray_actor_options", "runtime_env", "env_vars", "TWINPOOL_POOL")
FAULTS = [
    Fault("UDP", f"{POLICY}replicas", (*FIRST, "protocol"), "UDP", PORTS, "", "21000-21999"),
    Fault("no callers", f"{POLICY}callers", (), GONE, PORTS, "spec", "of accelerator to callers"),
    Fault("no names", f"{POLICY}dns", (), GONE, PORTS, "egress", "ask for names"),
    Fault("no nodes", f"{POLICY}ray", ("spec", "egress"), [], PORTS, "egress", "reach the ports of head"),
    Fault("no Redis", f"{POLICY}head-to-redis", (), GONE, PORTS, "egress", "open TCP 6379"),
    Fault("workers", SERVICE, (*PARAMS, "max-worker-port"), "21500", PORTS, "TWINPOOL_POOL", "meets 10002"),
    Fault(
        "ingresses",
        SERVICE,
        (*ACCELERATOR, *CONTAINER, "env", 8, "value"),
        "21900",
        PORTS,
        "TWINPOOL_POOL",
        "the ports of the ingresses",
    ),
    Fault("nodes", SERVICE, (*PARAMS, "node-manager-port"), "8000", PORTS, "Params", "the port `serve`"),
]


@needs_kubectl
@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_way_that_is_shut_or_taken_is_found(fault: Fault) -> None:
    """Nothing says so in the cluster: calls just never arrive."""
    is_found(fault)


@needs_kubectl
def test_a_range_that_is_too_small_for_a_node() -> None:
    """Two replicas on a node do not share a port."""
    text = serve_text(SETTINGS).replace("[21000, 21999]", "[21000, 21000]")
    more = (*ACCELERATOR, *CONTAINER, "resources", "limits", "nvidia.com/gpu")

    found = findings((SERVE, SETTINGS, text), (SERVICE, more, "2"))

    assert any("too small for 2 replicas" in item.message for item in found if item.rule is PORTS)
