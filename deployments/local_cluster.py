"""A Ray cluster of our own on this machine, with the service deployed; nothing outlives it.

Never joins an existing cluster: `RAY_ADDRESS` is ignored.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from deployments.config import APP_NAME, CONTROLLER
from deployments.local_config import ENGINE_SLOT, INGRESS_EXTRA_S, ServiceSettings, serve_config
from deployments.ports import free_ports

HAPROXY_MARGIN_S = 60.0  # HAProxy's hard stop after any change, above the longest stream
STOP_LIMIT_S = 60.0
CALL_LIMIT_S = 3.0


@dataclass(frozen=True, slots=True)
class Replicas:
    """Replica counts of one deployment by Serve's word."""

    running: int
    status: str  # Serve's word: UPDATING, HEALTHY, UNHEALTHY, DEPLOY_FAILED, ...
    message: str


@dataclass(frozen=True, slots=True)
class Application:
    """Serve's word on the application.

    From the moment a config is taken until every deployment has what it asks for, or one has failed,
    `status` is DEPLOYING; a deployment goes on with its former word until Serve comes to it.
    """

    status: str  # DEPLOYING, RUNNING, DEPLOY_FAILED, UNHEALTHY, DELETING
    message: str
    deployments: dict[str, Replicas]


def ray_environment(settings: ServiceSettings) -> dict[str, str]:
    """What Ray's processes must find in their environment; read when `ray` is imported."""
    longest = settings.longest_generation_s
    found = {
        "RAY_USAGE_STATS_ENABLED": "0",
        # Ray's switch for a one-node cluster on the loopback address, despite its name on Linux too.
        # Without it Ray turns a requested 127.0.0.1 into the machine's outward address.
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
        # A kill -9 of a replica takes its EngineCore and workers along, within 10 s.
        "RAY_process_group_cleanup_enabled": "1",
        # A wedged replica cannot drain; waiting for it would hold its slot for the longest generation.
        "RAY_SERVE_FORCE_STOP_UNHEALTHY_REPLICAS": "1",
        # A front is replaced after three failed checks; at Ray's 10 s nobody is served for half a minute.
        "RAY_SERVE_PROXY_HEALTH_CHECK_PERIOD_S": "2",
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    }
    if settings.front == "haproxy":
        stats, metrics = free_ports(2)
        folder = haproxy_folder(settings)
        found |= {
            "RAY_SERVE_ENABLE_HA_PROXY": "1",
            # Time for load balancers to forget an ingress; ours is on this machine and needs under 1 s.
            "RAY_SERVE_DIRECT_INGRESS_MIN_DRAINING_PERIOD_S": "5",
            "RAY_SERVE_HAPROXY_HARD_STOP_AFTER_S": str(int(longest + HAPROXY_MARGIN_S)),
            "RAY_SERVE_HAPROXY_STATS_PORT": str(stats),
            "RAY_SERVE_HAPROXY_METRICS_PORT": str(metrics),
            "RAY_SERVE_HAPROXY_CONFIG_FILE_LOC": f"{folder}/haproxy.cfg",
            "RAY_SERVE_HAPROXY_SOCKET_PATH": f"{folder}/admin.sock",
            "RAY_SERVE_HAPROXY_SERVER_STATE_BASE": folder,
            "RAY_SERVE_HAPROXY_SERVER_STATE_FILE": f"{folder}/server-state",
            "RAY_SERVE_HAPROXY_NBTHREAD": str(min(4, os.cpu_count() or 1)),
        }
    return found


def haproxy_folder(settings: ServiceSettings) -> str:
    """Where HAProxy's files are; short, since socket paths are limited to about 100 characters."""
    return f"/tmp/twinpool-haproxy-{settings.port}"  # noqa: S108


def remove_traces(settings: ServiceSettings) -> None:
    """Remove HAProxy's files after the end."""
    shutil.rmtree(haproxy_folder(settings), ignore_errors=True)


def log_folder() -> str:
    """Where the newest Ray session, which is ours right after its start, keeps its logs."""
    return f"{os.path.realpath('/tmp/ray/session_latest')}/logs"  # noqa: S108


@contextmanager
def local_cluster(settings: ServiceSettings) -> Iterator[None]:
    """Start Ray and Serve, deploy, and take everything down at the end.

    Returns when the deploy has been accepted; replicas come up behind it.
    """
    os.environ.pop("RAY_ADDRESS", None)
    os.environ.update(ray_environment(settings))
    import ray  # noqa: PLC0415  # reads the environment at import
    from ray import serve  # noqa: PLC0415

    from deployments import serve_internals  # noqa: PLC0415

    logging.getLogger("ray.serve").setLevel(logging.WARNING)
    ray.init(
        address="local",
        num_cpus=8,  # logical; actors here ask for none
        resources={ENGINE_SLOT: settings.ceiling},
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        _node_ip_address="127.0.0.1",
    )
    try:
        config = serve_config(settings)
        serve.start(
            proxy_location=config["proxy_location"],
            http_options=config["http_options"],
            logging_config=config["logging_config"],
        )
        serve_internals.deploy(config)
        yield
    finally:
        # While it ends, Ray prints on stdout that its own tasks could not be retried.
        with contextlib.redirect_stdout(io.StringIO()):
            try:
                serve.shutdown()
            finally:
                ray.shutdown()


def application() -> Application | None:
    """Serve's word on the application and its deployments at one instant; None before it is known."""
    from ray import serve  # noqa: PLC0415

    found = serve.status().applications.get(APP_NAME)
    if found is None:
        return None
    return Application(
        status=_word(found.status),
        message=found.message,
        deployments={
            name: Replicas(
                running=one.replica_states.get("RUNNING", 0),
                status=_word(one.status),
                message=one.message,
            )
            for name, one in found.deployments.items()
        },
    )


def _word(state: Any) -> str:
    return str(getattr(state, "value", state))


def refuse_new() -> None:
    """Have the ingresses answer 503 to new requests; raises when the controller is gone."""
    _controller("stop_taking")


def open_requests() -> int | None:
    """Requests still open at the replicas; None when nobody can tell."""
    found: int | None = _controller("open_requests")
    return found


def _controller(method: str) -> Any:
    from ray import serve  # noqa: PLC0415

    handle = serve.get_deployment_handle(CONTROLLER, APP_NAME)
    return getattr(handle, method).remote().result(timeout_s=CALL_LIMIT_S)


def delete() -> None:
    """Tell Serve to delete the application; each replica still drains what it has."""
    from ray import serve  # noqa: PLC0415

    serve.delete(APP_NAME, _blocking=False)


def deleted() -> bool:
    """Whether the last replica of the application has ended."""
    from ray import serve  # noqa: PLC0415

    return APP_NAME not in serve.status().applications


def drain_limit_s(settings: ServiceSettings) -> float:
    """The longest that a stop may take: open streams, then the ingress, then the engines."""
    return settings.longest_generation_s + INGRESS_EXTRA_S + STOP_LIMIT_S


def redeploy(settings: ServiceSettings) -> None:
    """Deploy changed settings over the running ones."""
    from deployments import serve_internals  # noqa: PLC0415

    serve_internals.deploy(serve_config(settings))
