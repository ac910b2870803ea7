"""What a replica asks of a node, against what Ray counts there."""

from __future__ import annotations

import pytest

from app.k8s.rules import Rule
from tests.app.k8s.faults import ACCELERATOR, DEPLOYMENTS, GONE, SERVE, SERVICE, Fault, findings, is_found
from tests.app.k8s.manifests import needs_kubectl

PLAIN = (*DEPLOYMENTS, 3, "ray_actor_options")
FIELD = "applications[0].deployments[3].ray_actor_options"
FAULTS = [
    Fault("CPUs", SERVE, (*PLAIN, "num_cpus"), 4, Rule.PLACEMENT, FIELD, "CPU 4 (it has 0)"),
    Fault("default CPUs", SERVE, (*PLAIN, "num_cpus"), GONE, Rule.PLACEMENT, FIELD, "CPU 1 (it has 0)"),
    Fault("memory", SERVE, (*PLAIN, "memory"), 999999999999999, Rule.PLACEMENT, FIELD, "memory 1e+15"),
    Fault("a resource", SERVE, (*PLAIN, "resources"), {"ssd": 1}, Rule.PLACEMENT, FIELD, "ssd 1 (it has 0)"),
    Fault("a type", SERVE, (*PLAIN, "accelerator_type"), "H100", Rule.PLACEMENT, FIELD, "of type H100"),
    Fault(
        "accelerators that Ray is told not to count",
        SERVICE,
        (*ACCELERATOR, "rayStartParams", "num-gpus"),
        "0",
        Rule.PLACEMENT,
        FIELD,
        "GPU 1 (it has 0)",
    ),
    Fault(
        "accelerators that the group takes back",
        SERVICE,
        (*ACCELERATOR, "resources"),
        {"GPU": "0"},
        Rule.PLACEMENT,
        FIELD,
        "GPU 1 (it has 0)",
    ),
]


@needs_kubectl
@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_what_no_group_has_is_found(fault: Fault) -> None:
    """A replica that fits nowhere would be pending for ever."""
    is_found(fault)


@needs_kubectl
@pytest.mark.parametrize(
    "changes",
    [
        [(SERVE, (*PLAIN, "num_cpus"), 4), (SERVICE, (*ACCELERATOR, "rayStartParams", "num-cpus"), "8")],
        [(SERVE, (*PLAIN, "num_cpus"), 8), (SERVICE, (*ACCELERATOR, "rayStartParams", "num-cpus"), GONE)],
        [(SERVE, (*PLAIN, "resources"), {"ssd": 1}), (SERVICE, (*ACCELERATOR, "resources"), {"ssd": "1"})],
        [
            (SERVE, (*PLAIN, "accelerator_type"), "H100"),
            (SERVICE, (*ACCELERATOR, "labels", "ray.io/accelerator-type"), "H100"),
        ],
    ],
    ids=["num-cpus", "the container's request", "a resource of the group", "the type as a label"],
)
def test_what_a_group_has_is_no_finding(changes: list[tuple[str, tuple[str | int, ...], object]]) -> None:
    """The group says it, or the container does."""
    assert [] == [item for item in findings(*changes) if item.rule is Rule.PLACEMENT]
