"""Rules about ports: Serve, containers, probes, HAProxy, routes, monitors and network policies agree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from app.k8s.documents import Document, Found, at, mapping, pairs
from app.k8s.fleet import Fleet
from app.k8s.network_rules import SERVE_PORT, of_network
from app.k8s.pods import Group
from app.k8s.port_collisions import of_collisions
from app.k8s.quantities import whole
from app.k8s.rules import Rule
from app.k8s.selectors import beside, labels_of, takes
from app.k8s.timing_rules import HAPROXY_ENV

DEFAULT_PORT = 8000
HAPROXY_PORTS = {
    "RAY_SERVE_HAPROXY_STATS_PORT": ("haproxy-stats", 8404),
    "RAY_SERVE_HAPROXY_METRICS_PORT": ("haproxy-metrics", 9101),
}
_PROBES = ("readinessProbe", "livenessProbe", "startupProbe")


def of_ports(fleet: Fleet, documents: list[Document]) -> Iterator[Found]:
    """All findings about ports."""
    port = whole(at(fleet.serve, "http_options", "port")) or DEFAULT_PORT
    for group in fleet.groups:
        yield from _containers(fleet, group, port)
        yield from _probes(fleet, group, port)
    for document in documents:
        yield from _routes(document, fleet, port)
        yield from _monitors(document, fleet)
        yield from _named_in_policies(document, fleet)
    yield from of_network(fleet, documents)
    yield from of_collisions(fleet)


def _containers(fleet: Fleet, group: Group, port: int) -> Iterator[Found]:
    ports, path = group.ports(), (*group.container_path, "ports")
    if ports.get(SERVE_PORT) != port:
        at_fault = next(
            (n for n, p in pairs(group.container.get("ports")) if p.get("name") == SERVE_PORT), None
        )
        where = path if at_fault is None else (*path, at_fault, "containerPort")
        words = (
            f"the port `{SERVE_PORT}` is {ports.get(SERVE_PORT)}; Serve listens on {port} (http_options.port)"
        )
        yield Found(Rule.PORTS, fleet.document, where, words)
    if group.env(HAPROXY_ENV)[0] == "1":
        for variable, (name, default) in HAPROXY_PORTS.items():
            text, where = group.env(variable)
            listens = whole(text) or default
            if ports.get(name) != listens:
                words = f"HAProxy listens on {listens} ({variable}); the port `{name}` is {ports.get(name)}"
                yield Found(Rule.PORTS, fleet.document, where if text else path, words)


def _probes(fleet: Fleet, group: Group, port: int) -> Iterator[Found]:
    for kind in _PROBES:
        for how in ("httpGet", "tcpSocket"):
            said = at(group.container, kind, how, "port")
            if said is None:
                continue
            where = (*group.container_path, kind, how, "port")
            number = group.ports().get(str(said)) if isinstance(said, str) else said
            health = str(at(group.container, kind, how, "path") or "").startswith("/-/")
            if number not in group.ports().values():
                yield Found(Rule.PORTS, fleet.document, where, f"the container has no port {said}")
            elif health and number != port:
                yield Found(Rule.PORTS, fleet.document, where, f"is {said}; Serve's health is on {port}")


def _routes(document: Document, fleet: Fleet, port: int) -> Iterator[Found]:
    if document.kind != "HTTPRoute":
        return
    for rule, said in pairs(at(document.data, "spec", "rules")):
        for index, backend in pairs(said.get("backendRefs")):
            if backend.get("name") == f"{fleet.document.name}-serve-svc" and backend.get("port") != port:
                where = ("spec", "rules", rule, "backendRefs", index, "port")
                yield Found(Rule.PORTS, document, where, f"is {backend.get('port')}; Serve listens on {port}")


def _monitors(document: Document, fleet: Fleet) -> Iterator[Found]:
    if document.kind != "PodMonitor":
        return
    known = _known_ports(fleet, at(document.data, "spec", "selector"))
    for index, endpoint in pairs(at(document.data, "spec", "podMetricsEndpoints")):
        by_number = endpoint.keys() & {"portNumber", "targetPort"} and "port" not in endpoint
        if known is not None and not by_number and str(endpoint.get("port")) not in known:
            where = ("spec", "podMetricsEndpoints", index, "port")
            yield Found(Rule.PORTS, document, where, f"no selected pod has a port {endpoint.get('port')!r}")


def _selected(fleet: Fleet, selector: Mapping[str, Any]) -> list[Group]:
    """The groups whose pods a selector of labels takes."""
    return [group for group in fleet.groups if takes(selector, labels_of(group, fleet.document.name))]


def _known_ports(fleet: Fleet, selector: Any) -> set[str] | None:
    """Names of the ports of the pods that a selector takes; None when it takes none of ours."""
    selected = _selected(fleet, mapping(selector))
    return {name for group in selected for name in group.ports()} if selected else None


def _named_in_policies(document: Document, fleet: Fleet) -> Iterator[Found]:
    if document.kind != "NetworkPolicy" or not beside(document, fleet.document):
        return
    known = _known_ports(fleet, at(document.data, "spec", "podSelector"))
    for rule, said in pairs(at(document.data, "spec", "ingress")):
        for index, port in pairs(said.get("ports")):
            name = port.get("port")
            if known is not None and isinstance(name, str) and name not in known:
                where = ("spec", "ingress", rule, "ports", index, "port")
                yield Found(Rule.PORTS, document, where, f"no selected pod has a port {name!r}")
