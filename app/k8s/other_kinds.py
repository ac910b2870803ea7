"""The fields of three kinds of other operators: PodMonitor, PrometheusRule, HTTPRoute."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from app.k8s.ray_kinds import Fields, Object


class _Relabelling(Fields):
    action: str | None = None
    modulus: int | None = None
    regex: str | None = None
    replacement: str | None = None
    separator: str | None = None
    source_labels: list[str] | None = None
    target_label: str | None = None


class _Endpoint(Fields):
    authorization: dict[str, Any] | None = None
    basic_auth: dict[str, Any] | None = None
    bearer_token_secret: dict[str, Any] | None = None
    enable_http2: bool | None = None
    filter_running: bool | None = None
    follow_redirects: bool | None = None
    honor_labels: bool | None = None
    honor_timestamps: bool | None = None
    interval: str | None = None
    metric_relabelings: list[_Relabelling] | None = None
    no_proxy: str | None = None
    oauth2: dict[str, Any] | None = None
    params: dict[str, list[str]] | None = None
    path: str | None = None
    port: str | None = None
    port_number: int | None = None
    proxy_connect_header: dict[str, Any] | None = None
    proxy_from_environment: bool | None = None
    proxy_url: str | None = None
    relabelings: list[_Relabelling] | None = None
    scheme: str | None = None
    scrape_timeout: str | None = None
    target_port: int | str | None = None
    tls_config: dict[str, Any] | None = None
    track_timestamps_staleness: bool | None = None


class _Labels(Fields):
    match_labels: dict[str, str] | None = None
    match_expressions: list[dict[str, Any]] | None = None


class _MonitorSpec(Fields):
    attach_metadata: dict[str, Any] | None = None
    body_size_limit: str | None = None
    convert_classic_histograms: bool | None = Field(None, alias="convertClassicHistogramsToNHCB")
    fallback_scrape_protocol: str | None = None
    job_label: str | None = None
    keep_dropped_targets: int | None = None
    label_limit: int | None = None
    label_name_length_limit: int | None = None
    label_value_length_limit: int | None = None
    namespace_selector: dict[str, Any] | None = None
    native_histogram_bucket_limit: int | None = None
    native_histogram_min_bucket_factor: int | str | None = None
    pod_metrics_endpoints: list[_Endpoint]
    pod_target_labels: list[str] | None = None
    sample_limit: int | None = None
    scrape_class: str | None = None
    scrape_classic_histograms: bool | None = None
    scrape_native_histograms: bool | None = None
    scrape_protocols: list[str] | None = None
    selector: _Labels
    selector_mechanism: str | None = None
    target_limit: int | None = None


class PodMonitor(Object):
    """monitoring.coreos.com/v1."""

    spec: _MonitorSpec


class _Alert(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    alert: str | None = None
    record: str | None = None
    expr: str | int
    pending: str | None = Field(None, alias="for")
    keep_firing_for: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class _RuleGroup(Fields):
    name: str
    interval: str | None = None
    labels: dict[str, str] | None = None
    limit: int | None = None
    partial_response_strategy: str | None = Field(None, alias="partial_response_strategy")
    query_offset: str | None = Field(None, alias="query_offset")
    rules: list[_Alert]


class _RulesSpec(Fields):
    groups: list[_RuleGroup]


class PrometheusRule(Object):
    """monitoring.coreos.com/v1."""

    spec: _RulesSpec


class _Parent(Fields):
    name: str
    namespace: str | None = None
    section_name: str | None = None
    port: int | None = None
    kind: str | None = None
    group: str | None = None


class _Backend(Fields):
    name: str
    namespace: str | None = None
    port: int
    weight: int | None = None
    filters: list[dict[str, Any]] | None = None
    kind: str | None = None
    group: str | None = None


class _Value(Fields):
    type: str | None = None
    value: str | None = None


class _Match(Fields):
    path: _Value | None = None
    method: str | None = None
    headers: list[dict[str, str]] | None = None
    query_params: list[dict[str, str]] | None = None


class _Timeouts(Fields):
    request: str | None = None
    backend_request: str | None = None


class _RouteRule(Fields):
    name: str | None = None
    matches: list[_Match] | None = None
    filters: list[dict[str, Any]] | None = None
    backend_refs: list[_Backend] | None = None
    retry: dict[str, Any] | None = None
    session_persistence: dict[str, Any] | None = None
    timeouts: _Timeouts | None = None


class _RouteSpec(Fields):
    parent_refs: list[_Parent] | None = None
    hostnames: list[str] | None = None
    rules: list[_RouteRule] | None = None


class HTTPRoute(Object):
    """gateway.networking.k8s.io/v1."""

    spec: _RouteSpec


KINDS: dict[tuple[str, str], type[BaseModel]] = {
    ("monitoring.coreos.com/v1", "PodMonitor"): PodMonitor,
    ("monitoring.coreos.com/v1", "PrometheusRule"): PrometheusRule,
    ("gateway.networking.k8s.io/v1", "HTTPRoute"): HTTPRoute,
}
