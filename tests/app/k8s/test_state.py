"""Where the controller keeps its state, and the claims of all volumes."""

from __future__ import annotations

import pytest

from app.k8s.rules import Rule
from tests.app.k8s.faults import CALLERS, CONTAINER, POD, SERVICE, Fault, findings, is_found
from tests.app.k8s.manifests import needs_kubectl

STATE = Rule.STATE_PER_CLUSTER
MOUNT, PATH = (*CALLERS, *CONTAINER, "volumeMounts", 2), "volumeMounts[2].subPathExpr"
CLAIM, STORAGE = "PersistentVolumeClaim/twinpool-state", ("spec", "resources", "requests", "storage")
CLUSTER = 11  # the place of TWINPOOL_CLUSTER in the environment
FIELD = (*CALLERS, *CONTAINER, "env", CLUSTER, "valueFrom", "fieldRef", "fieldPath")
FAULTS = [
    Fault("one folder", SERVICE, (*MOUNT, "subPathExpr"), "all", STATE, PATH, "share the folder"),
    Fault("nobody's", SERVICE, (*MOUNT, "subPathExpr"), "$(CLUSTER)", STATE, PATH, "is $(CLUSTER): CLUSTER"),
    Fault("the pod's", SERVICE, FIELD, "metadata.name", STATE, PATH, "not the name of the RayCluster"),
    Fault("read only", SERVICE, (*MOUNT, "readOnly"), True, STATE, "volumeMounts[2].readOnly", "take it out"),
    Fault(
        "a volume read only",
        SERVICE,
        (*CALLERS, *POD, "volumes", 2, "persistentVolumeClaim", "readOnly"),
        True,
        STATE,
        "persistentVolumeClaim.readOnly",
        "take it out",
    ),
    Fault(
        "one node", CLAIM, ("spec", "accessModes"), ["ReadWriteOnce"], STATE, "accessModes", "up to 2 pods"
    ),
    Fault("no mode", CLAIM, ("spec", "accessModes"), ["ReadWriteAll"], STATE, "accessModes", "ReadWriteAll"),
    Fault("a wrong unit", CLAIM, STORAGE, "1GB", Rule.QUANTITY, "storage", "is no quantity"),
    Fault("a small unit", CLAIM, STORAGE, "100m", Rule.QUANTITY, "storage", "is 0.1 bytes"),
]


@needs_kubectl
@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_state_that_would_be_lost_or_shared_is_found(fault: Fault) -> None:
    """Two controllers on one folder, or one that cannot write."""
    is_found(fault)


@needs_kubectl
def test_a_folder_below_one_of_ours_is_no_finding() -> None:
    """The variable may stand anywhere in the path, and the field in either kind of quotes."""
    found = findings(
        (SERVICE, (*MOUNT, "subPathExpr"), "twinpool/$(TWINPOOL_CLUSTER)"),
        (SERVICE, FIELD, 'metadata.labels["ray.io/cluster"]'),
    )

    assert [] == found
