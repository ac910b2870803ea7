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


@needs_kubectl
def test_a_component_after_the_wiring(tmp_path: Path) -> None:
    """One finding at the list that is to be changed, and none about times that could not be right."""
    copy = Copy(tmp_path)
    copy.edit(
        KUSTOMIZATION,
        "  - ../../components/wiring\n",
        "  - ../../components/wiring\n  - ../../components/separate-groups\n",
    )
    copy.edit(f"{PROD}/quota.yaml", '"16"', '"24"')

    found = {one.rule: one for one in copy.findings("prod")}

    assert {Rule.WIRING, Rule.PLACEMENT} == set(found)
    assert (KUSTOMIZATION, "components[3]") == (found[Rule.WIRING].file, found[Rule.WIRING].field)
    assert "wiring must be the last component" in found[Rule.WIRING].message
    assert "what separate-groups adds" in found[Rule.WIRING].message


@needs_kubectl
def test_no_wiring(tmp_path: Path) -> None:
    """One finding, which names it."""
    copy = Copy(tmp_path)
    copy.edit(KUSTOMIZATION, "  - ../../components/wiring\n", "")

    (found,) = copy.findings("prod")

    assert (Rule.WIRING, KUSTOMIZATION, "components") == (found.rule, found.file, found.field)
    assert "add it as the last of the overlay's components" in found.message


@needs_kubectl
def test_a_group_of_an_overlay_above_the_wiring(tmp_path: Path) -> None:
    """The wiring is the last of its list, and a group comes to it from elsewhere."""
    copy = Copy(tmp_path)
    copy.edit(f"{PROD}/quota.yaml", '"16"', '"24"')
    copy.write(
        "overlays/above/kustomization.yaml",
        "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [../prod]\n"
        "components: [../../components/separate-groups]\n"
        "images: [{name: twinpool, newName: registry.example/twinpool, digest: 'sha256:" + "0" * 64 + "'}]\n",
    )

    found = {one.rule: one for one in copy.findings("above")}

    assert ("overlays/above/kustomization.yaml", 4) == (found[Rule.WIRING].file, found[Rule.WIRING].line)
    assert "group accelerator-plain came after components/wiring" in found[Rule.WIRING].message
    assert Rule.TIMINGS not in found
