"""Sizes that have to agree: disruption budgets, the controller, the budget of the policy, the groups."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.k8s.rules import Rule
from tests.app.k8s.manifests import Copy, needs_kubectl
from tests.app.k8s.mistakes import POLICY, SERVE, add_component

BUDGETS = "base/disruption-budgets.yaml"
GROUP = "        replicas: 8\n        minReplicas: 8\n        maxReplicas: 8\n"


@needs_kubectl
@pytest.mark.parametrize(
    ("pods", "least", "words"),
    [
        (8, 1, "is 1, and there are 8 pods of accelerator: a drain may take 7 of them at once; write 7"),
        (8, 6, "is 6, and there are 8 pods of accelerator: a drain may take 2 of them at once; write 7"),
        (12, 3, "is 3, and there are 12 pods of accelerator: a drain may take 9 of them at once; write 11"),
    ],
)
def test_a_budget_that_lets_several_pods_go(pods: int, least: int, words: str, tmp_path: Path) -> None:
    """One pod of a group goes at a time, so the budget is the group's size less one."""
    copy = Copy(tmp_path)
    copy.edit("base/rayservice.yaml", GROUP, GROUP.replace("8", str(pods)))
    copy.edit(BUDGETS, "minAvailable: 7", f"minAvailable: {least}")

    (found,) = (finding for finding in copy.findings("prod") if finding.rule is Rule.DISRUPTION_BUDGET)

    assert (BUDGETS, "spec.minAvailable") == (found.file, found.field)
    assert words in found.message


@needs_kubectl
def test_one_budget_for_two_groups(tmp_path: Path) -> None:
    """A budget counts all the pods that it selects, of whatever group."""
    copy = Copy(tmp_path)
    copy.edit(BUDGETS, "      twinpool.dev/group: accelerator\n", "")
    copy.edit(
        "base/rayservice.yaml",
        "            twinpool.dev/service: twinpool\n            twinpool.dev/group: head\n",
        "            twinpool.dev/group: head\n",
    )

    found = [finding for finding in copy.findings("prod") if finding.rule is Rule.DISRUPTION_BUDGET]

    assert ["spec.minAvailable"] == [finding.field for finding in found]
    assert "is 7, and there are 10 pods of accelerator and service" in found[0].message


@needs_kubectl
@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"speculative": {"replicas": 6', '"speculative": {"replicas": 60', "above speculative.most of 8"),
        ('"plain": {"replicas": 2', '"plain": {"replicas": 3', "take 9 together, the ceiling is 8"),
    ],
)
def test_a_service_that_begins_above_its_ceiling(old: str, new: str, words: str, tmp_path: Path) -> None:
    """The controller is told of no more replicas than a pool may have, nor than both may have together."""
    copy = Copy(tmp_path)
    copy.edit(SERVE, old, new)

    found = copy.findings("prod")

    place = "applications[0].deployments[1].ray_actor_options.runtime_env.env_vars.TWINPOOL_CONTROLLER"
    assert {(Rule.CEILING, SERVE, place)} == {(one.rule, one.file, one.field) for one in found}
    assert any(words in finding.message for finding in found), found


@needs_kubectl
@pytest.mark.parametrize(("surge", "idle"), [(0, 2), (1, 1)])
def test_a_budget_below_the_groups(surge: int, idle: int, tmp_path: Path) -> None:
    """Accelerators that no policy may ever use are said, with both ways out."""
    copy = Copy(tmp_path)
    copy.edit(POLICY, "budget: {min: 8, max: 8}", "budget: {min: 6, max: 6}")
    copy.edit(POLICY, "bootstrap: {speculative: 6, plain: 2}", "bootstrap: {speculative: 4, plain: 2}")
    copy.edit(POLICY, "      maxReplicas: 7\n", "      maxReplicas: 5\n")
    copy.edit(POLICY, "surgeSlots: 0", f"surgeSlots: {surge}")

    (found,) = copy.findings("prod")

    assert (Rule.CAPACITY, POLICY, "spec.budget.max") == (found.rule, found.file, found.field)
    assert f"always have 8: accelerator (8 pods of 1): {idle} are idle for ever" in found.message


@needs_kubectl
def test_a_budget_that_may_be_smaller_for_a_while(tmp_path: Path) -> None:
    """A lower minimum is meant: the policy may use all of the group and need not."""
    copy = Copy(tmp_path)
    copy.edit(POLICY, "budget: {min: 8, max: 8}", "budget: {min: 6, max: 8}")

    assert [] == copy.findings("prod")


@needs_kubectl
def test_a_group_that_no_pool_selects(tmp_path: Path) -> None:
    """A second group with the Serve config as it was: two pods with an accelerator each that nobody uses."""
    copy = Copy(tmp_path)
    add_component("separate-groups")(copy)
    copy.edit("overlays/prod/quota.yaml", '"16"', '"24"')

    (found,) = copy.findings("prod")

    file, field = (
        "components/separate-groups/rayservice.yaml",
        "spec.rayClusterConfig.workerGroupSpecs[2].groupName",
    )
    assert (Rule.PLACEMENT, file, field) == (found.rule, found.file, found.field)
    assert "nobody uses these 2 pods with 2 accelerators" in found.message
    assert "{'twinpool.dev/group': 'accelerator-plain'}" in found.message
