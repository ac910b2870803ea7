"""The replicas of both pools under Ray Serve's hand: targets in, replicas that start, run, drain and go."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from app.simulation.replica import Replica
from autoscaling.decisions import Sizes
from autoscaling.types import Role, ServePool, ServeStates

Make = Callable[[Role, str], Replica]  # of a pool, with a name
ChangeRole = Callable[[Replica, Role], None]  # the pool that it serves in from now on


@dataclass(frozen=True, slots=True)
class Delays:
    """What a move takes besides the drain, in seconds."""

    start_s: float  # from asking for a replica until it serves
    stop_s: float  # of an idle replica, until its place is free
    drain_limit_s: float  # longest wait for open requests


class Fleet:
    """Both pools; touched by one virtual loop.

    With `change_role` one kind of engine serves in both pools, and a replica goes from one pool to the other
    at once, with what is open on it; delays are those of replicas that no pool takes.
    """

    def __init__(self, make: Make, delays: Delays, change_role: ChangeRole | None = None) -> None:
        self._make = make
        self._change_role = change_role
        self._delays = delays
        self._targets = dict.fromkeys(Role, 0)
        self._running: dict[Role, dict[str, Replica]] = {role: {} for role in Role}
        self._starting: dict[Role, list[asyncio.Task[None]]] = {role: [] for role in Role}
        self._stopping: dict[Role, set[asyncio.Task[None]]] = {role: set() for role in Role}
        self._draining: dict[str, Replica] = {}
        self._made = 0

    @property
    def changes_roles(self) -> bool:
        """Whether a replica goes to the other pool at once."""
        return self._change_role is not None

    def begin(self, sizes: Sizes) -> None:
        """A service that has long been up: these run at once."""
        for role, count in sizes.items():
            self._targets[role] = count
            for _ in range(count):
                self._add(role)

    def apply(self, plan: Sizes) -> None:
        """Start and stop replicas until each pool has its target; of running ones the newest go first."""
        leaving = [replica for role, target in plan.items() for replica in self._shrunk(role, target)]
        for role, target in plan.items():
            while len(self._running[role]) + len(self._starting[role]) < target:
                if leaving and self._change_role is not None:
                    replica = leaving.pop(0)
                    self._change_role(replica, role)
                    self._running[role][replica.identity] = replica
                else:
                    self._starting[role].append(asyncio.create_task(self._start(role)))
        for replica in leaving:
            self._stop(replica)

    def find(self, identity: str) -> Replica | None:
        """A replica that runs or drains; None when it is gone."""
        for pool in self._running.values():
            if identity in pool:
                return pool[identity]
        return self._draining.get(identity)

    def replicas(self) -> list[Replica]:
        """All that report: running and draining."""
        return [one for pool in self._running.values() for one in pool.values()] + [*self._draining.values()]

    def sizes(self) -> dict[Role, Counter[str]]:
        """Replicas by Ray Serve's words."""
        return {
            role: Counter(
                RUNNING=len(self._running[role]),
                STARTING=len(self._starting[role]),
                STOPPING=len(self._stopping[role]),
            )
            for role in Role
        }

    def states(self, now: float) -> ServeStates:
        """What Ray Serve would say."""
        return ServeStates(
            now,
            {
                role: ServePool(self._targets[role], dict(+counts), frozenset(self._running[role]))
                for role, counts in self.sizes().items()
            },
        )

    def _add(self, role: Role) -> None:
        self._made += 1
        replica = self._make(role, f"{role}-{self._made}")
        self._running[role][replica.identity] = replica

    async def _start(self, role: Role) -> None:
        own = asyncio.current_task()
        await asyncio.sleep(self._delays.start_s)
        self._starting[role] = [task for task in self._starting[role] if task is not own]
        self._add(role)

    def _shrunk(self, role: Role, target: int) -> list[Replica]:
        """Take from a pool what is above its target, what starts before what runs; what ran and has to go."""
        self._targets[role] = target
        gone = []
        while len(self._running[role]) + len(self._starting[role]) > target:
            if self._starting[role]:
                self._starting[role].pop().cancel()
            else:
                gone.append(self._running[role].pop(next(reversed(self._running[role]))))
        return gone

    def _stop(self, replica: Replica) -> None:
        role = replica.pool
        self._draining[replica.identity] = replica
        task = asyncio.create_task(self._drained(replica))
        self._stopping[role].add(task)
        task.add_done_callback(self._stopping[role].discard)

    async def _drained(self, replica: Replica) -> None:
        await replica.drain(self._delays.drain_limit_s)
        await asyncio.sleep(self._delays.stop_s)
        del self._draining[replica.identity]
