"""Rights that a pod, one of its containers, or the namespace gives."""

from __future__ import annotations

import pytest

from app.k8s.rules import Rule
from tests.app.k8s.faults import ACCELERATOR, CONTAINER, HEAD, POD, SERVICE, Fault, findings, is_found
from tests.app.k8s.manifests import needs_kubectl

OWN = (*HEAD, *CONTAINER, "securityContext")
BEFORE = (*ACCELERATOR, *POD, "initContainers", 0, "securityContext")
ENFORCE = ("metadata", "labels", "pod-security.kubernetes.io/enforce")
SECURITY = Rule.SECURITY
FAULTS = [
    Fault("root", SERVICE, (*OWN, "runAsUser"), 0, SECURITY, "runAsUser", "which is root"),
    Fault("root before", SERVICE, (*BEFORE, "runAsUser"), 0, SECURITY, "runAsUser", "which is root"),
    Fault("may be root", SERVICE, (*OWN, "runAsNonRoot"), False, SECURITY, "runAsNonRoot", "overrules"),
    Fault(
        "every call",
        SERVICE,
        (*OWN, "seccompProfile"),
        {"type": "Unconfined"},
        SECURITY,
        "seccompProfile.type",
        "'Unconfined'",
    ),
    Fault("more", SERVICE, (*OWN, "capabilities", "add"), ["SYS_ADMIN"], SECURITY, ".add", "SYS_ADMIN"),
    Fault("the node's network", SERVICE, (*HEAD, *POD, "hostNetwork"), True, SECURITY, "hostNetwork", "node"),
    Fault("the node's processes", SERVICE, (*HEAD, *POD, "hostPID"), True, SECURITY, "hostPID", "node"),
    Fault("the node's memory", SERVICE, (*HEAD, *POD, "hostIPC"), True, SECURITY, "hostIPC", "node"),
    Fault(
        "the node's port", SERVICE, (*HEAD, *CONTAINER, "ports", 0, "hostPort"), 6379, SECURITY, "Port", ""
    ),
    Fault(
        "the node's folder",
        SERVICE,
        (*HEAD, *POD, "volumes"),
        [{"name": "a", "hostPath": {"path": "/"}}],
        SECURITY,
        "volumes[0].hostPath",
        "folder of the node",
    ),
    Fault("admitted", "Namespace/twinpool", ENFORCE, "privileged", SECURITY, "", "is 'privileged'"),
    Fault(
        "the autoscaler",
        SERVICE,
        ("spec", "rayClusterConfig", "autoscalerOptions"),
        {"securityContext": {"runAsUser": 0}},
        SECURITY,
        "autoscalerOptions.securityContext.runAsUser",
        "which is root",
    ),
]


@needs_kubectl
@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_right_is_found(fault: Fault) -> None:
    """A container overrules its pod, and a namespace admits what its label says."""
    is_found(fault)


@needs_kubectl
def test_what_the_standard_allows_is_no_finding() -> None:
    """The one capability of `restricted`, and a user that is not root."""
    found = findings(
        (SERVICE, (*OWN, "capabilities", "add"), ["NET_BIND_SERVICE"]), (SERVICE, (*OWN, "runAsUser"), 1001)
    )

    assert [] == found
