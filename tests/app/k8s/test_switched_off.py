"""Sizes that are switched off, or that nothing else sees; quotas, secrets and numbers of another script."""

from __future__ import annotations

import pytest

from app.k8s.quantities import quantity, whole
from app.k8s.rules import Rule
from tests.app.k8s.faults import ACCELERATOR, CONTAINER, GONE, HEAD, SERVICE, Fault, findings, is_found
from tests.app.k8s.manifests import needs_kubectl

SIZE, CLUSTER = Rule.GROUP_SIZE, ("spec", "rayClusterConfig")
PASSWORD = (*CLUSTER, "gcsFaultToleranceOptions", "redisPassword")
AUTH = (*CLUSTER, "authOptions")
FIELDS = Rule.RAY_FIELDS
KEY = "redisPassword.valueFrom.secretKeyRef"
FAULTS = [
    Fault("no service", SERVICE, ("spec", "suspend"), True, SIZE, "spec.suspend", "take it out"),
    Fault("no cluster", SERVICE, (*CLUSTER, "suspend"), True, SIZE, "Config.suspend", "take it out"),
    Fault("no group", SERVICE, (*ACCELERATOR, "suspend"), True, SIZE, "[0].suspend", "no pods"),
    Fault("two hosts", SERVICE, (*ACCELERATOR, "numOfHosts"), 2, SIZE, "[0].numOfHosts", "is 2"),
    Fault("no pods", SERVICE, (*ACCELERATOR, "maxReplicas"), 0, SIZE, "[0].maxReplicas", "at least 1"),
    Fault("fewer", SERVICE, (*ACCELERATOR, "replicas"), -1, SIZE, "[0].replicas", "is -1"),
    Fault(
        "above the limit",
        SERVICE,
        (*HEAD, *CONTAINER, "resources", "requests", "ephemeral-storage"),
        "30Gi",
        Rule.RESOURCES,
        "requests.ephemeral-storage",
        "above the limit of 20Gi",
    ),
    Fault(
        "accelerators of the head",
        SERVICE,
        (*HEAD, "rayStartParams", "num-gpus"),
        "1",
        Rule.HEAD_IDLE,
        "rayStartParams.num-gpus",
        "replicas on the head",
    ),
    Fault(
        "a stricter quota",
        "",
        (),
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "second", "namespace": "twinpool"},
            "spec": {"hard": {"limits.nvidia.com/gpu": "8"}},
        },
        Rule.UPGRADE_DEMAND,
        "limits.nvidia.com/gpu",
        "the quota is 8",
    ),
    Fault("no source", SERVICE, PASSWORD, {"value": "x"}, FIELDS, "redisPassword.value", "no such field"),
    Fault("no key", SERVICE, (*PASSWORD, "valueFrom", "secretKeyRef", "key"), GONE, FIELDS, f"{KEY}.key", ""),
    Fault(
        "a letter", SERVICE, (*PASSWORD, "valueFrom"), {"secretKeyRf": {}}, FIELDS, "secretKeyRf", "no such"
    ),
    Fault("a mode", SERVICE, (*AUTH, "mode"), "tokens", FIELDS, "authOptions.mode", "'token' or 'disabled'"),
    Fault("no secret", SERVICE, (*AUTH, "secretName"), GONE, FIELDS, "authOptions", "say in secretName"),
]


@needs_kubectl
@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_wrong_size_or_secret_is_found(fault: Fault) -> None:
    """What would leave a group without pods, or a pod that is never made."""
    is_found(fault)


@needs_kubectl
def test_a_group_that_the_autoscaler_may_empty_is_no_such_finding() -> None:
    """Its minimum may be 0 there."""
    found = findings(
        (SERVICE, (*CLUSTER, "enableInTreeAutoscaling"), True), (SERVICE, (*ACCELERATOR, "minReplicas"), 0)
    )

    assert [] == [item for item in found if item.rule is SIZE]


@pytest.mark.parametrize("text", ["\u0663", "\u0663Gi"])
def test_digits_of_another_script_are_no_number(text: str) -> None:
    """Kubernetes and Ray take ASCII only."""
    assert (None, None) == (whole(text), quantity(text))
