"""Rules about network policies: where there are any, each way that the service needs has to be open."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from app.k8s.documents import Document, Found, at, entries, mapping, pairs
from app.k8s.fleet import Fleet
from app.k8s.pods import Group
from app.k8s.port_collisions import ingress_ports
from app.k8s.quantities import whole
from app.k8s.rules import Rule
from app.k8s.selectors import NAMESPACE_LABEL, beside, labels_of, namespace_labels, takes
from app.k8s.timing_rules import HAPROXY_ENV
from autoscaling.policy_problem import Path
from autoscaling.types import Role
from deployments.config import INGRESS

SERVE_PORT = "serve"  # KubeRay makes its Service out of the port of this name
MONITORING = "twinpool.dev/monitoring"  # of a namespace that reads metrics and calls nothing
DNS, REDIS = 53, 6379
Ports = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Network:
    """A service with the policies of its namespace, and the labels of that."""

    fleet: Fleet
    policies: list[Document]
    home: Mapping[str, Any]


def of_network(fleet: Fleet, documents: list[Document]) -> Iterator[Found]:
    """All findings about what policies leave shut."""
    policies = [
        document
        for document in documents
        if document.kind == "NetworkPolicy" and beside(document, fleet.document)
    ]
    network = _Network(fleet, policies, namespace_labels(fleet.document, documents))
    ingress = fleet.deployment(INGRESS)
    callers = [] if ingress is None else [group for group in fleet.workers if ingress.fits(group)]
    for role in Role if policies else ():
        pool = fleet.pool(role)
        for group in fleet.serving(role) if pool is not None else ():
            assert pool is not None
            yield from _open(network, group, callers, pool.port_range, f"port_range of the {role} pool")
    for group in callers if policies else ():
        if group.env(HAPROXY_ENV)[0] == "1":
            workers, wanted = list(fleet.workers), ingress_ports(group)
            yield from _open(network, group, workers, wanted, "ports of the ingresses")
    for group in fleet.workers if policies else ():
        yield from _callers(network, group)
    for group in fleet.groups if policies else ():
        yield from _out(network, group)


def _rules(
    network: _Network, group: Group, way: str
) -> tuple[list[Document], list[tuple[Document, Path, Mapping[str, Any]]]]:
    """The policies that shut a way of a group, and their rules that open it again."""
    labels, key = labels_of(group, network.fleet.document.name), way.lower()
    selecting = []
    for document in network.policies:
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
    network: _Network, target: Group, callers: list[Group], wanted: Ports, words: str
) -> Iterator[Found]:
    selecting, rules = _rules(network, target, "Ingress")
    for caller in callers if selecting else ():
        fitting = [item for item in rules if _peers(network, item[2].get("from"), caller)]
        if _covers([rule for _, _, rule in fitting], target, wanted):
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


def _callers(network: _Network, group: Group) -> Iterator[Found]:
    """Callers are in another namespace, or at an address: some rule lets one of those in."""
    port = group.ports().get(SERVE_PORT)
    selecting, rules = _rules(network, group, "Ingress")
    if port is None or not selecting:
        return
    outside = [rule for _, _, rule in rules if _others(network, rule.get("from"))]
    if not _covers(outside, group, (port, port)):
        words = (
            f"nothing opens the port `{SERVE_PORT}` ({port}) of {group.name} to callers (twinpool-callers)"
        )
        yield Found(Rule.PORTS, selecting[0], ("spec",), words)


def _others(network: _Network, peers: Any) -> bool:
    """Whether a rule is for others than our own pods, and than those who only read metrics."""
    return not entries(peers) or any(
        "ipBlock" in peer
        or (_is_elsewhere(network, peer) and MONITORING not in _wanted(peer))
        or (
            not _is_elsewhere(network, peer)
            and not any(_peers(network, [peer], one) for one in network.fleet.groups)
        )
        for _, peer in pairs(peers)
    )


def _is_elsewhere(network: _Network, peer: Mapping[str, Any]) -> bool:
    """Whether it names namespaces, and not the service's own by its name."""
    name = network.home.get(NAMESPACE_LABEL)
    return "namespaceSelector" in peer and (name is None or _wanted(peer).get(NAMESPACE_LABEL) != name)


def _wanted(peer: Mapping[str, Any]) -> Mapping[str, Any]:
    return mapping(at(peer, "namespaceSelector", "matchLabels"))


def _out(network: _Network, group: Group) -> Iterator[Found]:
    """Names, the other Ray nodes, and the head's Redis."""
    selecting, rules = _rules(network, group, "Egress")
    if not selecting:
        return
    found = [rule for _, _, rule in rules]
    others = [rule for rule in found if _others(network, rule.get("to"))]
    if not _covers(others, group, (DNS, DNS), "UDP"):
        words = f"nothing lets {group.name} ask for names: open UDP {DNS} in egress"
        yield Found(Rule.PORTS, selecting[0], ("spec", "egress"), words)
    for other in network.fleet.groups:
        low, high = min(ingress_ports(other)[0], 10002), max(other.ports().values(), default=DNS)
        peers = [rule for rule in found if _peers(network, rule.get("to"), other)]
        if not _covers(peers, other, (low, high)):
            words = (
                f"nothing lets {group.name} reach the ports of {other.name}: Ray's nodes talk to each other"
            )
            yield Found(Rule.PORTS, selecting[0], ("spec", "egress"), words)
            break
    address = at(network.fleet.cluster, "gcsFaultToleranceOptions", "redisAddress")
    if group.head and address is not None:
        port = whole(str(address).rpartition(":")[2]) or REDIS
        if not _covers(others, group, (port, port)):
            words = f"nothing lets the head reach Redis ({address}): open TCP {port} in egress"
            yield Found(Rule.PORTS, selecting[0], ("spec", "egress"), words)


def _peers(network: _Network, peers: Any, group: Group) -> bool:
    """Whether a rule is for a group's pods, by their labels and those of their namespace."""
    labels = labels_of(group, network.fleet.document.name)
    return not entries(peers) or any(
        takes(peer.get("podSelector"), labels)
        and ("namespaceSelector" not in peer or takes(peer["namespaceSelector"], network.home))
        for _, peer in pairs(peers)
        if "podSelector" in peer or "namespaceSelector" in peer
    )


def _covers(rules: list[Mapping[str, Any]], target: Group, wanted: Ports, protocol: str = "TCP") -> bool:
    """Whether rules open a range together: one without ports opens every port."""
    if any(not entries(rule.get("ports")) for rule in rules):
        return True
    opened = []
    for port in (port for rule in rules for _, port in pairs(rule.get("ports"))):
        if port.get("protocol", "TCP") != protocol:
            continue
        said = port.get("port")
        if said is None:
            return True
        low = target.ports().get(said) if isinstance(said, str) else whole(said)
        high = whole(port.get("endPort")) or low
        if low is not None and high is not None:
            opened.append((low, high))
    following = wanted[0]
    for low, high in sorted(opened):
        if low <= following:
            following = max(following, high + 1)
    return following > wanted[1]
