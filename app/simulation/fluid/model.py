"""The fluid model: a load in, scores out; time goes in ticks, and a tick takes as long for any fleet.

In each tick the replicas that are due begin to run, the controller decides now and then, what came and what
waits is let in by the ingress's own rule, and every pool's clock goes on by as many steps as its mean replica
makes meanwhile.  Who was in time is judged afterwards, by the clocks.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from app.routing.rule import preferred_role
from app.simulation.fluid.coming import Coming
from app.simulation.fluid.control import Control
from app.simulation.fluid.course import course_of, stays_of
from app.simulation.fluid.crowd import Crowd
from app.simulation.fluid.door import Door
from app.simulation.fluid.fleet import Fleet
from app.simulation.fluid.history import History
from app.simulation.fluid.load import TICK_S, FluidLoad, Numbers, summed
from app.simulation.fluid.nature import Nature
from app.simulation.fluid.pace import Stepping
from app.simulation.fluid.route import ROLES, Router
from app.simulation.fluid.score import Look, Ran, intervals_of, scores_of
from app.simulation.fluid.setup import FluidSetup
from app.simulation.fluid.speeds import Speeds
from app.simulation.scores import Scores
from app.simulation.setup import Say
from autoscaling.types import Role

LONGEST_TAIL_S: Final = 7200.0  # behind the load's end, until the last answer has come
OPEN: Final = 1e-6  # share of all requests; when fewer are open the run is over
SAY_S: Final = 60.0
DECIDE_S: Final = 1.0  # late rules let guests in by times that have passed
LONG_DECIDE_S: Final = 5.0  # of a day of a fleet, where decisions take most of the time


def simulate_fluid(setup: FluidSetup, load: FluidLoad, say: Say | None = None) -> Scores:
    """Serve a load to its last answer; the same arguments give the same result."""
    return _Run(setup, load, say).run()


class _Run:
    def __init__(self, setup: FluidSetup, load: FluidLoad, say: Say | None) -> None:
        self._setup, self._load, self._say = setup, load, say
        acceptances = [setup.engines.acceptance_of(flow.workload) for flow in load.flows]
        steppings = {role: Stepping(setup.engines, setup.lies[role]) for role in Role}
        lengths = {role: one.draft_lengths for role, one in steppings.items()}
        crowd = Crowd(setup.ingresses, setup.snapshot_delay_s)
        natures = {
            role: Nature(
                one,
                stays_of(load.flows, acceptances, lengths[role], setup.seed),
                load.flows,
                acceptances,
                crowd,
            )
            for role, one in steppings.items()
        }
        self._courses = {
            role: [
                course_of(flow.answers, one, lengths[role], setup.seed)
                for flow, one in zip(load.flows, acceptances, strict=True)
            ]
            for role in Role
        }
        self._fleet = Fleet(natures, setup.delays, setup.snapshot_delay_s, setup.sizes)
        self._control = Control(setup.believed, setup.engines, setup.lies, setup.limits)
        self._router = Router(load)
        self._door = Door(load, self._router)
        self._history = History(load)
        self._speeds = {role: Speeds(load, self._courses[role]) for role in Role}
        self._preferred = [preferred_role(flow.tier, None) for flow in load.flows]
        self._flow_of = np.array([kind.flow for kind in load.kinds])
        self._home = np.array([ROLES.index(self._preferred[kind.flow]) for kind in load.kinds])
        self._prompts = np.array([kind.prompt_tokens for kind in load.kinds])
        self._squares = np.array([kind.prompt_square for kind in load.kinds])
        self._looks: list[Look] = []
        self._replica_s = self._switching_s = 0.0

    def run(self) -> Scores:
        setup, load, history = self._setup, self._load, self._history
        seconds, ticks = load.tick_s, len(load.arrivals)
        decide_s = setup.decide_s or (DECIDE_S if seconds <= TICK_S else LONG_DECIDE_S)
        every = max(1, round(decide_s / seconds))
        fewest = OPEN * float(load.arrivals.sum())
        for tick in range(ticks + round(LONGEST_TAIL_S / seconds)):
            if tick >= ticks and self._open() <= fewest:
                break
            now = tick * seconds
            self._fleet.come(now)
            if tick % every == 0:
                self._decide(now)
            self._renew()
            if tick < ticks:
                self._watch(now, tick)
            self._tick(now, load.arrivals[tick].tolist() if tick < ticks else [0.0] * len(load.kinds))
            if tick == ticks - 1:
                history.in_flight = self._fleet.in_flight.copy()
        history.failed = self._fleet.failed
        ran = Ran(load, history, self._looks, self._control.moves, self._switching_s, self._replica_s)
        return scores_of(ran, setup.engines, setup.believed.policy, self._courses, setup.interval_s)

    # --- replicas and the controller ---------------------------------------------------------------

    def _decide(self, now: float) -> None:
        speeds = {role: self._speeds[role].speed() for role in Role}
        plan = self._control.tick(now, self._fleet, self._wanted(), speeds)
        if plan is not None:
            self._fleet.apply(plan, now)
            self._fleet.come(now)

    def _renew(self) -> None:
        cells = {role: pool.cell for role, pool in self._fleet.pools.items()}
        replicas = {role: cell.replicas for role, cell in cells.items()}
        seen = {role: cell.uneven.seen for role, cell in cells.items()}
        self._router.renew(self._control.rules, self._control.limits, replicas, seen)

    def _watch(self, now: float, tick: int) -> None:
        """Count the replicas of a tick of the load, look at the pools now and then, and say how far it is."""
        seconds, interval_s = self._load.tick_s, self._setup.interval_s
        while (
            len(self._looks) < intervals_of(self._load, interval_s)
            and now >= len(self._looks) * interval_s - seconds / 2
        ):
            self._looks.append(self._look())
        for pool in self._fleet.pools.values():
            switching = pool.starting + pool.draining
            self._switching_s += seconds * switching
            self._replica_s += seconds * (switching + pool.running)
        if self._say is not None and tick % max(1, round(SAY_S / seconds)) == 0:
            self._say(now, round(float(self._load.arrivals[:tick].sum()) - self._open()))

    def _look(self) -> Look:
        pools, limits = self._fleet.pools, self._control.limits
        return Look(
            {role: pool.running for role, pool in pools.items()},
            {role: pool.starting for role, pool in pools.items()},
            {role: pool.draining for role, pool in pools.items()},
            self._wanted(),
            {role: float(pool.running * limits[role].soft) for role, pool in pools.items()},
        )

    def _wanted(self) -> dict[Role, float]:
        """Sequences open for callers who prefer each pool, waiting ones included."""
        in_flight, found = self._fleet.in_flight, dict.fromkeys(Role, 0.0)
        for flow, role in enumerate(self._preferred):
            found[role] += float(in_flight[flow])
        for kind, waiting in enumerate(self._door.queue.waiting):
            found[self._preferred[self._flow_of[kind]]] += waiting
        return found

    def _open(self) -> float:
        return float(self._fleet.in_flight.sum()) + sum(self._door.queue.waiting)

    # --- requests ----------------------------------------------------------------------------------

    def _tick(self, now: float, arrived: list[float]) -> None:
        """One tick: foresee, let in, go on."""
        seconds, history, rules = self._load.tick_s, self._history, self._control.rules
        tick = history.begin()
        cells = {role: pool.cell for role, pool in self._fleet.pools.items()}
        clocks = {role: cell.clock for role, cell in cells.items()}
        levels = []
        for role, cell in cells.items():
            cell.limit = float(self._control.limits[role].soft)
            cell.foresee(seconds)
            levels.append(cell.level(seconds))
        self._door.let_in(now + seconds / 2, tick, arrived, levels, rules, history)
        for place, (role, cell) in enumerate(cells.items()):
            cell.floor = levels[place].floor
            begun = history.taken[tick, :, place]
            ended = cell.advance(seconds, self._coming(place, begun, levels[place].bunch))
            self._speeds[role].add(now, ended, begun, cell.pace)
        history.note(tick, clocks, {role: cell.pace for role, cell in cells.items()})
        if self._door.queue.busy:
            self._refuse(now + seconds / 2, tick, stranded=not any(cell.replicas for cell in cells.values()))
        self._fleet.drain(seconds, now)

    def _coming(self, place: int, begun: Numbers, bunch: float) -> Coming:
        """Those let in, by kind, in the pool of a place."""
        flows, total = len(self._load.flows), float(summed(begun))
        sequences = np.asarray(np.bincount(self._flow_of, begun, flows), float)
        prompts = np.asarray(np.bincount(self._flow_of, begun * self._prompts, flows), float)
        if total <= 0:
            return Coming(sequences, prompts, 1.0)
        squares = begun * self._squares
        square = float(summed(squares))
        guests = float(summed(squares[self._home != place])) / square
        return Coming(sequences, prompts, square / total, guests, bunch)

    def _refuse(self, at_s: float, tick: int, *, stranded: bool) -> None:
        for kind, came_s, count in self._door.queue.refuse(at_s, self._control.rules, stranded=stranded):
            self._history.refused[min(tick, int(came_s / self._load.tick_s)), kind] += count
            self._control.refuse(self._preferred[self._flow_of[kind]], count, at_s)
