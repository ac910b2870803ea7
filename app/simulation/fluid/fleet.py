"""The replicas of both pools: targets in, replicas that start, run, drain and go; many at once."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from app.simulation.fleet import Delays
from app.simulation.fluid.cell import Cell
from app.simulation.fluid.coming import Coming
from app.simulation.fluid.load import Numbers
from app.simulation.fluid.nature import Nature
from autoscaling.decisions import Sizes
from autoscaling.types import Role


@dataclass(slots=True)
class _Drain:
    """Replicas that were told to stop together."""

    cell: Cell
    begun: int  # replicas
    until_s: float  # what is open then is broken off
    emptied: int = 0
    stops: deque[float] = field(default_factory=deque)  # when those that are empty are gone


class Pool:
    """One pool: the replicas that run share their load, those that drain go on with theirs."""

    def __init__(self, nature: Nature, delays: Delays, known_after_s: float, replicas: int) -> None:
        self.cell = Cell(nature, replicas)  # of those that run and are known to the ingresses
        self.target = replicas
        self.failed: Numbers = np.zeros_like(self.cell.in_flight)  # sequences broken off, by flow
        self._delays = delays
        self._known_after_s = known_after_s
        self._starting: deque[float] = deque()  # when they run
        self._unknown: deque[float] = deque()  # that run; when the ingresses know them
        self._drains: list[_Drain] = []

    @property
    def running(self) -> int:
        """Replicas that run, those included that no ingress knows yet."""
        return self.cell.replicas + len(self._unknown)

    @property
    def starting(self) -> int:
        """Replicas on their way."""
        return len(self._starting)

    @property
    def draining(self) -> int:
        """Replicas that finish what they have, or stop."""
        return sum(one.begun - one.emptied + len(one.stops) for one in self._drains)

    @property
    def in_flight(self) -> Numbers:
        """Sequences in flight, by flow, those of draining replicas included."""
        found = self.cell.in_flight
        for one in self._drains:
            if one.emptied < one.begun:
                found = found + one.cell.in_flight
        return found

    def aim(self, target: int, now: float) -> None:
        """Start or stop replicas until there are so many; of those that run the newest go first."""
        self.target = target
        while self.running + self.starting > target and self._starting:
            self._starting.pop()
        while self.running + self.starting > target and self._unknown:
            self._unknown.pop()
        surplus = self.running + self.starting - target
        if surplus > 0:
            drain = _Drain(self.cell.split(surplus), surplus, now + self._delays.drain_limit_s)
            self._drains.append(drain)
        for _ in range(-surplus):
            self._starting.append(now + self._delays.start_s)

    def come(self, now: float) -> None:
        """Let those begin to run, and be known, whose time it is."""
        while self._starting and self._starting[0] <= now:
            self._unknown.append(self._starting.popleft() + self._known_after_s)
        known = 0
        while self._unknown and self._unknown[0] <= now:
            self._unknown.popleft()
            known += 1
        if known:
            self.cell.join(known)

    def drain(self, seconds: float, now: float) -> None:
        """Pass a tick that begins at `now` with the draining replicas."""
        nobody = np.zeros_like(self.failed)
        for one in self._drains:
            if one.emptied < one.begun:
                one.cell.foresee(seconds)
                one.cell.advance(seconds, Coming(nobody, nobody, 1.0))
                self._empty(one, now + seconds)
            while one.stops and one.stops[0] <= now + seconds:
                one.stops.popleft()
        self._drains = [one for one in self._drains if one.emptied < one.begun or one.stops]

    def _empty(self, drain: _Drain, now: float) -> None:
        """Count the replicas that have nothing left; at the limit, all of them."""
        cell = drain.cell
        if now >= drain.until_s:
            self.failed += cell.in_flight
            left = 0
        else:
            # A replica with so many sequences on average has none with probability exp(-mean).
            left = round(drain.begun * -math.expm1(-cell.total / drain.begun))
        emptied = max(drain.emptied, drain.begun - left)
        drain.stops.extend([now + self._delays.stop_s] * (emptied - drain.emptied))
        drain.emptied = emptied
        cell.replicas = max(1, drain.begun - emptied)


class Fleet:
    """Both pools."""

    def __init__(
        self, natures: Mapping[Role, Nature], delays: Delays, known_after_s: float, sizes: Sizes
    ) -> None:
        self.pools = {role: Pool(natures[role], delays, known_after_s, sizes[role]) for role in Role}

    def apply(self, plan: Sizes, now: float) -> None:
        """Follow the plan."""
        for role, target in plan.items():
            self.pools[role].aim(target, now)

    def come(self, now: float) -> None:
        """Let replicas begin to run whose time it is."""
        for pool in self.pools.values():
            pool.come(now)

    def drain(self, seconds: float, now: float) -> None:
        """Pass a tick with all draining replicas."""
        for pool in self.pools.values():
            pool.drain(seconds, now)

    @property
    def in_flight(self) -> Numbers:
        """Sequences in flight, by flow, in both pools."""
        pools = list(self.pools.values())
        return pools[0].in_flight + pools[1].in_flight

    @property
    def failed(self) -> Numbers:
        """Sequences broken off, by flow, in both pools."""
        pools = list(self.pools.values())
        return pools[0].failed + pools[1].failed
