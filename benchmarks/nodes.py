"""`make bench-nodes`: what becomes of open streams when nodes of a Ray cluster drain, die or fall silent.

Exit status: 0 all targets hold, 1 a target is missed or the run is void, 2 this machine cannot make network
namespaces, or a part was not measured.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import psutil
from rich.console import Console

from benchmarks.command import run
from benchmarks.errors import UnfitError
from benchmarks.nodes_cluster import Cluster
from benchmarks.nodes_demand import Demand
from benchmarks.nodes_events import Events
from benchmarks.nodes_network import Network
from benchmarks.nodes_plan import ENGINES, FRONT, HEAD, SIZES, policy_text
from benchmarks.nodes_redis import Redis, redis_program
from benchmarks.nodes_report import SHORT, TITLES, figures, page, short_rows, targets
from benchmarks.nodes_service import Service, wait
from benchmarks.path import Progress
from benchmarks.results import RESULTS, write_results
from benchmarks.showing import show_figures, show_table

MEMORY_NEEDED: Final = 6 << 30
READY_LIMIT_S: Final = 120.0
STREAMS: Final = 6  # in each lane
# What a step is expected to take, in seconds.
EXPECTED: Final = {
    "start": 65.0,
    "move": 40.0,
    "drain": 60.0,
    "sigterm": 60.0,
    "node_killed": 30.0,
    "node_silent": 60.0,
    "head_restart": 60.0,
    "front_killed": 20.0,
}
PARTS: Final = Path("build")  # where results of less than all events are written
ALL: Final = tuple(TITLES)
QUICK: Final = ("move", "drain", "node_killed")


@dataclass(frozen=True, slots=True)
class Asked:
    """The command line."""

    events: tuple[str, ...]
    front: str
    keep: Path | None  # where logs stay
    results: Path


@contextlib.contextmanager
def running(
    front: str, *, streams: int = STREAMS, keep: Path | None = None
) -> Iterator[tuple[Cluster, Events]]:
    """The cluster with the service on it, ready; all of it ends with the block.

    Its folder is temporary, or `keep`.  Raises BenchError, UnfitError.
    """
    with contextlib.ExitStack() as stack:
        temporary = TemporaryDirectory(prefix="tpn-", ignore_cleanup_errors=True)
        folder = keep or Path(stack.enter_context(temporary))
        network = stack.enter_context(Network())
        store = stack.enter_context(Redis(folder)).address if redis_program() else None
        cluster = stack.enter_context(Cluster(network, folder, front, store))
        service = Service(cluster.url, cluster.places.policy, cluster.places.state)
        service.edit(policy_text("first", SIZES))
        cluster.start(HEAD)
        first, second, spare = ENGINES
        for name in (FRONT, first):
            cluster.begin(name)
        for name in (FRONT, first):
            cluster.wait_there(name)
        cluster.deploy()
        # Half of the replicas find no room: where that is not seen, no demand would be seen later, either.
        with Demand(cluster) as demand:
            wait(lambda: demand.pending > 0, READY_LIMIT_S, "Ray to tell of demand that has no room")
        cluster.start(second)
        wait(lambda: service.whole(SIZES), READY_LIMIT_S, "both pools to be whole")
        cluster.start(spare)
        yield cluster, Events(cluster, service, streams)


def bench(asked: Asked, console: Console) -> int:
    """Measure, write, show; returns the exit status.  Raises BenchError."""
    free = psutil.virtual_memory().available
    if free < MEMORY_NEEDED:
        raise UnfitError(
            f"{free / 2**30:.1f} GiB of memory are free and {MEMORY_NEEDED / 2**30:.0f} are needed: "
            "end other programs first"
        )
    progress = Progress(console, EXPECTED["start"] + sum(EXPECTED[name] for name in asked.events))
    outcomes = []
    progress.step("a cluster of five nodes", EXPECTED["start"])
    with running(asked.front, keep=asked.keep) as (cluster, events):
        for name in asked.events:
            if name == "head_restart" and cluster.store is None:
                progress.step("redis-server is not installed: a head that restarts is not measured")
                continue
            progress.step(TITLES[name], EXPECTED[name])
            outcomes.append(events.run(name))
    found = figures(outcomes)
    wanted = targets(asked.events)
    written = write_results("nodes", found, wanted, text=page(outcomes, asked.front), folder=asked.results)
    show_table(console, "What became of open streams", SHORT, short_rows(outcomes))
    show_figures(console, wanted, found, wanted, written)
    return written.exit_code


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.nodes", description=__doc__)
    parser.add_argument("--quick", action="store_true", help=f"only {', '.join(QUICK)}")
    parser.add_argument("--event", action="append", choices=ALL, help="only this one; may be repeated")
    parser.add_argument("--front", choices=("haproxy", "proxy"), default="haproxy")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="an empty folder for logs, which stay")
    asked: Any = parser.parse_args()
    events = tuple(asked.event or (QUICK if asked.quick else ALL))
    results = RESULTS if events == ALL else PARTS
    return run(lambda console: bench(Asked(events, asked.front, asked.keep, results), console))


if __name__ == "__main__":
    sys.exit(main())
