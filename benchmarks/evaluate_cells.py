"""The runs that each part of `benchmarks.evaluate` needs: policies, splits, beliefs, both models; pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from app.simulation.contenders import CONTENDERS
from benchmarks.evaluate_plan import (
    BELIEVED,
    BOUNDS,
    DELAY_S,
    DELAYS_S,
    OURS,
    REPLICAS,
    RIVAL,
    RULES,
    SAME_AT_ANY_DELAY,
    SNAPSHOT_DELAY_S,
    SNAPSHOT_DELAYS_S,
    Cell,
    Model,
    Traffic,
)

Cells = tuple[Cell, ...]  # one per seed, in the order of the plan's seeds


@dataclass(frozen=True, slots=True)
class Panel:
    """One load at one delay: what policies are compared on."""

    traffic: Traffic
    delay_s: float


@dataclass(frozen=True, slots=True)
class Sensing:
    """One policy with one thing off."""

    contender: str
    key: str  # as figures name it
    words: str
    cells: Cells


@dataclass(frozen=True, slots=True)
class Hour:
    """One policy on one load at one delay, for so long that pools also give replicas."""

    traffic: Traffic
    delay_s: float | None  # None: nothing of it ever starts
    cells: Cells


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is simulated."""

    contenders: tuple[str, ...]
    seeds: tuple[int, ...]
    sensed_seeds: int  # so many of them where one thing is off
    minutes: float  # of a trace in the event model
    splits: tuple[int, ...]  # speculative replicas of static splits, of `REPLICAS`
    fleets: tuple[int, ...]  # replicas of the fleets that are timed, growing
    long_minutes: float  # of a trace in the fluid model
    delays_s: tuple[float, ...] = DELAYS_S
    traffics: tuple[Traffic, ...] = tuple(Traffic)

    def names(self, panel: Panel) -> tuple[str, ...]:
        """The contenders that are simulated in a panel: all at `DELAY_S`, elsewhere those that learn by it.

        What knows the trace is a bound and no policy; the simple rules are tried on the mixed load.
        """
        if panel.delay_s == DELAY_S:
            return self.contenders
        left_out = BOUNDS if panel.traffic is Traffic.MIXED else (*BOUNDS, *RULES)
        return tuple(name for name in self.contenders if name not in left_out)

    def no_backfill(self, traffic: Traffic) -> Cells:
        """Ours with backfill off, at one delay."""
        return tuple(replace(one, backfill=False) for one in self.policy(traffic, OURS))

    @property
    def panels(self) -> tuple[Panel, ...]:
        """Every load at every delay."""
        return tuple(Panel(traffic, delay_s) for traffic in self.traffics for delay_s in self.delays_s)

    def policy(self, traffic: Traffic, contender: str, delay_s: float = DELAY_S) -> Cells:
        """A policy on a load; one that no delay can change is run at one of them."""
        at_s = DELAY_S if contender in SAME_AT_ANY_DELAY else delay_s
        return tuple(Cell(Model.EVENT, traffic, contender, seed, self.minutes, at_s) for seed in self.seeds)

    def split(self, traffic: Traffic, speculative: int) -> Cells:
        """A static split, which may be a contender, too."""
        name = f"static-{100 * speculative / REPLICAS:g}"
        cells = self.policy(traffic, name)
        return cells if name in CONTENDERS else tuple(replace(one, split=speculative) for one in cells)

    def sensitivity(self) -> tuple[Sensing, ...]:
        """Ours and the strongest rival on the conversations, with one thing off at a time."""
        found = []
        for name in (OURS, RIVAL):
            right = self.policy(Traffic.CONVERSATION, name)[: self.sensed_seeds]
            found.append(Sensing(name, "right", f"nothing; snapshots are {SNAPSHOT_DELAY_S:g} s old", right))
            for factor in BELIEVED:
                words = f"acceptance believed at {factor:g} of the truth"
                cells = tuple(replace(one, acceptance=factor) for one in right)
                found.append(Sensing(name, f"acceptance_{factor:g}", words, cells))
            for factor in BELIEVED:
                words = f"the cost of a step believed at {factor:g} of the truth"
                cells = tuple(replace(one, cost=factor) for one in right)
                found.append(Sensing(name, f"cost_{factor:g}", words, cells))
            if name == OURS:
                off = self.no_backfill(Traffic.CONVERSATION)[: self.sensed_seeds]
                found.append(Sensing(name, "no_backfill", "backfill is off", off))
            found += [
                Sensing(
                    name,
                    f"snapshots_{late_s:g}_s",
                    f"snapshots are {late_s:g} s old",
                    tuple(replace(one, snapshot_delay_s=late_s) for one in right),
                )
                for late_s in SNAPSHOT_DELAYS_S
            ]
        return tuple(found)

    def gaps(self) -> tuple[tuple[Cells, Cells], ...]:
        """Ours on every load in the event model, and the same in the fluid one."""
        return tuple(
            (event, tuple(replace(one, model=Model.FLUID) for one in event))
            for event in (self.policy(traffic, OURS) for traffic in self.traffics)
        )

    def hours(self) -> tuple[Hour, ...]:
        """Ours at every delay, ours without backfill, and static splits, in the fluid model."""
        found = []
        for traffic in self.traffics:
            asked: list[tuple[Cells, float | None]] = [
                (self.policy(traffic, OURS, delay_s), delay_s) for delay_s in self.delays_s
            ]
            asked.append((self.no_backfill(traffic), DELAY_S))
            asked += [(self.split(traffic, size), None) for size in self.splits]
            found += [Hour(traffic, delay_s, self._long(cells)) for cells, delay_s in asked]
        return tuple(found)

    def _long(self, cells: Cells) -> Cells:
        return tuple(replace(one, model=Model.FLUID, minutes=self.long_minutes) for one in cells)

    def cells(self) -> list[Cell]:
        """Every run once; by seed, and those of one load follow one another."""
        groups = [
            self.policy(one.traffic, name, one.delay_s) for one in self.panels for name in self.names(one)
        ]
        groups += [self.no_backfill(traffic) for traffic in self.traffics]
        groups += [self.split(traffic, size) for traffic in self.traffics for size in self.splits]
        groups += [one.cells for one in self.sensitivity()]
        groups += [cells for pair in self.gaps() for cells in pair]
        groups += [one.cells for one in self.hours()]
        wanted = dict.fromkeys(cell for cells in groups for cell in cells)
        return sorted(wanted, key=lambda one: (one.seed, one.traffic))
