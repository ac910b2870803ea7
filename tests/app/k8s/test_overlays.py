"""Every overlay of this repository renders and is without a finding, offline, with every component."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from app.k8s.documents import read
from app.k8s.fleet import fleets
from app.k8s.rules import Rule
from autoscaling.types import Role
from deployments import local_config
from deployments.local_config import default_settings, serve_config
from tests.app.k8s.manifests import K8S, OVERLAYS, Copy, crd_schemas, needs_kubectl, objects, relative

COMPONENTS = sorted(path.parent.name for path in (K8S / "components").glob("*/kustomization.yaml"))


@needs_kubectl
@pytest.mark.parametrize("overlay", OVERLAYS)
def test_an_overlay_is_without_a_finding(overlay: str, tmp_path: Path) -> None:
    """All rules, with what this repository alone has."""
    assert [] == Copy(tmp_path).findings(overlay)


@needs_kubectl
@pytest.mark.parametrize("overlay", OVERLAYS)
def test_an_overlay_is_what_the_definitions_of_kuberay_say(overlay: str, tmp_path: Path) -> None:
    """The same with KubeRay's own schemas, where they are at hand."""
    copy = Copy(tmp_path)

    assert () == copy.report(overlay, crd_schemas()).findings


@needs_kubectl
def test_a_placeholder_and_what_was_not_checked_are_said(tmp_path: Path) -> None:
    """The digest that does not exist yet is no finding and not silent; nor are schemas that are not given."""
    notes = "\n".join(Copy(tmp_path).report("prod").notes)

    assert "is a placeholder" in notes
    assert "the schemas of KubeRay were not given" in notes
    assert "kubernetes-validate" in notes


@needs_kubectl
def test_a_policy_edit_changes_one_config_map(tmp_path: Path) -> None:
    """Nothing else of the render differs by a byte, so no RayCluster is made anew and nothing restarts."""
    copy = Copy(tmp_path)
    before = copy.render("prod")

    copy.edit("overlays/prod/settings/policy.yaml", "cooldownSeconds: 60", "cooldownSeconds: 90")
    after = copy.render("prod")

    old, new = (dict(enumerate(render.split("---\n"))) for render in (before, after))
    changed = [number for number in old if old[number] != new.get(number)]
    assert len(old) == len(new)
    assert ["ConfigMap/twinpool-policy"] == [next(iter(objects(new[number]))) for number in changed]


@needs_kubectl
def test_only_what_the_cluster_needs_is_rendered(tmp_path: Path) -> None:
    """The sources of the replacements stay at home."""
    found = objects(Copy(tmp_path).render("prod"))

    assert {"Timings/timings", "ConfigMap/serve-config"} & set(found) == set()
    assert "ConfigMap/twinpool-policy" in found


@needs_kubectl
@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_serve_config_is_shaped_as_the_local_one(overlay: str, tmp_path: Path) -> None:
    """Same deployments with the same keys, but for placement and the environment's values."""
    fleet = fleets(read(Copy(tmp_path).render(overlay), overlay))[0]
    local = serve_config(default_settings("simulated", host="0.0.0.0"))["applications"][0]

    def shape(deployment: dict[str, object]) -> dict[str, object]:
        options = dict(deployment["ray_actor_options"])  # type: ignore[call-overload]
        for name in ("label_selector", "num_gpus", "resources"):
            options.pop(name, None)
        variables = set(options.pop("runtime_env")["env_vars"])
        autoscaling = set(deployment.get("autoscaling_config", ()))  # type: ignore[call-overload]
        return {"keys": set(deployment), "options": options, "env": variables, "autoscaling": autoscaling}

    expected = {deployment["name"]: shape(deployment) for deployment in local["deployments"]}
    assert expected == {found.name: shape(dict(found.data)) for found in fleet.deployments}
    assert local_config.PLAN_KEPT_S == fleet.deployments[1].data["autoscaling_config"]["look_back_period_s"]


@needs_kubectl
@pytest.mark.parametrize("component", [name for name in COMPONENTS if name != "wiring"])
def test_a_component_renders_in_prod(component: str, tmp_path: Path) -> None:
    """Added to prod each is well formed; what it asks for beyond that is named by the rules that know it."""
    asks = {
        # Two groups: the plain pool's selector, D and the quota are the overlay's to change.
        "separate-groups": {Rule.PLACEMENT},
        "bench-rayjob": set(),
        "incremental-upgrade": {Rule.RAY_65102},
        "redis-single": {Rule.IMAGE_DIGEST},
    }
    copy = Copy(tmp_path)
    kustomization = "overlays/prod/kustomization.yaml"
    text = (copy.root / kustomization).read_text(encoding="utf-8")
    if f"components/{component}\n" not in text:
        copy.edit(
            kustomization,
            "  - ../../components/wiring\n",
            f"  - ../../components/{component}\n  - ../../components/wiring\n",
        )
    if component == "redis-single":
        copy.edit(kustomization, "  - redis.yaml\n", "")
    if component == "separate-groups":
        copy.edit("overlays/prod/quota.yaml", '"16"', '"20"')

    found = copy.findings("prod")

    assert asks.get(component, set()) == {finding.rule for finding in found}, found


@needs_kubectl
def test_a_finding_without_a_source_names_the_object(tmp_path: Path) -> None:
    """What only a render shows is found with kind, name and field."""
    copy = Copy(tmp_path)
    text = copy.render("prod").replace('cpu: "8"', "cpu: eight", 1)
    (tmp_path / "render.yaml").write_text(text, encoding="utf-8")
    from app.k8s.lint import lint
    from tests.app.k8s.manifests import plain_schemas

    found = lint(read(text, "render.yaml"), None, plain_schemas(), "render.yaml").findings

    assert {"render.yaml"} == {finding.file for finding in found}
    assert any(finding.field.startswith("RayService/twinpool: spec.rayClusterConfig") for finding in found)
    assert all(finding.line > 0 for finding in found)
    assert found == tuple(relative(finding, tmp_path) for finding in found)


def test_every_yaml_of_the_manifests_is_read() -> None:
    """Without duplicate keys, and each object has a kind."""
    for file in sorted(K8S.rglob("*.yaml")):
        for document in yaml.safe_load_all(file.read_text(encoding="utf-8")):
            assert document, file
        if file.name != "kustomization.yaml" and "operator" not in file.parts:
            text = file.read_text(encoding="utf-8")
            if not text.lstrip("# ").startswith("-") and "kind:" in text:
                assert read(text, str(file)), file


def test_both_pools_are_in_every_serve_config() -> None:
    """The two roles are deployments of these names."""
    for overlay in OVERLAYS:
        config = yaml.safe_load(
            (K8S / "overlays" / overlay / "settings" / "serve.yaml").read_text(encoding="utf-8")
        )
        names = {deployment["name"] for deployment in config["applications"][0]["deployments"]}

        assert {role.value for role in Role} <= names
