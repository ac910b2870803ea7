"""What Ray waits for, and which nodes it has, from the beginning of a block to its end."""

from __future__ import annotations

import json
import subprocess
import threading
from types import TracebackType
from typing import Any, Final

from benchmarks.errors import BenchError
from benchmarks.nodes_cluster import Cluster
from benchmarks.nodes_service import wait

EVERY_S: Final = 0.25
FIRST_LIMIT_S: Final = 20.0


class Demand:
    """Looks at Ray's own picture, which is what an autoscaler adds nodes by."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._looks: list[dict[str, Any]] = []
        self._process: subprocess.Popen[str] | None = None
        self._thread = threading.Thread(target=self._work, name="demand", daemon=True)

    def __enter__(self) -> Demand:
        self._process = self._cluster.watching(EVERY_S)
        self._thread.start()
        wait(lambda: bool(self._looks), FIRST_LIMIT_S, "Ray's picture of the cluster")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)
        self._thread.join(10)

    def _check_living(self) -> None:
        if self._process is None or self._process.poll() is not None:
            raise BenchError("what looks at Ray's picture of the cluster has ended by itself")

    def _work(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._looks.append(json.loads(line))

    @property
    def pending(self) -> int:
        """Resource requests that find no room, by the newest picture; raises BenchError for an old one."""
        self._check_living()
        return sum(count for _, count in self._looks[-1]["pending"])

    def figures(self) -> dict[str, float]:
        """Nodes that came, seconds that demand was pending without a break, and what is pending now.

        Raises BenchError when Ray's picture was not seen to the end.
        """
        self._check_living()
        return demand_figures(list(self._looks))


def demand_figures(looks: list[dict[str, Any]]) -> dict[str, float]:
    """Of Ray's pictures, oldest first.  Raises BenchError for none."""
    if not looks:
        raise BenchError("Ray said nothing of the cluster")
    first = {node["id"] for node in looks[0]["nodes"]}
    later = {node["id"] for look in looks for node in look["nodes"]}
    longest, since = 0.0, None
    for look in looks:
        if not look["pending"]:
            since = None
            continue
        since = look["at"] if since is None else since
        longest = max(longest, look["at"] - since)
    return {
        "nodes_added": float(len(later - first)),
        "pending_s": longest,
        "pending_after": float(sum(count for _, count in looks[-1]["pending"])),
        "looks": float(len(looks)),
    }
