"""Twenty mistakes that are easily made, each found before a cluster sees it, with file and field."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.k8s.rules import Rule
from tests.app.k8s.manifests import Copy, needs_kubectl
from tests.app.k8s.mistakes import (
    BASE,
    DEPLOYMENT,
    POLICY,
    PROD,
    SERVE,
    WORKER,
    Mistake,
    add_component,
    add_patch,
    change,
    found_in_its_place,
)


def add_secret(copy: Copy) -> None:
    copy.write(
        f"{PROD}/secret.yaml",
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: hub-token\nstringData:\n  token: hunter2\n",
    )
    copy.edit(f"{PROD}/kustomization.yaml", "  - quota.yaml\n", "  - quota.yaml\n  - secret.yaml\n")


def second_group(copy: Copy) -> None:
    """The component for unlike hardware, without its cost in D."""
    add_component("separate-groups")(copy)
    plain = "twinpool.dev/group: accelerator}\n          runtime_env:\n            env_vars:\n"
    pool = f'{plain}              TWINPOOL_POOL: >-\n                {{"role": "plain"'
    copy.edit(SERVE, pool, pool.replace("accelerator}", "accelerator-plain}"))


MISTAKES = [
    Mistake(
        "1 unknown key in RayService",
        change(BASE, "  upgradeStrategy:\n", "  upgradeStrategies: {}\n  upgradeStrategy:\n"),
        Rule.RAY_FIELDS,
        BASE,
        "spec.upgradeStrategies",
        "there is no such field",
    ),
    Mistake(
        "2 unknown key in a worker group",
        change(BASE, "        maxReplicas: 8\n", "        maxReplicas: 8\n        maxReplica: 8\n"),
        Rule.RAY_FIELDS,
        BASE,
        f"{WORKER}.maxReplica",
        "there is no such field",
    ),
    Mistake(
        "3 unknown key in a pod template",
        change(
            BASE,
            "            priorityClassName: twinpool-accelerator\n",
            "            terminationGracePeriodSecond: 9\n"
            "            priorityClassName: twinpool-accelerator\n",
        ),
        Rule.POD_SCHEMA,
        BASE,
        f"{WORKER}.template.spec.terminationGracePeriodSecond",
        "terminationGracePeriodSeconds is meant?",
    ),
    Mistake(
        "4 unknown key in serveConfigV2",
        change(SERVE, "        num_replicas: 2\n", "        num_replica: 2\n"),
        Rule.SERVE_KEY,
        SERVE,
        f"{DEPLOYMENT}[0].num_replica",
        "num_replicas is meant?",
    ),
    Mistake(
        "5 unknown key in autoscaling_config",
        change(SERVE, "          max_replicas: 8\n", "          max_replica: 8\n"),
        Rule.AUTOSCALING_CONFIG,
        SERVE,
        f"{DEPLOYMENT}[2].autoscaling_config.max_replica",
        "max_replicas is meant?",
    ),
    Mistake(
        "6 wrong unit",
        change(BASE, 'cpu: "8", memory: 64Gi,', 'cpu: "8", memory: 64GB,'),
        Rule.QUANTITY,
        BASE,
        f"{WORKER}.template.spec.containers[0].resources.requests.memory",
        "'64GB' is no quantity",
    ),
    Mistake(
        "7 min above max",
        change(BASE, "        minReplicas: 8\n", "        minReplicas: 9\n"),
        Rule.GROUP_SIZE,
        BASE,
        f"{WORKER}.minReplicas",
        "is 9, above maxReplicas 8",
    ),
    Mistake(
        "8 pool sum above budget",
        change(
            POLICY, "      minReplicas: 1\n      maxReplicas: 4", "      minReplicas: 5\n      maxReplicas: 5"
        ),
        Rule.POLICY,
        POLICY,
        "spec.budget.max",
        "9",
    ),
    Mistake(
        "9 timing that does not nest",
        change(f"{PROD}/settings/timings.yaml", 'rayDrainSeconds: "450"', 'rayDrainSeconds: "330"'),
        Rule.TIMINGS,
        f"{PROD}/settings/timings.yaml",
        "spec.rayDrainSeconds",
        "at least L + D + 30 = 450",
    ),
    Mistake(
        "10 port mismatch",
        change(SERVE, "  port: 8000\n", "  port: 8001\n"),
        Rule.PORTS,
        BASE,
        f"{WORKER}.template.spec.containers[0].ports[0].containerPort",
        "Serve listens on 8001",
    ),
    Mistake(
        "11 import path that does not exist",
        change(SERVE, "import_path: app.main:build", "import_path: app.main:built"),
        Rule.IMPORT_PATH,
        SERVE,
        "applications[0].import_path",
        "build is meant?",
    ),
    Mistake(
        "12 deployment name that the code lacks",
        change(SERVE, "      - name: ingress\n", "      - name: router\n"),
        Rule.DEPLOYMENT_NAMES,
        SERVE,
        f"{DEPLOYMENT}[0].name",
        "the code has no deployment 'router'",
    ),
    Mistake(
        "13 patch without test",
        add_patch(
            "- {op: replace, path: /spec/rayClusterConfig/workerGroupSpecs/0/idleTimeoutSeconds, value: 60}\n"
        ),
        Rule.PATCH_TEST,
        f"{PROD}/extra.yaml",
        "[0].path",
        "the patch begins without `op: test`",
    ),
    Mistake(
        "14 strategic merge of workerGroupSpecs",
        add_patch(
            "apiVersion: ray.io/v1\nkind: RayService\nmetadata:\n  name: twinpool\nspec:\n"
            "  rayClusterConfig:\n    workerGroupSpecs:\n"
            "      - groupName: accelerator\n        replicas: 8\n"
        ),
        Rule.PATCH_GROUPS,
        f"{PROD}/extra.yaml",
        "spec.rayClusterConfig.workerGroupSpecs",
        "replaces the whole list",
    ),
    Mistake(
        "15 policy with a hash in its name",
        change(
            f"{PROD}/settings/kustomization.yaml",
            "disableNameSuffixHash: true",
            "disableNameSuffixHash: false",
        ),
        Rule.POLICY_HASH,
        f"{PROD}/settings/kustomization.yaml",
        "configMapGenerator[0].options.disableNameSuffixHash",
        "twinpool-policy gets a hash in its name",
    ),
    Mistake(
        "16 policy mounted by subPath",
        change(
            BASE,
            "{name: policy, mountPath: /etc/twinpool/policy, readOnly: true}",
            "{name: policy, mountPath: /etc/twinpool/policy/policy.yaml, subPath: policy.yaml}",
        ),
        Rule.POLICY_SUBPATH,
        BASE,
        "spec.rayClusterConfig.workerGroupSpecs[1].template.spec.containers[0].volumeMounts[0].subPath",
        "would never change",
    ),
    Mistake(
        "17 image by tag in prod",
        change(
            f"{PROD}/kustomization.yaml",
            "    digest: sha256:0000000000000000000000000000000000000000000000000000000000000000\n",
            "    newTag: 0.1.0\n",
        ),
        Rule.IMAGE_DIGEST,
        f"{PROD}/kustomization.yaml",
        "images[0].newTag",
        "registry.example/twinpool:0.1.0 is not named by digest",
    ),
    Mistake(
        "18 disruption budget as large as its group",
        change("base/disruption-budgets.yaml", "minAvailable: 7", "minAvailable: 8"),
        Rule.DISRUPTION_BUDGET,
        "base/disruption-budgets.yaml",
        "spec.minAvailable",
        "no pod could ever be drained",
    ),
    Mistake(
        "19 two groups for the pools while moves are enabled",
        second_group,
        Rule.ONE_GROUP,
        "components/separate-groups/rayservice.yaml",
        "spec.rayClusterConfig.workerGroupSpecs[2].groupName",
        "what a move costs is 900 s, D is 120 s",
    ),
    Mistake(
        "20 a Secret with data",
        add_secret,
        Rule.SECRET_DATA,
        f"{PROD}/secret.yaml",
        "stringData",
        "make it in the cluster",
    ),
]


@needs_kubectl
@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_a_mistake_is_found_in_its_place(mistake: Mistake, tmp_path: Path) -> None:
    """One of the findings has the rule, the file, the field and the words; each has a line of that file."""
    found_in_its_place(mistake, tmp_path)
