"""The controller on Ray Serve under a fleet's reports, in a Ray cluster of its own.

Writes `--out`, a list of the fields of `Loaded`, one per offered rate, once all is taken down.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psutil

from benchmarks.control_app import config
from benchmarks.control_child import leave, say
from benchmarks.control_report import Loaded, saturated
from benchmarks.control_senders import Reader, Sender, Sent
from deployments.config import APP_NAME, CONTROLLER
from deployments.local_cluster import ray_environment
from deployments.local_config import default_settings
from deployments.ports import free_ports

SENDERS = 2
RISE = 1.4  # from one offered rate to the next
MOST_RATES = 8
# A little above the target, which could not be met otherwise.
OFFERED = 1030.0
READS_PER_S = 4.0
START_LIMIT_S = 90.0


def cluster(port: int) -> Any:
    """Ray and Serve with the controller alone; returns `ray`."""
    os.environ.pop("RAY_ADDRESS", None)
    os.environ.update(ray_environment(default_settings("simulated", port=port)))
    import ray  # noqa: PLC0415  # reads the environment at import
    from ray import serve  # noqa: PLC0415

    from deployments import serve_internals  # noqa: PLC0415

    ray.init(
        address="local",
        num_cpus=8,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        _node_ip_address="127.0.0.1",
    )
    wanted = config(port)
    serve.start(proxy_location=wanted["proxy_location"], logging_config=wanted["logging_config"])
    serve_internals.deploy(wanted)
    return ray


def controller_pid() -> int:
    """Wait until the controller runs; its process id."""
    from deployments import serve_internals  # noqa: PLC0415

    deadline = time.monotonic() + START_LIMIT_S
    while True:
        application = serve_internals.details()["applications"].get(APP_NAME, {})
        for found in application.get("deployments", {}).get(CONTROLLER, {}).get("replicas", ()):
            if str(getattr(found["state"], "value", found["state"])) == "RUNNING":
                return int(found["pid"])
        if time.monotonic() > deadline:
            raise SystemExit(f"the controller does not run: {application.get('message')}")
        time.sleep(0.2)


def measure(ray: Any, first: float, warm_s: float, count_s: float) -> list[Loaded]:
    """Rising rates on one controller until it takes no more."""
    controller = psutil.Process(controller_pid())
    lean = {"env_vars": {"RAY_SERVE_RUN_ROUTER_IN_SEPARATE_LOOP": "0"}}
    sender = ray.remote(num_cpus=0, runtime_env=lean)(Sender)
    senders = [sender.remote(number, SENDERS) for number in range(SENDERS)]
    reader = ray.remote(num_cpus=0)(Reader).remote()
    rates: list[Loaded] = []
    offered = first
    while len(rates) < MOST_RATES and not (rates and saturated(rates)):
        say(f"offering {offered:.0f} reports a second")
        running = [each.run.remote(offered, warm_s, count_s) for each in senders]
        fetching = reader.run.remote(READS_PER_S, warm_s, count_s)
        time.sleep(warm_s)
        before, began = _cpu_s(controller), time.monotonic()
        time.sleep(count_s)
        used, seconds = _cpu_s(controller) - before, time.monotonic() - began
        sent: list[Sent] = ray.get(running)
        answers: Counter[str] = Counter()
        for one in sent:
            answers.update(one.answers)
        rates.append(
            Loaded(
                offered=offered,
                answers=dict(answers),
                seconds=statistics.mean(one.seconds for one in sent),
                cpu_cores=used / seconds,
                senders_cpu_cores=sum(one.cpu_s / one.seconds for one in sent),
                fetched=ray.get(fetching),
            )
        )
        offered *= RISE
    return rates


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.control_live", description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rate", type=float, default=OFFERED)
    parser.add_argument("--warm-s", type=float, default=3.0)
    parser.add_argument("--count-s", type=float, default=10.0)
    asked = parser.parse_args()
    ray = cluster(*free_ports(1))
    try:
        found = measure(ray, asked.rate, asked.warm_s, asked.count_s)
    finally:
        from ray import serve  # noqa: PLC0415

        serve.shutdown()
        ray.shutdown()
    leave(found, asked.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
