"""The fields of Ray's objects in KubeRay 1.7, outside of pod templates.

Names and types only, so that a mistyped field is found without the CustomResourceDefinitions.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel


class Fields(BaseModel):
    """Base of all: camel case, no other keys, no conversions."""

    model_config = ConfigDict(extra="forbid", strict=True, alias_generator=to_camel)


class Object(Fields):
    """What every object has."""

    api_version: str
    kind: str
    metadata: dict[str, Any]
    status: dict[str, Any] | None = None  # in what `kubectl get` prints


class _Gateway(Fields):
    gateway_class_name: str
    interval_seconds: int
    step_size_percent: int
    max_surge_percent: int | None = None


class _ServiceUpgrade(Fields):
    type: str | None = None
    cluster_upgrade_options: _Gateway | None = None


class _ClusterUpgrade(Fields):
    type: str | None = None


class _Auth(Fields):
    """Ray's own token: ours, since one that the operator makes ends with its RayCluster."""

    enable_token: bool | None = Field(None, alias="enableK8sTokenAuth")
    mode: Literal["token", "disabled"] = "disabled"
    secret_name: str | None = Field(None, min_length=1)

    @model_validator(mode="after")
    def _named(self) -> _Auth:
        if self.mode == "token" and self.secret_name is None:
            raise ValueError("mode is token: say in secretName which Secret holds it")
        return self


class _SecretKey(Fields):
    key: str = Field(min_length=1)
    name: str = Field(min_length=1)
    optional: bool | None = None


class _SecretSource(Fields):
    secret_key_ref: _SecretKey


class _Secret(Fields):
    """A secret by its name; `value` would be in Git."""

    value_from: _SecretSource


class _Autoscaler(Fields):
    args: list[str] | None = None
    command: list[str] | None = None
    env: list[dict[str, Any]] | None = None
    env_from: list[dict[str, Any]] | None = None
    idle_timeout_seconds: int | None = None
    image: str | None = None
    image_pull_policy: str | None = None
    resources: dict[str, Any] | None = None
    security_context: dict[str, Any] | None = None
    upscaling_mode: str | None = None
    version: str | None = None
    volume_mounts: list[dict[str, Any]] | None = None


class _FaultTolerance(Fields):
    backend: str | None = None
    external_storage_namespace: str | None = None
    redis_address: str | None = None
    redis_password: _Secret | None = None
    redis_username: dict[str, Any] | None = None
    storage: dict[str, Any] | None = None


class _Head(Fields):
    enable_ingress: bool | None = None
    head_service: dict[str, Any] | None = None
    ingress_options: dict[str, Any] | None = None
    labels: dict[str, str] | None = None
    ray_start_params: dict[str, str] = {}
    resources: dict[str, str] | None = None
    service_type: str | None = None
    template: dict[str, Any]


class _Group(Fields):
    group_name: str
    idle_timeout_seconds: int | None = None
    labels: dict[str, str] | None = None
    max_replicas: int | None = None
    min_replicas: int | None = None
    num_of_hosts: int | None = None
    priority: int | None = None
    ray_start_params: dict[str, str] = {}
    replicas: int | None = None
    resources: dict[str, str] | None = None
    scale_strategy: dict[str, Any] | None = None
    suspend: bool | None = None
    template: dict[str, Any]


class _Cluster(Fields):
    auth_options: _Auth | None = None
    autoscaler_options: _Autoscaler | None = None
    enable_in_tree_autoscaling: bool | None = None
    gcs_fault_tolerance_options: _FaultTolerance | None = None
    head_group_spec: _Head
    head_service_annotations: dict[str, str] | None = None
    history_server_options: dict[str, Any] | None = None
    managed_by: str | None = None
    network_policy: dict[str, Any] | None = None
    ray_version: str | None = None
    suspend: bool | None = None
    tls_options: dict[str, Any] | None = None
    upgrade_strategy: _ClusterUpgrade | None = None
    worker_group_specs: list[_Group] = []


class _ServiceSpec(Fields):
    deployment_unhealthy_second_threshold: int | None = None
    exclude_head_pod_from_serve_svc: bool | None = None
    managed_by: str | None = None
    ray_cluster_config: _Cluster
    ray_cluster_deletion_delay_seconds: int | None = None
    serve_config: str | None = Field(None, alias="serveConfigV2")
    serve_service: dict[str, Any] | None = None
    service_unhealthy_second_threshold: int | None = None
    suspend: bool | None = None
    upgrade_strategy: _ServiceUpgrade | None = None


class RayService(Object):
    """ray.io/v1."""

    spec: _ServiceSpec


class RayCluster(Object):
    """ray.io/v1."""

    spec: _Cluster


class _JobSpec(Fields):
    active_deadline_seconds: int | None = None
    backoff_limit: int | None = None
    cluster_selector: dict[str, str] | None = None
    deletion_strategy: dict[str, Any] | None = None
    entrypoint: str | None = None
    entrypoint_num_cpus: float | None = None
    entrypoint_num_gpus: float | None = None
    entrypoint_resources: str | None = None
    job_id: str | None = None
    managed_by: str | None = None
    metadata: dict[str, str] | None = None
    ray_cluster_spec: _Cluster | None = None
    runtime_env_yaml: str | None = Field(None, alias="runtimeEnvYAML")
    shutdown_after_job_finishes: bool | None = None
    submission_mode: str | None = None
    submitter_config: dict[str, Any] | None = None
    submitter_pod_template: dict[str, Any] | None = None
    suspend: bool | None = None
    ttl_seconds_after_finished: int | None = None


class RayJob(Object):
    """ray.io/v1."""

    spec: _JobSpec


RAY = "ray.io/v1"
KINDS: dict[tuple[str, str], type[BaseModel]] = {
    (RAY, "RayService"): RayService,
    (RAY, "RayCluster"): RayCluster,
    (RAY, "RayJob"): RayJob,
}
