"""The whole service on virtual time: a trace in, what became of each request and of the pools out."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from app.simulation.arrival import Arrival
from app.simulation.control import TICK_S, Believed, Control
from app.simulation.engine import Engine
from app.simulation.engine_profile import EngineProfile
from app.simulation.fleet import Delays, Fleet
from app.simulation.ingress import Ingress, Served
from app.simulation.replica import Limits, Replica
from app.simulation.virtual_time import run_virtually
from autoscaling.decisions import Sizes
from autoscaling.observations import REPORT_PERIOD_S
from autoscaling.types import Role

STATES = ("RUNNING", "STARTING", "STOPPING")
SETTLE_S = 3.0  # before the first arrival: every ingress knows every replica
Say = Callable[[float, int], None]  # seconds of the trace that have passed, requests that have ended


@dataclass(frozen=True, slots=True)
class Setup:
    """What is simulated, besides the trace."""

    engines: EngineProfile
    believed: Believed
    sizes: Sizes  # replicas at the beginning
    limits: dict[Role, Limits]
    delays: Delays
    draft_lengths: tuple[int, ...] | None = None  # K by running sequences; None: the cost's own
    ingresses: int = 1
    snapshot_delay_s: float = 0.0
    jitter: float = 0.05  # of a step's seconds, standard deviation of the logarithm
    seed: int = 1


@dataclass(frozen=True, slots=True)
class PoolsAt:
    """Replicas of both pools at one moment."""

    at_s: float
    running: dict[Role, int]
    starting: dict[Role, int]
    draining: dict[Role, int]


@dataclass(frozen=True, slots=True)
class Simulated:
    """What came of it, by arrival."""

    served: tuple[Served, ...]
    pools: tuple[PoolsAt, ...]  # once a second


def simulate(setup: Setup, trace: Sequence[Arrival], say: Say | None = None) -> Simulated:
    """Serve a trace, which is sorted by time, to its last answer; the same arguments give the same result."""
    return run_virtually(_Run(setup, trace, say).run())


class _Run:
    def __init__(self, setup: Setup, trace: Sequence[Arrival], say: Say | None) -> None:
        self._setup = setup
        self._trace = trace
        self._say = say
        self._pools: list[PoolsAt] = []
        self._ended = 0

    async def run(self) -> Simulated:
        setup, loop = self._setup, asyncio.get_running_loop()
        fleet = Fleet(self._replica, setup.delays)
        fleet.begin(setup.sizes)
        control = Control(setup.believed, fleet, loop.time())
        ingresses = [
            Ingress(
                f"ingress-{number}", fleet, control.snapshot, setup.snapshot_delay_s, setup.seed, SETTLE_S
            )
            for number in range(setup.ingresses)
        ]
        background = [
            asyncio.create_task(self._report(fleet, control)),
            asyncio.create_task(self._decide(fleet, control)),
            *(asyncio.create_task(one.poll()) for one in ingresses),
        ]
        try:
            await asyncio.sleep(SETTLE_S)
            served = await self._serve(ingresses)
        finally:
            for task in background:
                task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.gather(*background)
        return Simulated(tuple(served), tuple(self._pools))

    async def _serve(self, ingresses: Sequence[Ingress]) -> list[Served]:
        loop = asyncio.get_running_loop()
        tasks: list[asyncio.Task[Served]] = []
        for number, arrival in enumerate(self._trace):
            wait_s = SETTLE_S + arrival.at_s - loop.time()
            if wait_s > 0:
                await asyncio.sleep(wait_s)
            task = asyncio.create_task(ingresses[number % len(ingresses)].serve(number, arrival))
            task.add_done_callback(self._count)
            tasks.append(task)
        return list(await asyncio.gather(*tasks))

    def _count(self, _task: asyncio.Task[Served]) -> None:
        self._ended += 1

    async def _report(self, fleet: Fleet, control: Control) -> None:
        while True:
            control.take([one.report() for one in fleet.replicas()], asyncio.get_running_loop().time())
            await asyncio.sleep(REPORT_PERIOD_S)

    async def _decide(self, fleet: Fleet, control: Control) -> None:
        loop, ticks = asyncio.get_running_loop(), 0
        while True:
            control.tick(loop.time())
            if ticks % round(1.0 / TICK_S) == 0 and loop.time() >= SETTLE_S:
                self._look(fleet, loop.time() - SETTLE_S)
            ticks += 1
            await asyncio.sleep(TICK_S)

    def _look(self, fleet: Fleet, at_s: float) -> None:
        sizes = fleet.sizes()
        self._pools.append(
            PoolsAt(
                at_s,
                *({role: counts[state] for role, counts in sizes.items()} for state in STATES),
            )
        )
        if self._say is not None:
            self._say(at_s, self._ended)

    def _replica(self, role: Role, name: str) -> Replica:
        setup = self._setup
        drafts = role is Role.SPECULATIVE
        engine = Engine(
            setup.engines, role, setup.seed, setup.draft_lengths if drafts else None, setup.jitter, name
        )
        return Replica(name, role, engine, setup.engines, setup.limits[role], drafts=drafts)
