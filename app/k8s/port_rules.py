"""Rules about ports: Serve, containers, probes, HAProxy, routes, monitors and network policies agree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from app.k8s.documents import Document, Found, at, entries, mapping, pairs, whole
from app.k8s.fleet import Fleet
from app.k8s.pods import Group
from app.k8s.rules import Rule
from app.k8s.selectors import beside, namespace_labels, selects
from app.k8s.timing_rules import HAPROXY_ENV
from autoscaling.policy_problem import Path
from autoscaling.types import Role
from deployments.config import INGRESS

SERVE_PORT = "serve"  # KubeRay makes its Service out of the port of this name
DEFAULT_PORT = 8000
HAPROXY_PORTS = {
    "RAY_SERVE_HAPROXY_STATS_PORT": ("haproxy-stats", 8404),
    "RAY_SERVE_HAPROXY_METRICS_PORT": ("haproxy-metrics", 9101),
}
INGRESS_PORTS = ("RAY_SERVE_DIRECT_INGRESS_MIN_HTTP_PORT", "RAY_SERVE_DIRECT_INGRESS_MAX_HTTP_PORT")
DEFAULT_INGRESS_PORTS = (30000, 31000)
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
    yield from _opened(fleet, documents)


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
    return [group for group in fleet.groups if selects(selector, group.pod_labels)]


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


def _opened(fleet: Fleet, documents: list[Document]) -> Iterator[Found]:
    """Whether policies, if there are any, let ingresses reach the replicas, and HAProxy the ingresses."""
    policies = [
        document
        for document in documents
        if document.kind == "NetworkPolicy" and beside(document, fleet.document)
    ]
    if not policies:
        return
    policies += [document for document in documents if document.kind == "Namespace"]  # their labels
    ingress = fleet.deployment(INGRESS)
    callers = [] if ingress is None else [group for group in fleet.workers if ingress.fits(group)]
    for role in Role:
        pool = fleet.pool(role)
        for group in fleet.serving(role) if pool is not None else ():
            assert pool is not None
            yield from _open(
                fleet, policies, group, callers, pool.port_range, f"port_range of the {role} pool"
            )
    for group in callers:
        if group.env(HAPROXY_ENV)[0] == "1":
            low, high = (
                whole(group.env(name)[0]) or default
                for name, default in zip(INGRESS_PORTS, DEFAULT_INGRESS_PORTS, strict=True)
            )
            yield from _open(
                fleet, policies, group, list(fleet.workers), (low, high), "ports of the ingresses"
            )


def _open(
    fleet: Fleet,
    policies: list[Document],
    target: Group,
    callers: list[Group],
    wanted: tuple[int, int],
    words: str,
) -> Iterator[Found]:
    selecting = [
        document
        for document in policies
        if document.kind == "NetworkPolicy"
        and target in _selected(fleet, mapping(at(document.data, "spec", "podSelector")))
        and "Ingress" in (entries(at(document.data, "spec", "policyTypes")) or ["Ingress"])
    ]
    home = namespace_labels(fleet.document, policies)
    for caller in callers if selecting else ():
        rules: list[tuple[Document, Path, Mapping[str, Any]]] = [
            (document, ("spec", "ingress", number, "ports"), rule)
            for document in selecting
            for number, rule in pairs(at(document.data, "spec", "ingress"))
            if _from(rule, caller, home)
        ]
        if _covers([rule for _, _, rule in rules], target, wanted):
            continue
        ranges = [(document, path) for document, path, _ in rules if _has_range(document, path)]
        where, path = ranges[-1] if ranges else (selecting[0], ("spec",))
        message = f"nothing opens {wanted[0]}-{wanted[1]} ({words}) of group {target.name} to {caller.name}"
        yield Found(Rule.PORTS, where, path, message)
        return


def _has_range(document: Document, path: Path) -> bool:
    return any("endPort" in port for _, port in pairs(at(document.data, *path)))


def _from(rule: Mapping[str, Any], caller: Group, home: Mapping[str, Any]) -> bool:
    """Whether a rule lets in a group's pods, whose namespace has the labels `home`."""
    peers = [mapping(peer) for peer in entries(rule.get("from"))]
    return not peers or any(
        selects(mapping(peer.get("podSelector")), caller.pod_labels)
        and ("namespaceSelector" not in peer or selects(mapping(peer["namespaceSelector"]), home))
        for peer in peers
        if "podSelector" in peer or "namespaceSelector" in peer
    )


def _covers(rules: list[Mapping[str, Any]], target: Group, wanted: tuple[int, int]) -> bool:
    """Whether rules open a range together: one without ports opens every port."""
    ports = [port for rule in rules for _, port in pairs(rule.get("ports"))]
    if any(not entries(rule.get("ports")) for rule in rules):
        return True
    opened = []
    for port in ports:
        said = port.get("port")
        low = target.ports().get(said) if isinstance(said, str) else whole(said)
        high = whole(port.get("endPort")) or low
        if low is not None and high is not None:
            opened.append((low, high))
    following = wanted[0]
    for low, high in sorted(opened):
        if low <= following:
            following = max(following, high + 1)
    return following > wanted[1]
