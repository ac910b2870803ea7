"""The fields of three kinds of other operators: PodMonitor, PrometheusRule, HTTPRoute."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from app.k8s.ray_kinds import Fields, Object


class _Relabelling(Fields):
    action: str | None = None
    regex: str | None = None
    replacement: str | None = None
    separator: str | None = None
    source_labels: list[str] | None = None
    target_label: str | None = None


class _Endpoint(Fields):
    honor_labels: bool | None = None
    interval: str | None = None
    metric_relabelings: list[_Relabelling] | None = None
    path: str | None = None
    port: str
    relabelings: list[_Relabelling] | None = None
    scheme: str | None = None
    scrape_timeout: str | None = None


class _Labels(Fields):
    match_labels: dict[str, str] | None = None
    match_expressions: list[dict[str, Any]] | None = None


class _MonitorSpec(Fields):
    job_label: str | None = None
    namespace_selector: dict[str, Any] | None = None
    pod_metrics_endpoints: list[_Endpoint]
    pod_target_labels: list[str] | None = None
    selector: _Labels


class PodMonitor(Object):
    """monitoring.coreos.com/v1."""

    spec: _MonitorSpec


class _Alert(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    alert: str | None = None
    record: str | None = None
    expr: str
    pending: str | None = Field(None, alias="for")
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class _RuleGroup(Fields):
    name: str
    interval: str | None = None
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
    kind: str | None = None
    group: str | None = None


class _Value(Fields):
    type: str | None = None
    value: str | None = None


class _Match(Fields):
    path: _Value | None = None
    method: str | None = None
    headers: list[dict[str, str]] | None = None


class _Timeouts(Fields):
    request: str | None = None
    backend_request: str | None = None


class _RouteRule(Fields):
    name: str | None = None
    matches: list[_Match] | None = None
    filters: list[dict[str, Any]] | None = None
    backend_refs: list[_Backend] | None = None
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
