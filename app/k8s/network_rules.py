"""Rules about network policies: where there are any, each way that the service needs has to be open."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from app.k8s.documents import Document, Found, at, entries, mapping, pairs, whole
from app.k8s.fleet import Fleet
from app.k8s.pods import Group
from app.k8s.port_collisions import ingress_ports
from app.k8s.rules import Rule
from app.k8s.selectors import labels_of, takes
from app.k8s.timing_rules import HAPROXY_ENV
from autoscaling.policy_problem import Path
from autoscaling.types import Role
from deployments.config import INGRESS

SERVE_PORT = "serve"  # KubeRay makes its Service out of the port of this name
MONITORING = "twinpool.dev/monitoring"  # of a namespace that reads metrics and calls nothing
DNS, REDIS = 53, 6379
Ports = tuple[int, int]


def of_network(fleet: Fleet, documents: list[Document]) -> Iterator[Found]:
    """All findings about what policies leave shut."""
    policies = [document for document in documents if document.kind == "NetworkPolicy"]
    ingress = fleet.deployment(INGRESS)
    callers = [] if ingress is None else [group for group in fleet.workers if ingress.fits(group)]
    for role in Role if policies else ():
        pool = fleet.pool(role)
        for group in fleet.serving(role) if pool is not None else ():
            assert pool is not None
            yield from _open(
                fleet, policies, group, callers, pool.port_range, f"port_range of the {role} pool"
            )
    for group in callers if policies else ():
        if group.env(HAPROXY_ENV)[0] == "1":
            yield from _open(
                fleet, policies, group, list(fleet.workers), ingress_ports(group), "ports of the ingresses"
            )
    for group in fleet.workers if policies else ():
        yield from _callers(fleet, policies, group)
    for group in fleet.groups if policies else ():
        yield from _out(fleet, policies, group)


def _rules(
    fleet: Fleet, policies: list[Document], group: Group, way: str
) -> tuple[list[Document], list[tuple[Document, Path, Mapping[str, Any]]]]:
    """The policies that shut a way of a group, and their rules that open it again."""
    labels, key = labels_of(group, fleet.document.name), way.lower()
    selecting = []
    for document in policies:
        spec = mapping(document.data.get("spec"))
        ways = entries(spec.get("policyTypes")) or ["Ingress", *(["Egress"] if "egress" in spec else [])]
        if way in ways and takes(spec.get("podSelector"), labels):
            selecting.append(document)
    return selecting, [
        (document, ("spec", key, number), rule)
        for document in selecting
        for number, rule in pairs(at(document.data, "spec", key))
    ]


def _open(
    fleet: Fleet, policies: list[Document], target: Group, callers: list[Group], wanted: Ports, words: str
) -> Iterator[Found]:
    selecting, rules = _rules(fleet, policies, target, "Ingress")
    for caller in callers if selecting else ():
        fitting = [item for item in rules if _peers(fleet, item[2].get("from"), caller)]
        if any(_covers(rule, target, wanted) for _, _, rule in fitting):
            continue
        ranges = [
            (document, (*path, "ports"))
            for document, path, rule in fitting
            if any("endPort" in port for _, port in pairs(rule.get("ports")))
        ]
        where, path = ranges[-1] if ranges else (selecting[0], ("spec",))
        message = (
            f"nothing opens {wanted[0]}-{wanted[1]} ({words}) of group {target.name} to {caller.name} by TCP"
        )
        yield Found(Rule.PORTS, where, path, message)
        return


def _callers(fleet: Fleet, policies: list[Document], group: Group) -> Iterator[Found]:
    """Callers are in another namespace, or at an address: some rule lets one of those in."""
    port = group.ports().get(SERVE_PORT)
    selecting, rules = _rules(fleet, policies, group, "Ingress")
    if port is None or not selecting:
        return
    outside = [rule for _, _, rule in rules if _others(fleet, rule.get("from"))]
    if not any(_covers(rule, group, (port, port)) for rule in outside):
        words = (
            f"nothing opens the port `{SERVE_PORT}` ({port}) of {group.name} to callers (twinpool-callers)"
        )
        yield Found(Rule.PORTS, selecting[0], ("spec",), words)


def _others(fleet: Fleet, peers: Any) -> bool:
    """Whether a rule is for others than our own pods, and than those who only read metrics."""
    return not entries(peers) or any(
        "ipBlock" in peer
        or ("namespaceSelector" in peer and MONITORING not in _wanted(peer["namespaceSelector"]))
        or ("namespaceSelector" not in peer and not any(_peers(fleet, [peer], one) for one in fleet.groups))
        for _, peer in pairs(peers)
    )


def _wanted(selector: Any) -> Mapping[str, Any]:
    return mapping(mapping(selector).get("matchLabels"))


def _out(fleet: Fleet, policies: list[Document], group: Group) -> Iterator[Found]:
    """Names, the other Ray nodes, and the head's Redis."""
    selecting, rules = _rules(fleet, policies, group, "Egress")
    if not selecting:
        return
    found = [rule for _, _, rule in rules]
    others = [rule for rule in found if _others(fleet, rule.get("to"))]
    if not any(_covers(rule, group, (DNS, DNS), "UDP") for rule in others):
        words = f"nothing lets {group.name} ask for names: open UDP {DNS} in egress"
        yield Found(Rule.PORTS, selecting[0], ("spec", "egress"), words)
    for other in fleet.groups:
        low, high = min(ingress_ports(other)[0], 10002), max(other.ports().values(), default=DNS)
        peers = [rule for rule in found if _peers(fleet, rule.get("to"), other)]
        if not any(_covers(rule, other, (low, high)) for rule in peers):
            words = (
                f"nothing lets {group.name} reach the ports of {other.name}: Ray's nodes talk to each other"
            )
            yield Found(Rule.PORTS, selecting[0], ("spec", "egress"), words)
            break
    address = at(fleet.cluster, "gcsFaultToleranceOptions", "redisAddress")
    if group.head and address is not None:
        port = whole(str(address).rpartition(":")[2]) or REDIS
        if not any(_covers(rule, group, (port, port)) for rule in others):
            words = f"nothing lets the head reach Redis ({address}): open TCP {port} in egress"
            yield Found(Rule.PORTS, selecting[0], ("spec", "egress"), words)


def _peers(fleet: Fleet, peers: Any, group: Group) -> bool:
    labels = labels_of(group, fleet.document.name)
    return not entries(peers) or any(
        takes(peer.get("podSelector"), labels)
        for _, peer in pairs(peers)
        if "podSelector" in peer and "namespaceSelector" not in peer
    )


def _covers(rule: Mapping[str, Any], target: Group, wanted: Ports, protocol: str = "TCP") -> bool:
    ports = [port for _, port in pairs(rule.get("ports"))]
    if not ports:
        return True
    for port in ports:
        said = port.get("port")
        low = target.ports().get(said) if isinstance(said, str) else whole(said)
        if port.get("protocol", "TCP") != protocol:
            continue
        if said is None:
            return True
        high = whole(port.get("endPort")) or low
        if low is not None and high is not None and low <= wanted[0] and wanted[1] <= high:
            return True
    return False
