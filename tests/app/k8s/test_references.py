"""Names that lead nowhere, and selectors that take nothing."""

from __future__ import annotations

import pytest

from app.k8s.rules import Rule
from tests.app.k8s.faults import (
    ACCELERATOR,
    CALLERS,
    CONTAINER,
    HEAD,
    POD,
    SERVICE,
    Fault,
    findings,
    is_found,
)
from tests.app.k8s.manifests import needs_kubectl

KEY = {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "twinpool-model", "key": "MODEL_FOLDERS"}}}
MAP = {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "twinpool-models", "key": "MODEL_FOLDER"}}}
ENV = (*ACCELERATOR, *CONTAINER, "env", "+")
REDIS = ("spec", "rayClusterConfig", "gcsFaultToleranceOptions", "redisAddress")
BUDGET, MONITOR = "PodDisruptionBudget/twinpool-service", "PodMonitor/twinpool-fleet"
NOBODY = {"matchExpressions": [{"key": "twinpool.dev/group", "operator": "In", "values": ["services"]}]}
REFERENCES = Rule.REFERENCES
FAULTS = [
    Fault(
        "a claim",
        SERVICE,
        (*CALLERS, *POD, "volumes", 2, "persistentVolumeClaim", "claimName"),
        "twinpool-stat",
        REFERENCES,
        "claimName",
        "no PersistentVolumeClaim twinpool-stat",
    ),
    Fault(
        "a priority class",
        SERVICE,
        (*HEAD, *POD, "priorityClassName"),
        "twinpool-haed",
        REFERENCES,
        "priorityClassName",
        "twinpool-head is meant?",
    ),
    Fault(
        "an account",
        "Job/twinpool-prefetch",
        ("spec", *POD, "serviceAccountName"),
        "prefetch",
        REFERENCES,
        "serviceAccountName",
        "no ServiceAccount prefetch",
    ),
    Fault("Redis", SERVICE, REDIS, "redis:6379", REFERENCES, "redisAddress", "no Service redis"),
    Fault(
        "Redis by its long name",
        SERVICE,
        REDIS,
        "redis://redis.twinpool.svc:6379",
        REFERENCES,
        "redisAddress",
        "no Service redis",
    ),
    Fault(
        "a Role of another ConfigMap",
        "Role/twinpool-policy-editor",
        ("rules", 0, "resourceNames"),
        ["twinpool-polices"],
        REFERENCES,
        "rules[0].resourceNames[0]",
        "twinpool-policy is meant?",
    ),
    Fault("a key", SERVICE, ENV, KEY, REFERENCES, "configMapKeyRef.key", "no key MODEL_FOLDERS"),
    Fault("a ConfigMap of a key", SERVICE, ENV, MAP, REFERENCES, "configMapKeyRef.name", "twinpool-models"),
    Fault(
        "a ConfigMap of an environment",
        SERVICE,
        (*HEAD, *CONTAINER, "envFrom"),
        [{"configMapRef": {"name": "extra"}}],
        REFERENCES,
        "configMapRef.name",
        "no ConfigMap extra",
    ),
    Fault(
        "a ConfigMap of a Job",
        "Job/twinpool-prefetch",
        ("spec", *POD, "volumes", 1, "configMap", "name"),
        "model",
        REFERENCES,
        "configMap.name",
        "no ConfigMap model",
    ),
    Fault("a budget of nobody", BUDGET, ("spec", "selector"), NOBODY, REFERENCES, "selector", "no pod"),
    Fault("a monitor of nobody", MONITOR, ("spec", "selector"), NOBODY, REFERENCES, "selector", "no pod"),
]


@needs_kubectl
@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_name_that_leads_nowhere_is_found(fault: Fault) -> None:
    """The object that is named is not there, or has no such key, or no pod is selected."""
    is_found(fault)


@needs_kubectl
def test_what_the_cluster_has_by_itself_is_no_finding() -> None:
    """Classes of the system, the default account, a Redis elsewhere, labels of the operator's."""
    operators = {"matchExpressions": [{"key": "ray.io/node-type", "operator": "In", "values": ["worker"]}]}
    found = findings(
        (SERVICE, (*HEAD, *POD, "priorityClassName"), "system-cluster-critical"),
        (SERVICE, (*ACCELERATOR, *POD, "serviceAccountName"), "default"),
        (SERVICE, REDIS, "rediss://cache.example.com:6380"),
        ("PodMonitor/twinpool-ray", ("spec", "selector"), operators),
    )

    assert [] == [item for item in found if item.rule is REFERENCES]
