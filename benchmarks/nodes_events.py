"""What happens to the cluster under streams, one event after the other, and what callers saw of each."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from autoscaling.types import Role
from benchmarks import nodes_network
from benchmarks.errors import BenchError
from benchmarks.nodes_cluster import Cluster
from benchmarks.nodes_demand import Demand
from benchmarks.nodes_outcome import Outcome, Seen, outcome
from benchmarks.nodes_plan import DRAIN_S, ENGINES, FRONT, HEAD, SIZES, policy_text
from benchmarks.nodes_restored import restored
from benchmarks.nodes_service import Lookout, Service, wait
from benchmarks.nodes_streams import Streams

AFTER_S: Final = 3.0  # of streams after the recovery
WHOLE_LIMIT_S: Final = 120.0
GONE_LIMIT_S: Final = DRAIN_S + 30.0
HEAD_DOWN_S: Final = 5.0
MOVES: Final[tuple[Mapping[Role, int], ...]] = (
    {Role.SPECULATIVE: 1, Role.PLAIN: 3},
    {Role.SPECULATIVE: 3, Role.PLAIN: 1},
    SIZES,
)


@dataclass(frozen=True, slots=True)
class Victim:
    """A node that something happens to, and the replicas on it."""

    node: str
    replicas: frozenset[str]


class Events:
    """The events on one cluster; each begins and ends with both pools whole and a spare node."""

    def __init__(self, cluster: Cluster, service: Service, streams: int) -> None:
        self._cluster = cluster
        self._service = service
        self._streams = streams  # in each lane
        self._edits = 0

    def run(self, name: str) -> Outcome:
        """One event by its name.  Raises BenchError when there is no recovery."""
        known: Mapping[str, Callable[[], Outcome]] = {
            "move": self.move,
            "drain": self.drain,
            "sigterm": self.terminate,
            "node_killed": self.kill,
            "node_silent": self.silence,
            "head_restart": self.restart_head,
            "front_killed": self.kill_front,
        }
        return known[name]()

    def move(self) -> Outcome:
        """Capacity moves to and fro between the pools, across the nodes."""
        with Demand(self._cluster) as demand:
            seconds: list[float] = []

            def act() -> None:
                for sizes in MOVES:
                    began = time.monotonic()
                    self._move(sizes)
                    seconds.append(time.monotonic() - began)
                time.sleep(AFTER_S)

            found = self._under("move", act, lambda: True)
            more = demand.figures() | {"slowest_s": max(seconds), "moves": float(len(seconds))}
        return outcome(found, frozenset(), recovery_s=max(seconds), more=more)

    def drain(self) -> Outcome:
        """Ray is told to drain a node until a deadline."""
        victim = self._victim()
        return self._leaving("drain", victim, lambda: self._cluster.drain(victim.node, DRAIN_S))

    def terminate(self) -> Outcome:
        """A node gets SIGTERM, as a pod that is deleted does."""
        victim = self._victim()
        return self._leaving("sigterm", victim, lambda: self._cluster.terminate(victim.node))

    def kill(self) -> Outcome:
        """Every process of a node is killed; its sockets say so."""
        victim = self._victim()
        found = self._under(
            "node_killed", lambda: self._cluster.kill(victim.node), lambda: self._replaced(victim)
        )
        self._bring_back(victim.node)
        return outcome(found, victim.replicas)

    def silence(self) -> Outcome:
        """A node is cut off: its packets and those for it are dropped, and no socket says so."""
        victim = self._victim()
        host = self._cluster.hosts[victim.node]
        found = self._under(
            "node_silent", lambda: self._cluster.network.silence(host), lambda: self._replaced(victim)
        )
        self._cluster.kill(victim.node)
        self._cluster.network.hear(host)
        self._bring_back(victim.node)
        return outcome(found, victim.replicas)

    def restart_head(self) -> Outcome:
        """The head dies, and our controller with it; the policy is edited before the head is back."""
        before = self._service.status()
        if before is None:
            raise BenchError("the service does not answer")
        lines = self._service.audit()
        back: list[float] = []

        def act() -> None:
            began = time.monotonic()
            self._cluster.kill(HEAD)
            self._kill_process(FRONT, "twinpool:controller")
            self._edit(MOVES[0])
            time.sleep(HEAD_DOWN_S)
            self._cluster.start(HEAD)
            back.append(time.monotonic() - began)

        found = self._under("head_restart", act, lambda: self._service.whole(MOVES[0]))
        after = self._service.status()
        if after is None:
            raise BenchError("the service does not answer after its recovery")
        more = restored(before, lines, after, self._service.audit()[len(lines) :])
        self._move(SIZES)
        return outcome(found, frozenset(), more=more | {"head_back_s": back[0]})

    def kill_front(self) -> Outcome:
        """The front that all callers use is killed."""
        word = "haproxy" if self._cluster.settings.front == "haproxy" else "ProxyActor"
        found = self._under(
            "front_killed",
            lambda: self._kill_process(FRONT, word),
            lambda: self._service.serving() is not None,
        )
        return outcome(found, None)

    # --- what they have in common ------------------------------------------------------------------

    def _leaving(self, name: str, victim: Victim, act: Callable[[], None]) -> Outcome:
        gone: list[float] = []

        def acted() -> None:
            act()
            began = time.monotonic()
            wait(lambda: self._replaced(victim), GONE_LIMIT_S, f"{name}: replicas elsewhere")
            gone.append(time.monotonic() - began)
            wait(lambda: self._cluster.gone(victim.node), GONE_LIMIT_S, f"{name}: the node to be gone")

        found = self._under(name, acted, lambda: True)
        self._cluster.kill(victim.node)  # what Ray leaves behind
        self._bring_back(victim.node)
        return outcome(found, victim.replicas, recovery_s=gone[0], more={"node_gone_s": found.recovery_s})

    def _under(self, name: str, act: Callable[[], None], recovered: Callable[[], bool]) -> Seen:
        """Do it under streams, and wait until it is over."""
        model = self._cluster.settings.plain.engine.served_name
        streams = Streams(self._cluster.url, model, self._streams, name)
        with streams, Lookout(self._service) as lookout:
            at = time.monotonic()
            act()
            wait(recovered, WHOLE_LIMIT_S, f"{name}: recovery")
            recovery_s = time.monotonic() - at
            time.sleep(AFTER_S)
        return Seen(name, at, tuple(streams.told), recovery_s, lookout.least)

    def _victim(self) -> Victim:
        """The node with the most replicas, of both pools where there is one."""
        names = {host.address: name for name, host in self._cluster.hosts.items()}
        nodes = {node.id: names[node.address] for node in self._cluster.ray_nodes()}
        on: dict[str, list[Role]] = {name: [] for name in ENGINES}
        replicas = self._service.replicas()
        for replica in replicas:
            on[nodes[replica.node]].append(replica.pool)
        node = max(ENGINES, key=lambda name: (len(set(on[name])), len(on[name])))
        found = frozenset(replica.id for replica in replicas if nodes[replica.node] == node)
        return Victim(node, found)

    def _replaced(self, victim: Victim) -> bool:
        return self._service.whole(SIZES, without=victim.replicas)

    def _bring_back(self, node: str) -> None:
        self._cluster.start(node)
        wait(lambda: self._service.whole(SIZES), WHOLE_LIMIT_S, "both pools to be whole")

    def _edit(self, sizes: Mapping[Role, int]) -> None:
        self._edits += 1
        self._service.edit(policy_text(f"edit-{self._edits}", sizes))

    def _move(self, sizes: Mapping[Role, int]) -> None:
        self._edit(sizes)
        self._service.check_taken()
        wait(lambda: self._service.whole(sizes), WHOLE_LIMIT_S, f"the sizes {dict(sizes)}")

    def _kill_process(self, name: str, word: str) -> None:
        """Kill -9 of the processes of a node whose command line has `word`; raises BenchError without one."""
        found = nodes_network.find(self._cluster.hosts[name], word)
        if not found:
            raise BenchError(f"no process of {name} has {word} in its command line")
        for process in found:
            process.kill()
