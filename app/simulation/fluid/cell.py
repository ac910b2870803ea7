"""Replicas that share their load: the sequences in flight there, and who ends while their clock goes on."""

from __future__ import annotations

import math

import numpy as np

from app.simulation.fluid.coming import Coming
from app.simulation.fluid.ends import Ends
from app.simulation.fluid.level import Level
from app.simulation.fluid.load import Numbers, summed
from app.simulation.fluid.nature import Nature
from app.simulation.fluid.pace import Busy, Pace
from app.simulation.fluid.past import Past
from app.simulation.fluid.uneven import LATELY_S, Lately, Uneven

FAR = 0.05  # a tick whose pace comes out by more than this share off what was foreseen is done again
AGAIN = 3  # times at most
_ALIKE = (  # in both parts of a cell
    "limit",
    "floor",
    "clock",
    "pace",
    "uneven",
    "_context",
    "_drafting",
    "_hidden",
    "_prompt",
    "_guests",
    "_backlog",
    "_first_s",
    "_lately",
    "_past",
)


class Cell:
    """Some replicas of one pool.  First `foresee` a tick, then `advance` over it with those who come.

    The clock counts steps since the beginning.  Sequences that fit run: all of one flow and one length leave
    as many steps after they came.  What does not fit waits inside the engines.
    """

    def __init__(self, nature: Nature, replicas: int) -> None:
        flows = len(nature.ages)
        self.replicas = replicas
        self.limit = math.inf  # sequences of each up to which ingresses send it more
        self.floor = 0.0  # sequences of each up to which guests fill them
        self.uneven = Uneven()
        self.clock = 0.0
        self.left = 0.0  # sequences in flight when the tick ends, if nobody came
        # By flow, the share of those who come that is there at its end.
        self.staying: Numbers = np.ones(flows)
        self._nature = nature
        self._ends = Ends(nature.stays)
        self._running: Numbers = np.zeros(flows)
        self._waiting: Numbers = np.zeros(flows)
        self._sums = (0.0, 0.0)  # of both
        self._prompts: Numbers = np.zeros(flows)  # tokens of those in flight
        self._prompt = (1.0, 1.0)  # tokens of a prompt that comes: mean, and mean of the squares
        self._guests = (0.0, 1.0)  # their share of the squares, and how many of them come at once
        self._entering_per_s = self._backlog = self._first_s = 0.0  # per replica
        self._context = nature.stepping.context_tokens
        self._drafting = float(nature.drafting.mean())
        self._hidden = float(nature.hidden.mean())
        self._lately = Lately()
        self._past = Past(nature.crowd.age_s)
        self._stay = 0.0  # of those that run: still there when the tick ends, if nobody began to
        self.pace: Pace = self._paced(0.0, 0.0, 0.0, 1.0)

    @property
    def in_flight(self) -> Numbers:
        """Sequences in flight, by flow."""
        return self._running + self._waiting

    @property
    def total(self) -> float:
        """Sequences in flight."""
        return self._sums[0] + self._sums[1]

    def foresee(self, seconds: float) -> None:
        """Look ahead over a tick in which as many begin to run as of late."""
        there, (running, waiting) = self.in_flight, self._sums
        if running > 0:
            # What waits inside the engine holds no memory, and may have other lengths.
            prompts = np.divide(self._prompts, there, np.zeros_like(there), where=there > 0)
            self._context = float(self._running @ (prompts + self._nature.ages)) / running
            self._drafting = float(self._running @ self._nature.drafting) / running
            self._hidden = float(self._running @ self._nature.hidden) / running
        self.uneven = self._lately.uneven(
            self._nature.crowd, self.replicas, self.pace.steady, self.limit, self._hidden, self.floor
        )
        self._look(self._paced(running, waiting, self._entering_per_s, seconds), seconds)
        self.left = self._stay + waiting
        if waiting > 0:
            self.staying = np.ones_like(self.staying)

    def advance(self, seconds: float, coming: Coming) -> Numbers:
        """Pass a tick in which sequences come evenly; those that end, by flow."""
        total = float(summed(coming.sequences))
        if total > 0:
            self._prompt = float(summed(coming.prompts)) / total, coming.square
            self._guests = coming.guests, coming.bunch
        replicas, (began, waited) = max(1, self.replicas), self._sums
        offered = self._waiting + coming.sequences
        fitting = self._nature.stepping.fitting(self._context) * replicas
        entering = offered
        if waited > 0:
            self._look(self.pace, seconds)
        for _ in range(AGAIN):
            there = float(offered @ self.staying)
            share = min(1.0, max(0.0, fitting - self._stay) / there) if there > 0 else 1.0
            entering = offered * share
            waiting = (waited + float(summed(offered)) * (1.0 - share)) / 2
            per_s, foreseen = float(summed(entering)) / replicas / seconds, self.pace.steps_per_s
            middle = (began + self._stay + there * share) / 2
            self._look(self._paced(middle, waiting, per_s, seconds), seconds)
            if abs(self.pace.steps_per_s - foreseen) <= FAR * foreseen:
                break
        pace, steps = self.pace, self.pace.steps_per_s * seconds
        if entering.any():
            self._ends.add(entering, steps, pace.first_s * pace.steps_per_s)
        gone = self._ends.leave(steps)
        held = self._running + offered
        self._running = np.maximum(self._running + entering - gone, 0.0)
        self._waiting = offered - entering
        self._sums = float(summed(self._running)), float(summed(self._waiting))
        kept = np.divide(self.in_flight, held, np.zeros_like(held), where=held > 0)
        self._prompts = (self._prompts + coming.prompts) * kept
        self.clock += steps
        # By the last tick alone pools would take turns, each full of what the other one was too full for.
        newest = -math.expm1(-seconds / LATELY_S)
        self._entering_per_s += newest * (float(summed(entering)) / replicas / seconds - self._entering_per_s)
        self._backlog, self._first_s = pace.backlog, pace.first_s
        load = self.total / replicas
        self._past = self._past.then(seconds, load)
        self._lately = self._lately.then(seconds, total / replicas, load)
        return gone

    def level(self, seconds: float) -> Level:
        """How full the replicas are in a tick that was foreseen, for those who come in it."""
        replicas, crowd = max(1, self.replicas), self._nature.crowd
        return Level(
            now=self.total / replicas,
            load=self.left / replicas,
            replicas=replicas,
            staying=self.staying.tolist(),
            crowding=self.uneven.seen,
            own=crowd.own,
            others=self._past.at(max(0.0, crowd.age_s - seconds)),
            looks=1.0 + self.uneven.leaving_per_s * seconds,
        )

    def split(self, replicas: int) -> Cell:
        """Part with some of the replicas, and with what is open there."""
        share = replicas / self.replicas
        other = Cell(self._nature, replicas)
        other._ends = self._ends.part(share)
        for name in ("_running", "_waiting", "_prompts"):
            whole = getattr(self, name)
            setattr(other, name, whole * share)
            setattr(self, name, whole * (1.0 - share))
        for cell in (self, other):
            cell._sums = float(summed(cell._running)), float(summed(cell._waiting))
        for name in _ALIKE:
            setattr(other, name, getattr(self, name))
        self.replicas -= replicas
        return other

    def join(self, replicas: int) -> None:
        """Take in replicas that have nothing open."""
        before, self.replicas = self.replicas, self.replicas + replicas
        self._entering_per_s *= before / self.replicas
        self._backlog *= before / self.replicas
        self._lately = self._lately.thinned(before / self.replicas)
        self._past = self._past.thinned(before / self.replicas)

    def _paced(self, running: float, waiting: float, entering_per_s: float, seconds: float) -> Pace:
        """The pace with so many sequences at all replicas together; the last is for each of them."""
        replicas = max(1, self.replicas)
        return self._nature.stepping.pace(
            Busy(
                seconds=seconds,
                running=running / replicas,
                waiting=waiting / replicas,
                context_tokens=self._context,
                drafting=self._drafting,
                entering_per_s=entering_per_s,
                prompt_tokens=self._prompt[0],
                prompt_square=self._prompt[1],
                guests=self._guests[0],
                bunch=self._guests[1],
                backlog=self._backlog,
                first_s=self._first_s,
                uneven=self.uneven,
            )
        )

    def _look(self, pace: Pace, seconds: float) -> None:
        self.pace, steps = pace, pace.steps_per_s * seconds
        self._stay = self._sums[0] - float(summed(self._ends.within(steps)))
        self.staying = self._ends.staying(steps, pace.first_s * pace.steps_per_s)
