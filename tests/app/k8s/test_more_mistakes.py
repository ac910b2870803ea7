"""The rules beyond the twenty mistakes: each finds what it is for; long, since each renders an overlay."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.k8s.rules import Rule
from tests.app.k8s.manifests import Copy, crd_schemas, needs_kubectl
from tests.app.k8s.mistakes import (
    BASE,
    DEPLOYMENT,
    POLICY,
    PROD,
    SERVE,
    WORKER,
    Mistake,
    add_component,
    change,
    found_in_its_place,
)

SERVICE = "spec.rayClusterConfig.workerGroupSpecs[1]"
HEAD = "spec.rayClusterConfig.headGroupSpec"
CONTAINER = "template.spec.containers[0]"
CLUSTER = "  rayClusterConfig:\n"


def env(number: int, variable: str) -> str:
    return f"{DEPLOYMENT}[{number}].ray_actor_options.runtime_env.env_vars.{variable}"


def incremental(copy: Copy) -> None:
    """The triple of ray#65102, in a base without the budget that goes with it."""
    add_component("incremental-upgrade")(copy)


MISTAKES = [
    Mistake(
        "a value of the wrong type",
        change(
            "base/priority-classes.yaml", "name: twinpool-batch", "name: twinpool-batch\n  labels: {a: 1}"
        ),
        Rule.CORE_SCHEMA,
        "base/priority-classes.yaml",
        "metadata.labels.a",
        "",
    ),
    Mistake(
        "an unknown key in a kind of Kubernetes",
        change(
            "base/disruption-budgets.yaml", "  minAvailable: 1\n", "  minAvailable: 1\n  minAvailabel: 1\n"
        ),
        Rule.CORE_SCHEMA,
        "base/disruption-budgets.yaml",
        "spec.minAvailabel",
        "minAvailable is meant?",
    ),
    Mistake(
        "an unknown key in a kind of another operator",
        change("base/pod-monitors.yaml", "      path: /metrics\n", "      paths: /metrics\n"),
        Rule.OTHER_FIELDS,
        "base/pod-monitors.yaml",
        "spec.podMetricsEndpoints[0].paths",
        "there is no such field",
    ),
    Mistake(
        "a kind in a version that is gone",
        change("base/rbac.yaml", "rbac.authorization.k8s.io/v1", "rbac.authorization.k8s.io/v1beta1"),
        Rule.KIND,
        "base/rbac.yaml",
        "kind",
        "has no Role",
    ),
    Mistake(
        "a value that Serve refuses",
        change(SERVE, "max_surge_percent: 100", "max_surge_percent: many"),
        Rule.SERVE_SCHEMA,
        SERVE,
        f"{DEPLOYMENT}[0].max_surge_percent",
        "integer",
    ),
    Mistake(
        "Serve's minimum above its maximum",
        change(
            SERVE,
            "          min_replicas: 1\n          max_replicas: 8\n",
            "          min_replicas: 9\n          max_replicas: 8\n",
        ),
        Rule.AUTOSCALING_CONFIG,
        SERVE,
        f"{DEPLOYMENT}[2].autoscaling_config",
        "must be greater than or equal to min_replicas (9)",
    ),
    Mistake(
        "a setting that does not exist",
        change(SERVE, '"soft_limit": 16', '"soft_limits": 16'),
        Rule.SETTINGS,
        SERVE,
        env(2, "TWINPOOL_POOL"),
        "soft_limits: unknown key soft_limits: soft_limit is meant?",
    ),
    Mistake(
        "a variable that nobody reads",
        change(
            SERVE,
            "              TWINPOOL_INGRESS: >-",
            "              TWINPOOL_POLICY: /etc\n              TWINPOOL_INGRESS: >-",
        ),
        Rule.SETTINGS,
        SERVE,
        env(0, "TWINPOOL_POLICY"),
        "ingress does not read this variable",
    ),
    Mistake(
        "orders from everybody",
        change(SERVE, '"admin_writable": false', '"admin_writable": true'),
        Rule.ADMIN_OPEN,
        SERVE,
        env(0, "TWINPOOL_INGRESS"),
        "the service listens on 0.0.0.0",
    ),
    Mistake(
        "two ceilings",
        change(SERVE, "        ceiling: 8\n", "        ceiling: 6\n"),
        Rule.CEILING,
        SERVE,
        "applications[0].autoscaling_policy.policy_kwargs.ceiling",
        "the controller is told a ceiling of 8",
    ),
    Mistake(
        "Serve's bound below the ceiling",
        change(SERVE, "          max_replicas: 8\n", "          max_replicas: 4\n"),
        Rule.CEILING,
        SERVE,
        f"{DEPLOYMENT}[2].autoscaling_config.max_replicas",
        "the controller is told 8",
    ),
    Mistake(
        "more accelerators than are reserved",
        change(SERVE, "          num_gpus: 1\n", "          num_gpus: 2\n"),
        Rule.CEILING,
        SERVE,
        f"{DEPLOYMENT}[2].ray_actor_options",
        "asks Ray for 2",
    ),
    Mistake(
        "a budget above the group",
        change(
            BASE,
            "        replicas: 8\n        minReplicas: 8\n        maxReplicas: 8\n",
            "        replicas: 7\n        minReplicas: 7\n        maxReplicas: 7\n",
        ),
        Rule.CAPACITY,
        POLICY,
        "spec.budget.max",
        "is 8, and the groups have 7: accelerator (7 pods of 1)",
    ),
    Mistake(
        "a policy beyond what the controller is told",
        change(POLICY, "budget: {min: 8, max: 8}", "budget: {min: 8, max: 9}"),
        Rule.POLICY,
        POLICY,
        "spec.budget.max",
        "this service has 8 accelerators",
    ),
    Mistake(
        "a label that no group has",
        change(
            SERVE,
            "label_selector: {twinpool.dev/group: service}",
            "label_selector: {twinpool.dev/group: services}",
        ),
        Rule.PLACEMENT,
        SERVE,
        f"{DEPLOYMENT}[0].ray_actor_options",
        "no group has what ingress asks for",
    ),
    Mistake(
        "a profile that is mounted and not named",
        change(SERVE, '                 "profile": "/etc/twinpool/profile/profile.json",\n', ""),
        Rule.MOUNTS,
        BASE,
        f"{SERVICE}.{CONTAINER}.volumeMounts[1].mountPath",
        "no setting of the controller names it",
    ),
    Mistake(
        "a policy that is named and not mounted",
        change(SERVE, '"policy": "/etc/twinpool/policy"', '"policy": "/etc/policy"'),
        Rule.MOUNTS,
        SERVE,
        env(1, "TWINPOOL_CONTROLLER"),
        "policy is /etc/policy, where group service mounts no ConfigMap",
    ),
    Mistake(
        "a model on no volume",
        change(SERVE, '"model": "/models/model"', '"model": "/weights/model"'),
        Rule.MOUNTS,
        SERVE,
        env(2, "TWINPOOL_POOL"),
        "/weights/model is on no volume of group accelerator",
    ),
    Mistake(
        "a ConfigMap that is not there",
        change(
            f"{PROD}/settings/kustomization.yaml", "  - name: twinpool-model\n", "  - name: twinpool-models\n"
        ),
        Rule.MOUNTS,
        "components/models-pvc/rayservice.yaml",
        f"{WORKER}.template.spec.volumes[1].configMap.name",
        "there is no ConfigMap twinpool-model",
    ),
    Mistake(
        "one state folder for two clusters",
        change(BASE, ", subPathExpr: $(TWINPOOL_CLUSTER)", ""),
        Rule.STATE_PER_CLUSTER,
        BASE,
        f"{SERVICE}.{CONTAINER}.volumeMounts[2].subPathExpr",
        "two RayClusters would share the folder",
    ),
    Mistake(
        "no state folder",
        change(SERVE, '                 "state_dir": "/var/lib/twinpool/state",\n', ""),
        Rule.STATE_PER_CLUSTER,
        SERVE,
        env(1, "TWINPOOL_CONTROLLER"),
        "state_dir is not set",
    ),
    Mistake(
        "a head of another image",
        change(
            BASE,
            "              image: twinpool\n",
            "              image: registry.example/other@sha256:" + "1" * 64 + "\n",
        ),
        Rule.IMAGE_SAME,
        f"{PROD}/kustomization.yaml",
        "images[0].digest",
        "the head runs registry.example/other",
    ),
    Mistake(
        "another version of Ray",
        change(BASE, "rayVersion: 2.60.0", "rayVersion: 2.59.0"),
        Rule.RAY_VERSION,
        BASE,
        "spec.rayClusterConfig.rayVersion",
        "this twinpool has Ray 2.60.0",
    ),
    Mistake(
        "engines that outlive their replica",
        change(
            BASE,
            'RAY_process_group_cleanup_enabled, value: "1"',
            'RAY_process_group_cleanup_enabled, value: "0"',
        ),
        Rule.PROCESS_GROUPS,
        BASE,
        f"{HEAD}.{CONTAINER}.env[1].value",
        "is 0 in head",
    ),
    Mistake(
        "a variable that is the operator's",
        change(BASE, "{name: RAY_USAGE_STATS_ENABLED", "{name: RAY_REDIS_ADDRESS"),
        Rule.OPERATORS_ENV,
        BASE,
        f"{HEAD}.{CONTAINER}.env[0].name",
        "RAY_REDIS_ADDRESS is the operator's",
    ),
    Mistake(
        "less memory requested than allowed",
        change(BASE, 'requests: {cpu: "8", memory: 64Gi', 'requests: {cpu: "8", memory: 32Gi'),
        Rule.RESOURCES,
        BASE,
        f"{WORKER}.{CONTAINER}.resources",
        "memory: requested 32Gi, limited to 64Gi",
    ),
    Mistake(
        "a CPU limit beside an accelerator",
        change(
            BASE, "limits: {memory: 64Gi, nvidia.com/gpu", 'limits: {cpu: "8", memory: 64Gi, nvidia.com/gpu'
        ),
        Rule.RESOURCES,
        BASE,
        f"{WORKER}.{CONTAINER}.resources.limits.cpu",
        "throttles the engine",
    ),
    Mistake(
        "memory in thousandths of a byte",
        change(BASE, 'requests: {cpu: "4", memory: 8Gi', 'requests: {cpu: "4", memory: 8000m'),
        Rule.QUANTITY,
        BASE,
        f"{SERVICE}.{CONTAINER}.resources.requests.memory",
        "'8000m' is 8 bytes",
    ),
    Mistake(
        "root",
        change(BASE, "            runAsUser: 1000\n", "            runAsUser: 0\n"),
        Rule.SECURITY,
        BASE,
        f"{HEAD}.template.spec.securityContext.runAsUser",
        "which is root",
    ),
    Mistake(
        "capabilities",
        change(BASE, "drop: [ALL]", "drop: [NET_RAW]"),
        Rule.SECURITY,
        BASE,
        f"{HEAD}.{CONTAINER}.securityContext.capabilities.drop",
        "must hold ALL",
    ),
    Mistake(
        "a token that nobody needs",
        change(
            BASE,
            "          automountServiceAccountToken: false\n",
            "          automountServiceAccountToken: true\n",
        ),
        Rule.API_TOKEN,
        BASE,
        f"{HEAD}.template.spec.automountServiceAccountToken",
        "never talk to the API server",
    ),
    Mistake(
        "a head that works",
        change(BASE, '        num-cpus: "0"\n', '        num-cpus: "4"\n'),
        Rule.HEAD_IDLE,
        BASE,
        f"{HEAD}.rayStartParams.num-cpus",
        "is 4",
    ),
    Mistake(
        "callers through the head",
        change(BASE, "excludeHeadPodFromServeSvc: true", "excludeHeadPodFromServeSvc: false"),
        Rule.HEAD_IDLE,
        BASE,
        "spec.excludeHeadPodFromServeSvc",
        "callers would go through the head",
    ),
    Mistake(
        "a strategy that does not exist",
        change(BASE, "    type: NewCluster\n", "    type: Rolling\n"),
        Rule.UPGRADE,
        BASE,
        "spec.upgradeStrategy.type",
        "is 'Rolling'",
    ),
    Mistake(
        "GCS fault tolerance, incremental upgrade and HAProxy",
        incremental,
        Rule.RAY_65102,
        "components/incremental-upgrade/rayservice.yaml",
        "spec.upgradeStrategy.type",
        "leave one of them out",
    ),
    Mistake(
        "a group that could grow and never does",
        change(BASE, "        minReplicas: 2\n", "        minReplicas: 1\n"),
        Rule.GROUP_SIZE,
        BASE,
        f"{SERVICE}.maxReplicas",
        "without Ray's autoscaler none is made above it",
    ),
    Mistake(
        "a group that a drain may take whole",
        change(
            "base/disruption-budgets.yaml",
            "twinpool.dev/group: accelerator",
            "twinpool.dev/group: accelerators",
        ),
        Rule.DISRUPTION_BUDGET,
        BASE,
        f"{WORKER}.groupName",
        "has no PodDisruptionBudget",
    ),
    Mistake(
        "a name of two labels",
        change(BASE, "      - groupName: service\n", "      - groupName: Service_1\n"),
        Rule.NAME,
        BASE,
        f"{SERVICE}.groupName",
        "is no DNS label",
    ),
    Mistake(
        "a limit that is none",
        change(BASE, "  upgradeStrategy:\n", "  serviceUnhealthySecondThreshold: 900\n  upgradeStrategy:\n"),
        Rule.DEPRECATED,
        BASE,
        "spec.serviceUnhealthySecondThreshold",
        "KubeRay ignores it",
    ),
    Mistake(
        "a field behind a gate",
        change(BASE, CLUSTER, f"{CLUSTER}    tlsOptions: {{enabled: true}}\n"),
        Rule.GATED,
        BASE,
        "spec.rayClusterConfig.tlsOptions",
        "off by default",
    ),
    Mistake(
        "replicas that the ingresses cannot reach",
        change("base/network-policies.yaml", "port: 21000, endPort: 21999", "port: 21000, endPort: 21099"),
        Rule.PORTS,
        "base/network-policies.yaml",
        "spec.ingress[0].ports",
        "nothing opens 21000-21999",
    ),
    Mistake(
        "a named port that no pod has",
        change(
            "base/network-policies.yaml",
            "{protocol: TCP, port: haproxy-metrics}",
            "{protocol: TCP, port: haproxy}",
        ),
        Rule.PORTS,
        "base/network-policies.yaml",
        "spec.ingress[0].ports[3].port",
        "no selected pod has a port 'haproxy'",
    ),
    Mistake(
        "a monitor of a port that no pod has",
        change("base/pod-monitors.yaml", "port: haproxy-metrics", "port: haproxy"),
        Rule.PORTS,
        "base/pod-monitors.yaml",
        "spec.podMetricsEndpoints[3].port",
        "no selected pod has a port 'haproxy'",
    ),
    Mistake(
        "a policy that no longer holds L",
        change(
            f"{PROD}/settings/timings.yaml",
            'longestGenerationSeconds: "300"',
            'longestGenerationSeconds: "600"',
        ),
        Rule.TIMINGS,
        SERVE,
        f"{DEPLOYMENT}[2].graceful_shutdown_timeout_s",
        "before L + 30 = 630",
    ),
    Mistake(
        "HAProxy's own limit",
        change(
            f"{PROD}/settings/timings.yaml", 'haproxyHardStopSeconds: "360"', 'haproxyHardStopSeconds: "120"'
        ),
        Rule.TIMINGS,
        f"{PROD}/settings/timings.yaml",
        "spec.haproxyHardStopSeconds",
        "at least L + 60 = 360",
    ),
    Mistake(
        "a patch that tests another group",
        change(
            "components/models-pvc/rayservice.yaml",
            "path: /spec/rayClusterConfig/workerGroupSpecs/0/groupName, value: accelerator",
            "path: /metadata/name, value: twinpool",
        ),
        Rule.PATCH_TEST,
        "components/models-pvc/rayservice.yaml",
        "[1].path",
        "without a test of its groupName",
    ),
]


@needs_kubectl
@pytest.mark.long
@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_a_mistake_is_found_in_its_place(mistake: Mistake, tmp_path: Path) -> None:
    """One of the findings has the rule, the file, the field and the words; each has a line of that file."""
    found_in_its_place(mistake, tmp_path)


@pytest.mark.long
@needs_kubectl
def test_what_only_the_definitions_know(tmp_path: Path) -> None:
    """With KubeRay's schemas a value is found that our lists of fields take."""
    copy = Copy(tmp_path)
    scaling = "    enableInTreeAutoscaling: false\n"
    copy.edit(BASE, scaling, f"{scaling}    autoscalerOptions: {{upscalingMode: Fast}}\n")

    plain, strict = copy.report("prod"), copy.report("prod", crd_schemas())

    assert () == plain.findings
    assert [(Rule.CRD_SCHEMA, "spec.rayClusterConfig.autoscalerOptions.upscalingMode")] == [
        (finding.rule, finding.field) for finding in strict.findings
    ]


@needs_kubectl
def test_a_profile_that_is_slower_than_d(tmp_path: Path) -> None:
    """D is at least what a profile has measured for a stop and a start."""
    copy = Copy(tmp_path)
    copy.write(f"{PROD}/settings/profile.json", '{"moveSeconds": {"start": 200.5, "stop": 3.0}}')
    copy.edit(
        f"{PROD}/settings/kustomization.yaml",
        "  # - name: twinpool-profile\n  #   files: [profile.json]\n",
        "  - name: twinpool-profile\n    files: [profile.json]\n",
    )

    found = copy.findings("prod")

    assert [(Rule.TIMINGS, f"{PROD}/settings/timings.yaml", "spec.moveDelaySeconds")] == [
        (finding.rule, finding.file, finding.field) for finding in found
    ]
    assert "203.5 s" in found[0].message
