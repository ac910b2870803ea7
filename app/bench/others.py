"""How much of our CPU cores processes use that are not of the measurement, and which they are."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

import psutil

from autoscaling.profiling.measured import BUSY

LOOK_S: Final = 1.0
MOST_NAMED: Final = 3
WORTH_NAMING: Final = 0.05  # cores
# What keeps a core from us; `guest` is in `user`, and idle and waiting for a disk keep nothing.
_BUSY: Final = ("user", "nice", "system", "irq", "softirq", "steal")


@dataclass(frozen=True, slots=True)
class Use:
    """CPU time of other processes within a time."""

    core_s: float
    seconds: float

    @property
    def cores(self) -> float:
        """Cores in use, on average."""
        return self.core_s / self.seconds if self.seconds > 0 else 0.0

    def plus(self, other: Use) -> Use:
        """Both times together."""
        return Use(self.core_s + other.core_s, self.seconds + other.seconds)


NO_USE: Final = Use(0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Clock:
    """What our cores have done until a moment."""

    at_s: float  # monotonic
    busy_s: float  # CPU seconds of our cores, whoever had them
    own_s: float  # of this process and all below it, ended ones too


@dataclass(frozen=True, slots=True)
class Busy:
    """One process that uses our cores."""

    name: str
    pid: int
    cores: float


@dataclass(frozen=True, slots=True)
class Look:
    """What others use, and who uses most; those that we may not see are in the sum only."""

    cores: float
    ours: int
    busiest: tuple[Busy, ...]

    @property
    def busy(self) -> bool:
        """Whether a measurement beside it would be judged wrongly."""
        return is_busy(self.cores)

    def words(self) -> str:
        """One line for people."""
        named = ", ".join(f"{one.name} (pid {one.pid}): {one.cores:.1f}" for one in self.busiest)
        return f"other processes use {self.cores:.1f} of {self.ours} CPU cores{named and f', {named}'}"


def our_cores() -> tuple[int, ...]:
    """The CPU cores that we may run on."""
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))


def is_busy(cores: float) -> bool:
    """Whether others use so much of our cores that a measurement beside them is not relied upon."""
    return cores > BUSY * len(our_cores())


def clock() -> Clock | None:
    """The present; None where the system does not tell."""
    try:
        times = psutil.cpu_times(percpu=True)
        ours = our_cores()
        # Cores that are switched off are not listed: then numbers say nothing, and all count.
        chosen = [times[core] for core in ours] if max(ours) < len(times) else times
        busy_s = sum(getattr(one, name, 0.0) for one in chosen for name in _BUSY)
        return Clock(time.monotonic(), busy_s, sum(_spent_s(one) for one in _own()))
    except (psutil.Error, OSError):
        return None


def used(first: Clock, second: Clock) -> Use:
    """What others used between two moments; never less than nothing, for ticks are coarse."""
    core_s = (second.busy_s - first.busy_s) - (second.own_s - first.own_s)
    return Use(max(0.0, core_s), second.at_s - first.at_s)


def look(seconds: float = LOOK_S) -> Look | None:
    """Look for so long who uses our cores beside us; None where the system does not tell."""
    first, before = clock(), _spent_by_process()
    time.sleep(seconds)
    second, after = clock(), _spent_by_process()
    if first is None or second is None:
        return None
    own = {one.pid for one in _own()}
    return Look(used(first, second).cores, len(our_cores()), _busiest(before, after, own, seconds))


_Key = tuple[int, float]  # pid and start: a pid may be given again


def _busiest(
    before: dict[_Key, tuple[str, float]],
    after: dict[_Key, tuple[str, float]],
    own: Collection[int],
    seconds: float,
) -> tuple[Busy, ...]:
    found = [
        Busy(name, key[0], (spent_s - before[key][1]) / seconds)
        for key, (name, spent_s) in after.items()
        if key in before and key[0] not in own
    ]
    found = [one for one in found if one.cores >= WORTH_NAMING]
    return tuple(sorted(found, key=lambda one: -one.cores)[:MOST_NAMED])


def _own() -> list[psutil.Process]:
    this = psutil.Process()
    return [this, *this.children(recursive=True)]


def _spent_s(process: psutil.Process) -> float:
    """CPU seconds, with those of children that have ended: none is lost with them."""
    try:
        spent = process.cpu_times()
    except psutil.Error:
        return 0.0
    return float(spent.user + spent.system + spent.children_user + spent.children_system)


def _spent_by_process() -> dict[_Key, tuple[str, float]]:
    found = {}
    for one in _processes():
        with contextlib.suppress(psutil.Error):
            spent = one.cpu_times()
            found[one.pid, one.create_time()] = (one.name(), float(spent.user + spent.system))
    return found


def _processes() -> Iterable[psutil.Process]:
    try:
        return list(psutil.process_iter())
    except (psutil.Error, OSError):
        return ()
