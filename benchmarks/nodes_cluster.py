"""A Ray cluster on one machine: `ray start --block` in each namespace, and a Redis outside."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final

from benchmarks import nodes_network
from benchmarks.errors import BenchError
from benchmarks.nodes_network import Host, Network
from benchmarks.nodes_plan import (
    FRONT,
    GCS_PORT,
    HEAD,
    RESOURCES,
    Places,
    cluster_config,
    node_environment,
    settings,
)

START_LIMIT_S: Final = 60.0
ASK_LIMIT_S: Final = 30.0
STORE_BYTES: Final = 80 << 20  # Ray's object store, of which nothing here makes use


@dataclass(frozen=True, slots=True)
class RayNode:
    """A living node, by Ray's word."""

    id: str
    address: str


class Cluster:
    """Nodes by name; all of them end with it.

    `front` is proxy or haproxy, `store` the address of the Redis that outlives the head, if there is one.
    """

    def __init__(self, network: Network, folder: Path, front: str, store: str | None) -> None:
        self.places = Places(folder)
        self.hosts: dict[str, Host] = {name: network.add(name) for name in RESOURCES}
        self.network = network
        self.settings = settings(self.places, self.hosts[FRONT].address, front)
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._starts = 0
        self.store = store

    def __enter__(self) -> Cluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name in list(self._running):
            self.kill(name)

    # --- nodes -------------------------------------------------------------------------------------

    def start(self, name: str) -> None:
        """Start one node, and return when it is there; raises BenchError."""
        self.begin(name)
        self.wait_there(name)

    def begin(self, name: str) -> None:
        """Start one node."""
        host, folder = self.hosts[name], self.places.node(name)
        self._starts += 1
        # A folder of its own for each start: what a container finds is empty, too.
        folder.mkdir(exist_ok=True)
        start = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--disable-usage-stats"]
        start += ["--node-ip-address", host.address, "--temp-dir", str(folder / f"ray{self._starts}")]
        start += ["--num-cpus", "0", "--object-store-memory", str(STORE_BYTES)]
        start += ["--resources", json.dumps(RESOURCES[name])]
        if name == HEAD:
            start += ["--head", "--port", str(GCS_PORT), "--include-dashboard", "false"]
        else:
            start += ["--address", self.gcs]
        with (folder / "start.log").open("ab") as log:
            self._running[name] = subprocess.Popen(
                host.inside(start),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self._environment(name),
                cwd=folder,
                start_new_session=True,
            )

    def wait_there(self, name: str, limit_s: float = START_LIMIT_S) -> None:
        """Wait until Ray has the node that was begun; raises BenchError."""
        deadline = time.monotonic() + limit_s
        address = self.hosts[name].address
        while True:
            with contextlib.suppress(BenchError):
                if any(node.address == address for node in self.ray_nodes()):
                    return
            if self._running[name].poll() is not None or time.monotonic() > deadline:
                raise BenchError(f"node {name} does not start:\n{self.log_end(name)}")
            time.sleep(0.2)

    def gone(self, name: str) -> bool:
        """Whether its raylet has ended; its `ray start --block` stays when Ray itself drained the node."""
        return not nodes_network.find(self.hosts[name], "raylet/raylet")

    def kill(self, name: str) -> None:
        """End every process of a node at once, as a power cut does."""
        nodes_network.kill(self.hosts[name])
        self._running.pop(name).wait(10)

    def terminate(self, name: str) -> None:
        """SIGTERM for its `ray start --block`, which is what a pod gets that is deleted."""
        self._running[name].send_signal(signal.SIGTERM)

    def drain(self, name: str, deadline_s: float) -> None:
        """Have Ray drain a node until a deadline; raises BenchError."""
        (found,) = [node for node in self.ray_nodes() if node.address == self.hosts[name].address]
        words = ["drain-node", "--address", self.gcs, "--node-id", found.id]
        words += ["--reason", "DRAIN_NODE_REASON_PREEMPTION", "--reason-message", "maintenance"]
        words += ["--deadline-remaining-seconds", str(round(deadline_s))]
        self.run_inside(HEAD, [sys.executable, "-m", "ray.scripts.scripts", *words])

    def log_end(self, name: str) -> str:
        """The last lines of a node's `ray start`."""
        text = (self.places.node(name) / "start.log").read_text(encoding="utf-8", errors="replace")
        return "\n".join(f"  {line}" for line in text.splitlines()[-15:])

    # --- the cluster -------------------------------------------------------------------------------

    @property
    def gcs(self) -> str:
        """Ray's address."""
        return f"{self.hosts[HEAD].address}:{GCS_PORT}"

    @property
    def url(self) -> str:
        """Where callers find the service."""
        return f"http://{self.hosts[FRONT].address}:{self.settings.port}"

    def deploy(self) -> None:
        """Deploy the application; raises BenchError."""
        config = self.places.folder / "serve.json"
        config.write_text(json.dumps(cluster_config(self.settings)), encoding="utf-8")
        self.run_inside(HEAD, [sys.executable, "-m", "benchmarks.nodes_ask", "deploy", self.gcs, str(config)])

    def ray_nodes(self) -> list[RayNode]:
        """The living nodes; raises BenchError without a head."""
        out = self.run_inside(HEAD, [sys.executable, "-m", "benchmarks.nodes_ask", "look", self.gcs])
        return [RayNode(**node) for node in json.loads(out.splitlines()[-1])["nodes"]]

    def watching(self, every_s: float) -> subprocess.Popen[str]:
        """A process that says every so often, a JSON object a line, which nodes live and what is pending."""
        ask = [sys.executable, "-m", "benchmarks.nodes_ask", "look", self.gcs, "--every", str(every_s)]
        return subprocess.Popen(
            self.hosts[HEAD].inside(ask),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=self._environment(HEAD),
        )

    def run_inside(self, name: str, command: list[str]) -> str:
        """Run a command on a node; returns its stdout.  Raises BenchError."""
        try:
            done = subprocess.run(
                self.hosts[name].inside(command),
                capture_output=True,
                text=True,
                env=self._environment(name),
                timeout=ASK_LIMIT_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise BenchError(f"{command[2:]} gave no answer within {ASK_LIMIT_S:.0f} s") from error
        if done.returncode != 0:
            last = "\n".join(done.stderr.strip().splitlines()[-10:])
            raise BenchError(f"{command[2:]} ended with status {done.returncode}: {last}")
        return done.stdout

    def _environment(self, name: str) -> dict[str, str]:
        return node_environment(self.settings, self.places, name, self.store)
