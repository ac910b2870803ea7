"""The whole service on virtual time: a trace in, what became of each request and of the pools out."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from app.simulation.arrival import Arrival
from app.simulation.control import TICK_S, Control
from app.simulation.engine import Engine
from app.simulation.fleet import Fleet
from app.simulation.ingress import Ingress, Served
from app.simulation.replica import Replica
from app.simulation.scores import MoveMade
from app.simulation.setup import PoolsAt, Say, Setup, Simulated
from app.simulation.virtual_time import run_virtually
from autoscaling.decisions import Move
from autoscaling.observations import REPORT_PERIOD_S
from autoscaling.request_line import Outcome
from autoscaling.soft_limit import soft_limit
from autoscaling.types import Role, Tier

STATES = ("RUNNING", "STARTING", "STOPPING")
SETTLE_S = 3.0  # before the first arrival: every ingress knows every replica
OFTEN = 1000  # requests after whose end it is said how far it is, besides once a second


def simulate(
    setup: Setup, trace: Sequence[Arrival], say: Say | None = None, until_s: float | None = None
) -> Simulated:
    """Serve a trace, which is sorted by time, to its last answer; the same arguments give the same result.

    With `until_s` batch work ends when so much of the trace has passed and all others have been answered:
    what is open then counts as cancelled.
    """
    return run_virtually(_Run(setup, trace, say, until_s).run())


class _Run:
    def __init__(
        self, setup: Setup, trace: Sequence[Arrival], say: Say | None, until_s: float | None
    ) -> None:
        self._setup = setup
        self._trace = trace
        self._say = say
        self._until_s = until_s
        self._pools: list[PoolsAt] = []
        self._ingresses: list[Ingress] = []
        self._ended = 0

    async def run(self) -> Simulated:
        setup, loop = self._setup, asyncio.get_running_loop()
        fleet = Fleet(self._replica, setup.delays, self._change_role if setup.changes_roles else None)
        fleet.begin(setup.sizes)
        # Its clock on the wall is the trace's, which begins when all have settled.
        believed = replace(setup.believed, wall=setup.believed.wall - SETTLE_S)
        control = setup.control(believed, fleet, loop.time())
        delay_s = setup.snapshot_delay_s
        self._ingresses = [
            Ingress(
                f"ingress-{number}", fleet, control.snapshot, delay_s, setup.seed, SETTLE_S, setup.routing
            )
            for number in range(setup.ingresses)
        ]
        background = [
            asyncio.create_task(self._report(fleet, control)),
            asyncio.create_task(self._decide(fleet, control)),
            *(asyncio.create_task(one.poll()) for one in self._ingresses),
        ]
        try:
            await asyncio.sleep(SETTLE_S)
            served = await self._serve()
        finally:
            for task in background:
                task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.gather(*background)
        return Simulated(tuple(served), tuple(self._pools), tuple(map(_made, control.moves)))

    async def _serve(self) -> list[Served]:
        loop, ingresses = asyncio.get_running_loop(), self._ingresses
        tasks: list[asyncio.Task[Served]] = []
        for number, arrival in enumerate(self._trace):
            wait_s = SETTLE_S + arrival.at_s - loop.time()
            if wait_s > 0:
                await asyncio.sleep(wait_s)
            task = asyncio.create_task(ingresses[number % len(ingresses)].serve(number, arrival))
            task.add_done_callback(self._count)
            tasks.append(task)
        if self._until_s is None:
            return list(await asyncio.gather(*tasks))
        await asyncio.sleep(max(0.0, SETTLE_S + self._until_s - loop.time()))
        await asyncio.gather(*(task for task, one in self._of(tasks) if one.tier is not Tier.BATCH))
        at_s = loop.time() - SETTLE_S
        found = [
            task.result() if task.done() else Served(one, Outcome.CANCELLED, ended_at=at_s)
            for task, one in self._of(tasks)
        ]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return found

    def _of(self, tasks: Sequence[asyncio.Task[Served]]) -> Iterable[tuple[asyncio.Task[Served], Arrival]]:
        return zip(tasks, self._trace, strict=True)

    def _count(self, _task: asyncio.Task[Served]) -> None:
        self._ended += 1
        if self._say is not None and self._ended % OFTEN == 0:
            self._say(asyncio.get_running_loop().time() - SETTLE_S, self._ended)

    async def _report(self, fleet: Fleet, control: Control) -> None:
        while True:
            control.take([one.report() for one in fleet.replicas()], asyncio.get_running_loop().time())
            await asyncio.sleep(REPORT_PERIOD_S)

    async def _decide(self, fleet: Fleet, control: Control) -> None:
        loop, ticks = asyncio.get_running_loop(), 0
        while True:
            control.tick(loop.time())
            if ticks % round(1.0 / TICK_S) == 0 and loop.time() >= SETTLE_S:
                self._look(fleet, control, loop.time() - SETTLE_S)
            ticks += 1
            await asyncio.sleep(TICK_S)

    def _look(self, fleet: Fleet, control: Control, at_s: float) -> None:
        sizes = fleet.sizes()
        running, starting, draining = (
            {role: counts[state] for role, counts in sizes.items()} for state in STATES
        )
        demand: Counter[Role] = Counter()
        for one in self._ingresses:
            demand.update(one.wanted)
        capacity = {role: running[role] * self._limit(role, control) for role in Role}
        wanted = {role: demand[role] for role in Role}
        self._pools.append(PoolsAt(at_s, running, starting, draining, wanted, capacity))
        if self._say is not None:
            self._say(at_s, self._ended)

    def _limit(self, role: Role, control: Control) -> int:
        """The soft limit of each of a pool's replicas, as ingresses obey it."""
        own = self._setup.limits[role]
        most = min(own.hard, self._setup.engines.max_num_seqs)
        found = soft_limit(own.soft, most, control.rules(role))
        return own.soft if found is None else found

    def _replica(self, role: Role, name: str) -> Replica:
        setup, lies = self._setup, self._setup.lies[role]
        engine = Engine(setup.engines, lies.role, setup.seed, lies.draft_lengths, setup.jitter, name)
        return Replica(name, role, engine, setup.engines, setup.limits[role], lies)

    def _change_role(self, replica: Replica, role: Role) -> None:
        replica.change_role(role, self._setup.limits[role])


def _made(move: Move) -> MoveMade:
    """A move with times since the trace's beginning."""
    took_s = None if move.ended_at is None else move.ended_at - move.at
    return MoveMade(
        move.at - SETTLE_S,
        move.source,
        move.receiver,
        move.count,
        move.reason.value,
        move.state.value,
        took_s,
    )
