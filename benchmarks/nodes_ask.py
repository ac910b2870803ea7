"""What `benchmarks.nodes` asks of Ray: a process of its own on the head, once or every so often."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any


def look(gcs: str) -> dict[str, Any]:
    """The living nodes, and what waits for room: resource requests of tasks and actors, by shape."""
    from ray.autoscaler.v2.sdk import get_cluster_status  # noqa: PLC0415

    found = get_cluster_status(gcs)
    demands = found.resource_demands.ray_task_actor_demand
    pending = [
        [dict(bundle.bundle), bundle.count] for demand in demands for bundle in demand.bundles_by_count
    ]
    return {
        "at": time.monotonic(),
        "nodes": [
            {"id": node.node_id, "address": node.ip_address}
            for node in (*found.active_nodes, *found.idle_nodes)
        ],
        "pending": pending,
    }


def deploy(gcs: str, config: dict[str, Any]) -> None:
    """Deploy a Serve config on the cluster at `gcs`; it stays when this process ends."""
    import ray  # noqa: PLC0415
    from ray import serve  # noqa: PLC0415

    from deployments import serve_internals  # noqa: PLC0415

    ray.init(address=gcs, log_to_driver=False, logging_level="ERROR")
    serve.start(
        proxy_location=config["proxy_location"],
        http_options=config["http_options"],
        logging_config=config["logging_config"],
    )
    serve_internals.deploy(config)


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.nodes_ask", description=__doc__)
    parser.add_argument("what", choices=("look", "deploy"))
    parser.add_argument("gcs")
    parser.add_argument("config", nargs="?", type=Path)
    parser.add_argument("--every", type=float)
    asked = parser.parse_args()
    if asked.what == "deploy":
        deploy(asked.gcs, json.loads(asked.config.read_text(encoding="utf-8")))
        return 0
    while True:
        sys.stdout.write(json.dumps(look(asked.gcs)) + "\n")
        sys.stdout.flush()
        if asked.every is None:
            return 0
        time.sleep(asked.every)


if __name__ == "__main__":
    sys.exit(main())
