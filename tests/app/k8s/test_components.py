"""Components that do not go together, or not in that order."""

from __future__ import annotations

from pathlib import Path

from app.k8s.rules import Rule
from tests.app.k8s.manifests import Copy, needs_kubectl
from tests.app.k8s.mistakes import PROD, add_component

KUSTOMIZATION = f"{PROD}/kustomization.yaml"


@needs_kubectl
def test_two_routes_to_one_service(tmp_path: Path) -> None:
    """The route of components/gateway beside the one of an incremental upgrade."""
    copy = Copy(tmp_path)
    copy.edit(KUSTOMIZATION, "components/gcs-ft-redis", "components/incremental-upgrade")
    add_component("gateway")(copy)

    (found,) = copy.findings("prod")

    assert (Rule.UPGRADE, "components/gateway/http-route.yaml", "spec.rules") == (
        found.rule,
        found.file,
        found.field,
    )
    assert "take components/gateway or components/incremental-upgrade out" in found.message
