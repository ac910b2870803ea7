"""The rules of `twinpool k8s lint`: what each wants, and why."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Reason:
    """The words of a rule, for people."""

    wants: str
    why: str


class Rule(StrEnum):
    """Every rule by its id, which stands in each finding."""

    YAML = "yaml"
    DUPLICATE_OBJECT = "duplicate-object"
    KIND = "kind"
    CORE_SCHEMA = "core-schema"
    RAY_FIELDS = "ray-fields"
    CRD_SCHEMA = "crd-schema"
    POD_SCHEMA = "pod-schema"
    OTHER_FIELDS = "other-fields"
    QUANTITY = "quantity"
    SERVE_SCHEMA = "serve-schema"
    SERVE_KEY = "serve-key"
    SERVE_OPTIONS = "serve-options"
    AUTOSCALING_CONFIG = "autoscaling-config"
    INITIAL_REPLICAS = "initial-replicas"
    IMPORT_PATH = "import-path"
    DEPLOYMENT_NAMES = "deployment-names"
    SETTINGS = "settings"
    ADMIN_OPEN = "admin-open"
    CEILING = "ceiling"
    POLICY = "policy"
    CAPACITY = "capacity"
    GROUP_SIZE = "group-size"
    ONE_GROUP = "one-group"
    PLACEMENT = "placement"
    TIMINGS = "timings"
    TIMINGS_FILE = "timings-file"
    WIRING = "wiring"
    PORTS = "ports"
    MOUNTS = "mounts"
    REFERENCES = "references"
    MODEL_FOLDER = "model-folder"
    ONE_MODEL = "one-model"
    POLICY_HASH = "policy-hash"
    POLICY_SUBPATH = "policy-subpath"
    STATE_PER_CLUSTER = "state-per-cluster"
    IMAGE_DIGEST = "image-digest"
    IMAGE_SAME = "image-same"
    RAY_VERSION = "ray-version"
    ARCHITECTURE = "architecture"
    PROCESS_GROUPS = "process-groups"
    ENVIRONMENT = "environment"
    OPERATORS_ENV = "operators-env"
    RESOURCES = "resources"
    SECURITY = "security"
    API_TOKEN = "api-token"  # noqa: S105  # the id of a rule
    HEAD_IDLE = "head-idle"
    UPGRADE = "upgrade"
    UPGRADE_DEMAND = "upgrade-demand"
    RAY_65102 = "ray-65102"
    DISRUPTION_BUDGET = "disruption-budget"
    NAME = "name"
    DEPRECATED = "deprecated"
    GATED = "gated"
    SECRET_DATA = "secret-data"  # noqa: S105
    PATCH_TEST = "patch-test"
    PATCH_GROUPS = "patch-groups"


_ONE_CLUSTER = "a second RayCluster is made, with as many accelerators again"

RULES: dict[Rule, Reason] = {
    Rule.YAML: Reason(
        "Every file is YAML without duplicate keys.",
        "Of a repeated key the last one counts, and nobody sees which.",
    ),
    Rule.DUPLICATE_OBJECT: Reason(
        "No two objects have one kind, namespace and name.",
        "The second overwrites the first when they are applied.",
    ),
    Rule.KIND: Reason(
        "Every object of a group of Kubernetes itself is of a kind and version of it; one of another group "
        "is no near miss of a kind or group that is known here (without `--crds` its fields are not checked, "
        "which a note says).",
        "An unknown kind is mostly a mistyped one, which the cluster refuses in the middle of a rollout.",
    ),
    Rule.CORE_SCHEMA: Reason(
        "Objects of Kubernetes itself have known fields of the right type.",
        "The API server drops an unknown field with no more than a warning.",
    ),
    Rule.RAY_FIELDS: Reason(
        "A RayService, its cluster, its groups and a RayJob have known fields of the right type.",
        "The API server drops an unknown field, so a mistyped `maxReplicas` is no limit at all.",
    ),
    Rule.CRD_SCHEMA: Reason(
        "Objects of Ray's and of any other group are what their CustomResourceDefinition says, when it is "
        "given.",
        "It knows every field of the version that is installed; it is not part of this repository.",
    ),
    Rule.POD_SCHEMA: Reason(
        "Pod templates of Ray's groups are pod templates.",
        "Ray's CRD is checked only when the object is made; the pod is made by the operator, much later.",
    ),
    Rule.OTHER_FIELDS: Reason(
        "PodMonitor, PrometheusRule and HTTPRoute have known fields of the right type.",
        "A mistyped field is dropped: nothing is scraped, or a limit of a gateway stays at its default.",
    ),
    Rule.QUANTITY: Reason(
        "Quantities have a unit of Kubernetes that can be meant.",
        "`64GB` is refused by the cluster, and `64m` of memory is 0.064 bytes.",
    ),
    Rule.SERVE_SCHEMA: Reason(
        "`serveConfigV2` is what Ray Serve's schema takes.",
        "KubeRay passes the text on; a mistake is found after the pods are up.",
    ),
    Rule.SERVE_KEY: Reason(
        "`serveConfigV2` has known keys only.",
        "Ray Serve drops an unknown key without a word: `num_replica: 4` is one replica.",
    ),
    Rule.SERVE_OPTIONS: Reason(
        "Serve listens for other pods at /, never queues, cuts no stream before L, scales nothing by itself "
        "and fetches nothing.",
        "Serve takes each of these options, and admission, sizes and long answers are twinpool's.",
    ),
    Rule.AUTOSCALING_CONFIG: Reason(
        "Each `autoscaling_config` is whole, with min_replicas <= max_replicas.",
        "Ray Serve keeps it as a plain mapping and fails at the deploy, or at every tick.",
    ),
    Rule.INITIAL_REPLICAS: Reason(
        "No deployment sets `initial_replicas`.",
        "Any change of the config goes back to them, and they stay a floor after an incremental upgrade "
        "(ray#65231).",
    ),
    Rule.IMPORT_PATH: Reason(
        "`import_path` and every `policy_function` name something that this version of twinpool has.",
        "It is imported inside the cluster, after the pods are up.",
    ),
    Rule.DEPLOYMENT_NAMES: Reason(
        "The application's name and deployments, the actuator and its names are the code's.",
        "A deployment that the code lacks fails the whole deploy; settings of a missing one are lost.",
    ),
    Rule.SETTINGS: Reason(
        "The settings in the deployments' environments are what the code's own models take.",
        "A replica refuses wrong settings at its start, one after the other, for ever.",
    ),
    Rule.ADMIN_OPEN: Reason(
        "`admin_writable` is false where others can reach the port.",
        "There are no keys yet: whoever reaches it could hold or force capacity.",
    ),
    Rule.CEILING: Reason(
        "The ceiling is one number, Serve's bounds are as wide as it allows, and a service begins within it.",
        "A narrower bound of Serve's clamps the plan behind the policy's back; more replicas wait for ever.",
    ),
    Rule.POLICY: Reason(
        "The policy file is valid, and fits what the controller is told of the pools.",
        "The controller refuses it, and a new service has no last good one.",
    ),
    Rule.CAPACITY: Reason(
        "Sum of the pools' minimums <= budget, and budget with surgeSlots = accelerators of the groups.",
        "More replicas than accelerators wait for ever, and a move with them; more accelerators are idle for "
        "ever.",
    ),
    Rule.GROUP_SIZE: Reason(
        "Every group says minReplicas <= replicas <= maxReplicas, the same number without Ray's autoscaler.",
        "Without the autoscaler nothing brings a group above its minimum.",
    ),
    Rule.ONE_GROUP: Reason(
        "One group serves both pools; with one for each, D is at least the stated cost of a move.",
        "A move between groups waits for a pod to idle out and for another to come up.",
    ),
    Rule.PLACEMENT: Reason(
        "Every deployment has a group that fits its labels and resources; every group with accelerators has "
        "a pool that fits.",
        "Its replicas would be pending for ever, or its accelerators idle.",
    ),
    Rule.TIMINGS: Reason(
        "With L and D: Serve's shutdown >= L, Ray's drain >= L + D + 30, the pod's grace >= Ray's drain "
        "+ 30, the cluster's deletion >= the pod's grace, HAProxy's hard stop >= L + 60.",
        "The shortest of them cuts every stream that is longer.",
    ),
    Rule.TIMINGS_FILE: Reason(
        "`settings/timings.yaml` has the apiVersion, kind and fields that are known, all of them.",
        "kustomize copies single fields of it, and names another file when one is not there.",
    ),
    Rule.WIRING: Reason(
        "`components/wiring` is there, as the last component.",
        "It copies the settings into what stands before it; what comes later keeps its placeholders.",
    ),
    Rule.PORTS: Reason(
        "Ports agree between Serve, containers, services, probes, routes, monitors and network policies.",
        "What differs answers nobody, and only callers notice.",
    ),
    Rule.MOUNTS: Reason(
        "What the settings name is mounted where they name it, and what is mounted is named.",
        "A policy or profile that is mounted and not named is without effect, and nothing says so.",
    ),
    Rule.REFERENCES: Reason(
        "What an object names is there: claims, accounts, priority classes, ConfigMaps with their keys, "
        "Redis; a selector takes some pod.",
        "The pods are not made or never start; a selector without pods says nothing at all.",
    ),
    Rule.MODEL_FOLDER: Reason(
        "`engine.model` is the folder that the pods check, and no id of the hub where the hub is forbidden.",
        "The engine would find no model, or serve another one than the one whose bytes were checked.",
    ),
    Rule.ONE_MODEL: Reason(
        "Both pools have one `served_name`.",
        "A request names a model, and may go to either pool: an engine refuses a name that is not its own.",
    ),
    Rule.POLICY_HASH: Reason(
        "The policy's ConfigMap has a stable name, without a hash.",
        f"With a hash every edit changes the pod templates: {_ONE_CLUSTER}.",
    ),
    Rule.POLICY_SUBPATH: Reason(
        "ConfigMaps are mounted as folders, never by `subPath`.",
        "A file that is mounted by `subPath` never changes: an edit of the policy is not seen.",
    ),
    Rule.STATE_PER_CLUSTER: Reason(
        "The controller's state is on a volume that all pods can write, in a folder for each RayCluster.",
        "During an upgrade two controllers run: on one folder they shut each other out in turn.",
    ),
    Rule.IMAGE_DIGEST: Reason(
        "Images are named by digest in prod, and by a tag other than `latest` elsewhere.",
        "A tag that is moved gives the next pod another version than its neighbours.",
    ),
    Rule.IMAGE_SAME: Reason(
        "Head and workers run one image.",
        "Ray refuses to join nodes of different versions of Ray or Python.",
    ),
    Rule.RAY_VERSION: Reason(
        "`rayVersion` is the version that this twinpool is built with.",
        "KubeRay chooses probes and start parameters by it.",
    ),
    Rule.ARCHITECTURE: Reason(
        "Every pod of our image names its CPU architecture.",
        "On another architecture the image ends with `exec format error`, again and again.",
    ),
    Rule.PROCESS_GROUPS: Reason(
        "`RAY_process_group_cleanup_enabled` is 1 in every Ray container.",
        "Without it a replica that is killed leaves its engine and the accelerator's memory behind.",
    ),
    Rule.ENVIRONMENT: Reason(
        "A variable stands once, HAProxy is on or off in all groups alike, and the controller has one loop.",
        "Of a repeated name the last one counts, and Ray reads every switch but `1` as off.",
    ),
    Rule.OPERATORS_ENV: Reason(
        "Environment that the operator owns is not set by hand.",
        "KubeRay refuses it beside `gcsFaultToleranceOptions` and `authOptions`, or is overruled by it.",
    ),
    Rule.RESOURCES: Reason(
        "Memory and accelerators are requested as much as they are limited; pods with accelerators have no "
        "CPU limit.",
        "Memory beyond the request is taken away under pressure; a throttled CPU makes tokens slow.",
    ),
    Rule.SECURITY: Reason(
        "Pods run as a user without rights: no root, no escalation, no capabilities, seccomp's default.",
        "The namespace demands it (restricted), and a pod that differs is not admitted.",
    ),
    Rule.API_TOKEN: Reason(
        "Pods get no token for the API server; the head gets one with Ray's autoscaler.",
        "Nobody else needs it, and the autoscaler can do nothing without it.",
    ),
    Rule.HEAD_IDLE: Reason(
        "The head has `num-cpus: 0`, no accelerator, and is no target of the service.",
        "Work on the head takes memory from the GCS, whose end is the end of the cluster.",
    ),
    Rule.UPGRADE: Reason(
        "The upgrade strategy is a known one, its steps fit, and there is one route to the service.",
        "The CRD takes any text as a strategy, and callers of another route are not moved step by step.",
    ),
    Rule.UPGRADE_DEMAND: Reason(
        "The accelerators that an upgrade needs at once are within the quota, and there is a quota.",
        "The new cluster stays Pending for ever, while the old one serves the old version.",
    ),
    Rule.RAY_65102: Reason(
        "Not all three of GCS fault tolerance, incremental upgrade and HAProxy.",
        "Together they lose requests in an upgrade: ray#65102.",
    ),
    Rule.DISRUPTION_BUDGET: Reason(
        "Each group of several pods has a budget with AlwaysAllow and a whole minAvailable of its size less "
        "one; the head has none.",
        "A budget of all pods blocks the drain of a node for ever; with a smaller one, or none, a drain "
        "takes several at once.",
    ),
    Rule.NAME: Reason(
        "Names of Ray's objects are short DNS labels.",
        "The operator makes names of pods and services out of them and fails when they get too long.",
    ),
    Rule.DEPRECATED: Reason(
        "No field that KubeRay ignores.",
        "It looks like a limit and is none.",
    ),
    Rule.GATED: Reason(
        "No field whose feature gate is off in the operator's default settings.",
        "KubeRay refuses the whole object.",
    ),
    Rule.SECRET_DATA: Reason(
        "No Secret with data, no generator of one, and no token or password as a plain value.",
        "What is in Git is known to everybody who reads Git, for ever.",
    ),
    Rule.PATCH_TEST: Reason(
        "A JSON patch begins with `test`, and one of a group tests the group's name.",
        "Groups are numbered: after an insertion the patch would silently change another one.",
    ),
    Rule.PATCH_GROUPS: Reason(
        "No strategic merge of `workerGroupSpecs`.",
        "kustomize replaces the whole list: every group that the patch does not name is gone.",
    ),
}
