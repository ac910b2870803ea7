"""Rules about ranges of ports on one node: no two of them share a port, and each replica finds one."""

from __future__ import annotations

from collections.abc import Iterator

from app.k8s.documents import Found, mapping
from app.k8s.fleet import MODELS, SERVE, Fleet
from app.k8s.pods import Group
from app.k8s.quantities import whole
from app.k8s.rules import Rule
from autoscaling.policy_problem import Path
from autoscaling.types import Role

INGRESS_PORTS = ("RAY_SERVE_DIRECT_INGRESS_MIN_HTTP_PORT", "RAY_SERVE_DIRECT_INGRESS_MAX_HTTP_PORT")
DEFAULT_INGRESS_PORTS = (30000, 31000)
WORKER_PORTS = ("min-worker-port", "max-worker-port")
DEFAULT_WORKER_PORTS = (10002, 19999)  # of Ray
Range = tuple[str, int, int]


def ingress_ports(group: Group) -> tuple[int, int]:
    """What Serve's replicas with HTTP of their own listen on."""
    low, high = (
        whole(group.env(name)[0]) or default
        for name, default in zip(INGRESS_PORTS, DEFAULT_INGRESS_PORTS, strict=True)
    )
    return low, high


def of_collisions(fleet: Fleet) -> Iterator[Found]:
    """All findings about them, of each group by itself."""
    for group in fleet.workers:
        own = list(_own(group))
        for name, low, high in own:
            if low > high:
                yield Found(Rule.PORTS, fleet.document, _params(group), f"{name} end before they begin")
        for role in Role:
            pool, deployed = fleet.pool(role), fleet.deployment(role.value)
            if pool is None or deployed is None or group not in fleet.serving(role):
                continue
            first, last = pool.port_range
            inner = (*deployed.env_path, MODELS[role.value][0])
            for name, low, high in own:
                if low <= last and first <= high:
                    words = (
                        f"port_range {first}-{last} of the {role} pool meets {low}-{high} ({name} of "
                        f"{group.name}): a replica would not get its port; move one of them"
                    )
                    yield Found(Rule.PORTS, fleet.document, SERVE, words, inner)
            most = max(1, fleet.slots(group) // pool.share)
            if last - first + 1 < most:
                words = f"port_range {first}-{last} is too small for {most} replicas on one node: widen it"
                yield Found(Rule.PORTS, fleet.document, SERVE, words, inner)
        yield from _between(fleet, group, own)


def _between(fleet: Fleet, group: Group, own: list[Range]) -> Iterator[Found]:
    """Ranges and named ports of the node itself."""
    for index, (name, low, high) in enumerate(own):
        for other, begin, end in own[index + 1 :]:
            if low <= end and begin <= high:
                words = f"{name} {low}-{high} of {group.name} meet {other} {begin}-{end}: move one of them"
                yield Found(Rule.PORTS, fleet.document, _params(group), words)


def _own(group: Group) -> Iterator[Range]:
    params = mapping(group.data.get("rayStartParams"))
    low, high = (
        whole(params.get(name)) or default
        for name, default in zip(WORKER_PORTS, DEFAULT_WORKER_PORTS, strict=True)
    )
    yield "the ports of Ray's workers", low, high
    yield "the ports of the ingresses", *ingress_ports(group)
    for name in params:
        number = whole(params[name])
        if str(name).endswith("-port") and name not in WORKER_PORTS and number:
            yield str(name), number, number
    for name, number in group.ports().items():
        yield f"the port `{name}`", number, number


def _params(group: Group) -> Path:
    return (*group.path, "rayStartParams")
