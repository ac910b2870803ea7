"""The cluster of `benchmarks.nodes`: its shape, the service's settings, its Serve config, policies; pure."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from autoscaling.types import Role
from deployments.config import (
    CONTROLLER,
    DEFAULT_SPECULATION,
    INGRESS,
    EngineSettings,
    PoolSettings,
    SimulationSettings,
)
from deployments.local_cluster import ray_environment
from deployments.local_config import ENGINE_SLOT, STOP_MARGIN_S, ServiceSettings, serve_config

HEAD: Final = "head"
FRONT: Final = "front"  # ingresses, controller, and the front that callers know
FRONT_NODE: Final = "front_node"  # Ray's logical resource that keeps them there
ENGINES: Final = ("engines-1", "engines-2", "engines-3")  # two hold the replicas, one is spare
SLOTS: Final = 2  # engine slots of a node
SIZES: Final = {Role.SPECULATIVE: 2, Role.PLAIN: 2}
BUDGET: Final = 4
PORT: Final = 8000
GCS_PORT: Final = 6379

STEP_S: Final = 0.05
START_S: Final = 2.0  # what a simulated engine takes to load
LONGEST_S: Final = 30.0  # L, the longest promised generation
MOVE_DELAY_S: Final = 15.0  # D, that the timings below allow
DRAIN_S: Final = LONGEST_S + MOVE_DELAY_S + STOP_MARGIN_S  # of a node, as in a cluster: L + D + 30
RECONNECT_S: Final = 600  # how long a node waits for a head that is gone; KubeRay sets the same
TOKENS_PER_STEP: Final = {Role.SPECULATIVE: 2.77, Role.PLAIN: 1.0}

RESOURCES: Final[Mapping[str, Mapping[str, float]]] = {
    HEAD: {},
    FRONT: {FRONT_NODE: 100},
    **{name: {ENGINE_SLOT: SLOTS} for name in ENGINES},
}


@dataclass(frozen=True, slots=True)
class Places:
    """Where a run keeps what is on disk."""

    folder: Path

    @property
    def policy(self) -> Path:
        """The policy file."""
        return self.folder / "policy.yaml"

    @property
    def state(self) -> Path:
        """The controller's state."""
        return self.folder / "state"

    def node(self, name: str) -> Path:
        """One node's own folder."""
        return self.folder / name


def settings(places: Places, address: str, front: str) -> ServiceSettings:
    """Two replicas in each pool, two ingresses; `address` is that of the node FRONT."""
    simulation = SimulationSettings(start_s=START_S, step_base_s=STEP_S, step_per_token_s=0.0)
    pools = {}
    for role in Role:
        drafts = DEFAULT_SPECULATION if role is Role.SPECULATIVE else None
        engine = EngineSettings(kind="simulated", simulation=simulation, speculative_config=drafts)
        pools[role.value] = PoolSettings(
            role=role,
            replicas=SIZES[role],
            engine=engine,
            cores_per_replica=0,
            longest_generation_s=LONGEST_S,
        )
    return ServiceSettings.model_validate(
        {
            "host": address,
            "port": PORT,
            "front": front,
            "ingresses": 2,
            "policy": str(places.policy),
            "state_dir": str(places.state),
            "slots": BUDGET,
        }
        | pools
    )


def cluster_config(wanted: ServiceSettings) -> dict[str, Any]:
    """The Serve config of `twinpool serve`, with a front on every node and each deployment in its place."""
    found = serve_config(wanted)
    found["proxy_location"] = "EveryNode"
    found["http_options"]["host"] = "0.0.0.0"  # each node has an address of its own
    for deployment in found["applications"][0]["deployments"]:
        if deployment["name"] in (INGRESS, CONTROLLER):
            deployment["ray_actor_options"]["resources"] = {FRONT_NODE: 1}
    return found


def policy_text(name: str, sizes: Mapping[Role, int]) -> str:
    """A policy of these sizes and no others: capacity moves when the file is edited, and by nothing else."""
    pools = {role.value: {"minReplicas": sizes[role], "maxReplicas": sizes[role]} for role in Role}
    spec = {
        "budget": {"min": BUDGET, "max": BUDGET},
        "bootstrap": {role.value: sizes[role] for role in Role},
        "pools": pools,
        "guardrails": {"maxCutShare": 1.0},
    }
    head = {"apiVersion": "twinpool.dev/v1alpha1", "kind": "CapacityPolicy", "metadata": {"name": name}}
    return yaml.safe_dump(head | {"spec": spec}, sort_keys=False)


def node_environment(wanted: ServiceSettings, places: Places, name: str, store: str | None) -> dict[str, str]:
    """The environment of one node's `ray start`; `store` is the address of the head's Redis."""
    proxies = {"http_proxy", "https_proxy", "all_proxy"}  # gRPC would ask them for our addresses
    found = {key: value for key, value in os.environ.items() if key.lower() not in proxies}
    folder = places.node(name)
    found |= ray_environment(wanted) | {
        "PYTHONPATH": str(Path(__file__).parents[1]),
        "RAY_AUTH_MODE": "disabled",
        "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S": str(DRAIN_S),
        "RAY_gcs_rpc_server_reconnect_timeout_s": str(RECONNECT_S),
        "RAY_SERVE_KV_TIMEOUT_S": "5",  # as KubeRay sets it
        "TWINPOOL_NODE_DIR": str(folder / "node"),
    }
    del found["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"]  # for one node on loopback; ours have addresses
    found.pop("RAY_ADDRESS", None)
    if wanted.front == "haproxy":
        found |= _haproxy(folder)
    if name == HEAD and store is not None:
        found |= {"RAY_REDIS_ADDRESS": store, "RAY_external_storage_namespace": "twinpool"}
    return found


def _haproxy(folder: Path) -> dict[str, str]:
    """Its usual ports, which each namespace has, and files of each node, which share one disk here."""
    return {
        "RAY_SERVE_HAPROXY_STATS_PORT": "8404",
        "RAY_SERVE_HAPROXY_METRICS_PORT": "9101",
        "RAY_SERVE_HAPROXY_CONFIG_FILE_LOC": f"{folder}/haproxy.cfg",
        "RAY_SERVE_HAPROXY_SOCKET_PATH": f"{folder}/admin.sock",
        "RAY_SERVE_HAPROXY_SERVER_STATE_BASE": str(folder),
        "RAY_SERVE_HAPROXY_SERVER_STATE_FILE": f"{folder}/server-state",
        "RAY_SERVE_HAPROXY_NBTHREAD": "1",
    }
