"""Ticks over a fleet in virtual time, in a process of its own: how long one takes, and what 100,000 leave.

Writes `--out`, the fields of `Ticks` or of `Growth`.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from autoscaling.decide import decide
from autoscaling.decisions import Decision, Sizes
from autoscaling.demand import Demand
from autoscaling.latencies import Latencies
from autoscaling.observations import Observations
from autoscaling.observe import observe
from autoscaling.types import Role
from benchmarks.control_child import leave, say
from benchmarks.control_fleet import (
    FLEET,
    INGRESS,
    finished_requests,
    ingress_load,
    report,
    serve_states,
    settings,
)
from benchmarks.control_policy import policy_text
from benchmarks.control_report import Growth, Ticks
from deployments.control_loop import TICK_S, ControlLoop, Ports
from deployments.control_memory import ControlMemory
from deployments.control_state import ControlState
from deployments.default_policy import world
from deployments.policy_book import PolicyBook
from deployments.policy_source import FixedPolicy
from deployments.policy_use import acting_policy, default_policy

WALL = 1_800_000_000.0  # Unix seconds at the virtual clock's zero
WARM_UP = 100  # ticks before the first that counts
REPORTS_PER_TICK = 0.1  # of the replicas: to make more reports would take longer than the ticks do
RECORD_SETS = 2003  # made once; more than the latencies of late can hold
PEAK_EVERY = 1000
SETTLED = 0.1  # of the ticks, before the memory is read first


class Fleet:
    """The virtual clock and what reaches a controller between two ticks."""

    def __init__(self, replicas: int) -> None:
        self.replicas = replicas
        self.now = 1000.0
        self.sizes: Sizes = dict.fromkeys(Role, replicas // 2)
        self._seq = 0
        self._turn = self._turns()
        self._finished = [finished_requests("some", seq) for seq in range(RECORD_SETS)]

    @property
    def wall(self) -> float:
        """Unix seconds."""
        return WALL + self.now

    def speak(self, observations: Observations, demand: Demand, latencies: Latencies) -> None:
        """Half a second passes: some replicas report, the ingress fetches twice."""
        self.now += TICK_S
        for _ in range(2):
            observations.ingress(INGRESS, self.now)
            demand.take(INGRESS, ingress_load(self.now, self.replicas), self.now)
        for _ in range(int(self.replicas * REPORTS_PER_TICK)):
            role, index = next(self._turn)
            said = report(role, index, self._seq, self._finished[(331 * index + self._seq) % RECORD_SETS])
            observations.take(said, self.now)
            latencies.take(role, said.finished, self.now)

    def obey(self, decision: Decision) -> None:
        """Ray Serve has done what the plan says by the next tick."""
        if decision.plan is not None:
            self.sizes = dict(decision.plan)

    def _turns(self) -> Iterator[tuple[Role, int]]:
        while True:
            self._seq += 1
            for role, size in dict(self.sizes).items():
                for index in range(size):
                    yield role, index


def time_ticks(ticks: int, replicas: int = FLEET) -> Ticks:
    """The pure work of a tick, as `ControlLoop.tick` has it, without what it reads and writes."""
    fleet = Fleet(replicas)
    own = settings(replicas=replicas)
    default = default_policy(own)
    observations, demand, latencies = Observations(1, fleet.now - 3600.0), Demand(), Latencies()
    state = ControlState(PolicyBook(world(own)))
    seen = FixedPolicy(policy_text(replicas)).poll()
    assert seen is not None
    state.book.take(seen, None, fleet.wall)
    assert state.book.active is not None, state.book.last_error
    took = []
    for _ in range(WARM_UP + ticks):
        fleet.speak(observations, demand, latencies)
        serve, now, wall = serve_states(fleet.sizes, fleet.now), fleet.now, fleet.wall
        began = time.perf_counter()
        policy = acting_policy(state, default, wall)
        observations.expire(now)
        observation = observe(
            observations.newest(),
            serve,
            demand,
            latencies,
            now=now,
            wall=wall,
            report_expires_s=policy.metrics_after_s,
            young=observations.young(now),
            fresh=False,
        )
        decision, state.memory = decide(observation, policy, state.memory)
        took.append(time.perf_counter() - began)
        fleet.obey(decision)
    return Ticks(replicas, took[WARM_UP:], state.memory.moves)


async def measure_growth(ticks: int, replicas: int = FLEET) -> Growth:
    """The whole of `ControlLoop.tick`, again and again, on a controller that keeps nothing."""
    fleet = Fleet(replicas)
    own = settings(replicas=replicas)
    kept = ControlMemory(own, lambda: fleet.wall)
    ports = Ports(
        look=lambda: serve_states(fleet.sizes, fleet.now),
        poll=FixedPolicy(policy_text(replicas)).poll,
        now=lambda: fleet.now,
        wall=lambda: fleet.wall,
    )
    loop = ControlLoop(own, Observations(kept.open(), fleet.now - 3600.0), kept, ports)
    loop.restore()
    settled = max(1, int(ticks * SETTLED))
    before = peak = 0
    for tick in range(1, ticks + 1):
        fleet.speak(loop._observations, loop.demand, loop.latencies)
        await loop.tick()
        assert loop.state.decision is not None
        fleet.obey(loop.state.decision)
        if tick == settled:
            before = _resident()
        if tick % PEAK_EVERY == 0:
            peak = max(peak, _resident())
        if tick % (ticks // 10) == 0:
            say(f"{tick:,} ticks")
    return Growth(replicas, ticks, settled, before, _resident(), peak, loop.state.memory.moves)


def _resident() -> int:
    gc.collect()
    return int(psutil.Process().memory_info().rss)


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.control_ticks", description=__doc__)
    parser.add_argument("what", choices=("time", "growth"))
    parser.add_argument("--ticks", type=int, required=True)
    parser.add_argument("--replicas", type=int, default=FLEET)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    logging.getLogger("ray.serve").setLevel(logging.ERROR)
    if asked.what == "time":
        leave(time_ticks(asked.ticks, asked.replicas), asked.out)
    else:
        leave(asyncio.run(measure_growth(asked.ticks, asked.replicas)), asked.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
