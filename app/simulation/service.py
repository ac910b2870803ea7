"""The whole service on virtual time: a trace in, what became of each request and of the pools out."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from app.simulation.arrival import Arrival
from app.simulation.control import TICK_S, Believed, Control
from app.simulation.engine import Engine
from app.simulation.engine_profile import EngineProfile
from app.simulation.fleet import Delays, Fleet
from app.simulation.ingress import Ingress, Routing, Served
from app.simulation.replica import Lies, Limits, Replica
from app.simulation.scores import MoveMade
from app.simulation.virtual_time import run_virtually
from autoscaling.decisions import Move, Sizes
from autoscaling.observations import REPORT_PERIOD_S
from autoscaling.request_line import Outcome
from autoscaling.soft_limit import soft_limit
from autoscaling.types import Role, Tier

STATES = ("RUNNING", "STARTING", "STOPPING")
SETTLE_S = 3.0  # before the first arrival: every ingress knows every replica
OFTEN = 1000  # requests after whose end it is said how far it is, besides once a second
Say = Callable[[float, int], None]  # seconds of the trace that have passed, requests that have ended
MakeControl = Callable[[Believed, Fleet, float], Control]  # the last is now, by the loop


def _own_kinds() -> dict[Role, Lies]:
    return {role: Lies(role) for role in Role}


@dataclass(frozen=True, slots=True)
class Setup:
    """What is simulated, besides the trace.

    With `changes_roles` a move changes the role of a replica, at once; raises ValueError unless the same
    kind of engine lies in both pools then.
    """

    engines: EngineProfile
    believed: Believed
    sizes: Sizes  # replicas at the beginning
    limits: Mapping[Role, Limits]
    delays: Delays
    lies: Mapping[Role, Lies] = field(default_factory=_own_kinds)
    routing: Routing = Routing.OURS
    control: MakeControl = Control
    changes_roles: bool = False
    ingresses: int = 1
    snapshot_delay_s: float = 0.0
    jitter: float = 0.05  # of a step's seconds, standard deviation of the logarithm
    seed: int = 1

    def __post_init__(self) -> None:
        kinds = [self.lies[role] for role in Role]
        if self.changes_roles and kinds[0] != kinds[1]:
            raise ValueError(
                f"changes_roles: {kinds[0]} lies in {Role.SPECULATIVE}, {kinds[1]} in {Role.PLAIN}: "
                "let the same engine lie in both pools"
            )


@dataclass(frozen=True, slots=True)
class PoolsAt:
    """Both pools at one moment, which stands for a second of all of its replicas."""

    at_s: float
    running: dict[Role, int]
    starting: dict[Role, int]
    draining: dict[Role, int]
    demand: dict[Role, int]  # sequences open for callers who prefer the pool, waiting ones included
    capacity: dict[Role, int]  # sequences inside the soft limits of the running replicas


@dataclass(frozen=True, slots=True)
class Simulated:
    """What came of it."""

    served: tuple[Served, ...]  # by arrival
    pools: tuple[PoolsAt, ...]  # once a second
    moves: tuple[MoveMade, ...]  # by their beginning


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
