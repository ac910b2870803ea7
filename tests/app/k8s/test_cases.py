"""Public failures of serving on Kubernetes, and how these manifests stand against them."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.k8s.cluster_rules import demand
from app.k8s.documents import at, read
from app.k8s.fleet import fleets
from app.k8s.rules import Rule
from tests.app.k8s.manifests import OVERLAYS, Copy, needs_kubectl, objects


@needs_kubectl
def test_an_upgrade_that_does_not_fit_is_found(tmp_path: Path) -> None:
    """Case E1: with accelerators for one cluster it is said how many an upgrade takes, and the ways out."""
    copy = Copy(tmp_path)
    copy.edit("overlays/prod/quota.yaml", '"16"', '"8"')

    found = copy.findings("prod")

    assert [(Rule.UPGRADE_DEMAND, "overlays/prod/quota.yaml", "spec.hard.requests.nvidia.com/gpu")] == [
        (finding.rule, finding.file, finding.field) for finding in found
    ]
    assert "an upgrade takes 16 accelerators at once, the quota is 8" in found[0].message
    assert "components/incremental-upgrade" in found[0].message


@needs_kubectl
def test_without_a_quota_the_demand_of_an_upgrade_is_asked_for(tmp_path: Path) -> None:
    """Case E1: how many accelerators there are is stated, or it is a finding."""
    copy = Copy(tmp_path)
    copy.edit("overlays/prod/kustomization.yaml", "  - quota.yaml\n", "")

    found = copy.findings("prod")

    assert [Rule.UPGRADE_DEMAND] == [finding.rule for finding in found]
    assert "takes 8 accelerators and an upgrade 16 at once" in found[0].message


@needs_kubectl
def test_an_incremental_upgrade_needs_a_quarter_more(tmp_path: Path) -> None:
    """Case E1: the way out of two clusters' worth: 8 and a surge of 2."""
    copy = Copy(tmp_path)
    kustomization = "overlays/prod/kustomization.yaml"
    copy.edit(kustomization, "components/gcs-ft-redis", "components/incremental-upgrade")
    copy.edit("overlays/prod/quota.yaml", '"16"', '"10"')

    assert [] == copy.findings("prod")
    assert (8, 10) == demand(fleets(read(copy.render("prod"), "prod"))[0], "nvidia.com/gpu")


@needs_kubectl
@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_upgrade_strategy_is_said_out_loud(overlay: str, tmp_path: Path) -> None:
    """Case E1: every RayService states how it is upgraded."""
    service = objects(Copy(tmp_path).render(overlay))["RayService/twinpool"]

    assert at(service.data, "spec", "upgradeStrategy", "type") in ("NewCluster", "None")


@needs_kubectl
@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_budget_lets_a_pod_go(overlay: str, tmp_path: Path) -> None:
    """Case E4: no budget with zero allowed disruptions: each is below its group's size, none of the head."""
    documents = read(Copy(tmp_path).render(overlay), overlay)
    sizes = {group.name: group.least for group in fleets(documents)[0].groups}
    budgets = [document.data for document in documents if document.kind == "PodDisruptionBudget"]
    allowed = {
        at(budget, "spec", "selector", "matchLabels", "twinpool.dev/group"): at(
            budget, "spec", "minAvailable"
        )
        for budget in budgets
    }

    assert {"accelerator", "service"} == set(allowed)
    assert all(least < sizes[group] for group, least in allowed.items())
    assert {"AlwaysAllow"} == {at(budget, "spec", "unhealthyPodEvictionPolicy") for budget in budgets}


@needs_kubectl
@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("minAvailable: 1", "minAvailable: 2", "no pod could ever be drained"),
        ("minAvailable: 1", "minAvailable: 50%", "has to be a whole number"),
        ("minAvailable: 1", "maxUnavailable: 1", "has to be a whole number"),
        (
            "unhealthyPodEvictionPolicy: AlwaysAllow",
            "unhealthyPodEvictionPolicy: IfHealthyBudget",
            "AlwaysAllow",
        ),
        ("twinpool.dev/group: service", "twinpool.dev/group: head", "selects the head"),
    ],
)
def test_a_budget_that_blocks_a_drain_is_found(old: str, new: str, words: str, tmp_path: Path) -> None:
    """Case E4: a budget over one pod, one as large as its group, one that Ray's pods cannot have."""
    copy = Copy(tmp_path)
    copy.edit("base/disruption-budgets.yaml", old, new)

    found = [finding for finding in copy.findings("prod") if finding.rule is Rule.DISRUPTION_BUDGET]

    assert any(words in finding.message for finding in found), found


@needs_kubectl
def test_every_pod_names_its_architecture(tmp_path: Path) -> None:
    """Case E6: without the selector the image may meet a node of another architecture."""
    copy = Copy(tmp_path)
    copy.edit("base/rayservice.yaml", "kubernetes.io/arch: amd64", "example.com/arch: amd64")

    found = copy.findings("prod")

    assert {Rule.ARCHITECTURE} == {finding.rule for finding in found}
    assert 3 == len(found)  # head, engines, ingresses


@needs_kubectl
def test_another_architecture_is_one_edit(tmp_path: Path) -> None:
    """Case E6: rendered for arm64 nodes every pod of Ray asks for them."""
    copy = Copy(tmp_path)
    copy.edit("base/rayservice.yaml", "kubernetes.io/arch: amd64", "kubernetes.io/arch: arm64")
    fleet = fleets(read(copy.render("dev-cpu"), "dev-cpu"))[0]

    assert [{"kubernetes.io/arch": "arm64"}] * 3 == [group.pod["nodeSelector"] for group in fleet.groups]
    assert [] == copy.findings("dev-cpu")


@needs_kubectl
def test_initial_replicas_are_refused(tmp_path: Path) -> None:
    """Case E9: the floor that stays after an incremental upgrade is initial_replicas, so none are allowed."""
    copy = Copy(tmp_path)
    serve = "overlays/prod/settings/serve.yaml"
    copy.edit(
        serve, "          max_replicas: 8\n", "          max_replicas: 8\n          initial_replicas: 1\n"
    )

    found = copy.findings("prod")

    assert [(Rule.INITIAL_REPLICAS, serve)] == [(finding.rule, finding.file) for finding in found]
    assert "deployments[2].autoscaling_config.initial_replicas" in found[0].field


@pytest.mark.contract
@pytest.mark.parametrize("capacity", [0.0, 10.0, 50.0, 100.0])
def test_a_target_capacity_is_no_floor(capacity: float) -> None:
    """Case E9: Ray's own bounds of a pool that may be empty: 0 at every capacity on the way up, and after it.

    The plan is applied within these bounds, so on the way up a pool gets at most its share of the ceiling,
    and at 100 whatever the policy says, down to none.
    """
    from ray.serve._private.autoscaling_state import DeploymentAutoscalingState
    from ray.serve._private.common import DeploymentID, TargetCapacityDirection
    from ray.serve.config import AutoscalingConfig

    from deployments.local_config import _bounds

    state = DeploymentAutoscalingState(DeploymentID(name="plain", app_name="twinpool"))
    state._config = AutoscalingConfig(**_bounds(0, 8))
    state._target_capacity, state._target_capacity_direction = capacity, TargetCapacityDirection.UP

    assert 0 == state.get_num_replicas_lower_bound()
    assert round(8 * capacity / 100 + 1e-9) == state.get_num_replicas_upper_bound()
    assert 0 == state.apply_bounds(0)
