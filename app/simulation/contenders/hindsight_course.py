"""The hindsight optimum: sizes by dynamic programming over the whole trace, begun early enough.

It knows every arrival with its lengths, the engines' true cost, mean acceptance and how requests differ in
it, and the delays.  For each interval it weighs interactive sequences that find no room or are late, batch
sequences that find no room, and what moves cost, and takes the cheapest course of all.  Our routing serves
under it, with the limits that are believed, as under every controller.

So it bounds what a controller can gain by knowing the future, not what routing can; and only as far as the
closed form tells the load: what waits, spills over or is backfilled is not in it, nor is the luck of drafts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from app.simulation.contenders.hindsight_load import Numbers, PoolLoad, loads
from app.simulation.contenders.rule_control import Look, RuleControl, split
from app.simulation.contenders.scene import Scene, limits_in_force, policy_at_start, two_pools
from app.simulation.control import TICK_S, Believed
from app.simulation.fleet import Fleet
from app.simulation.service import SETTLE_S
from app.simulation.setup import Setup
from autoscaling.decisions import PolicyInForce
from autoscaling.types import Role

INTERVAL_S = 30
INTERACTIVE_WEIGHT = 30.0  # of an interactive sequence that misses, over one of batch work
# Sequences that a replica costs in the plain pool where nobody misses it: callers who wait come first.
SPARE = 1e-3


@dataclass(frozen=True, slots=True)
class Course:
    """How many replicas speculate in each interval, and how long before it a move has to begin."""

    sizes: tuple[int, ...]
    lead_s: float

    def at(self, at_s: float) -> int:
        """The size to ask for at a time of the trace: the largest that is needed until a move would end."""
        last = len(self.sizes) - 1
        first = min(last, max(0, int(at_s // INTERVAL_S)))
        until = min(last, max(0, int((at_s + self.lead_s) // INTERVAL_S)))
        return max(self.sizes[first : until + 1])


class CourseControl(RuleControl):
    """Follows a course, whatever it sees."""

    period_s: ClassVar[float] = TICK_S

    def __init__(self, course: Course, believed: Believed, fleet: Fleet, now: float) -> None:
        super().__init__(believed, fleet, now)
        self._course = course
        self._begins_at = now + SETTLE_S  # the trace

    def wanted(self, look: Look) -> int:
        """What the course has for this moment."""
        return self._course.at(look.seen.now - self._begins_at)


def hindsight(scene: Scene) -> Setup:
    """The best course for the scene's trace, from its first size on.  Raises ValueError without a trace."""
    found = course(scene)
    return two_pools(
        scene,
        sizes=split(found.at(0.0), policy_at_start(scene)),
        control=partial(CourseControl, found),
    )


def course(scene: Scene) -> Course:
    """The course with the least cost; as `hindsight`."""
    if not scene.trace:
        raise ValueError("hindsight: the scene has no trace, and it is nothing without: give Scene.trace")
    policy = policy_at_start(scene)
    objective_s = policy.pools[Role.SPECULATIVE].tpot_s
    load = loads(scene.trace, scene.engines, limits_in_force(scene, scene.believed_profile), objective_s)
    delays = scene.delays
    stay_s = max(one.stay_s for one in load.values())
    lead_s = min(stay_s, delays.drain_limit_s) + delays.stop_s + delays.start_s
    first, last = split(0, policy)[Role.SPECULATIVE], split(scene.replicas, policy)[Role.SPECULATIVE]
    sizes = range(first, last + 1)
    # While it moves a replica leaves batch work undone: its part of all there is.
    idle = float(load[Role.PLAIN].open.mean()) / scene.replicas
    path = cheapest(costs(load, sizes, policy), lead_s * idle)
    return Course(tuple(sizes[place] for place in path), lead_s)


def costs(load: Mapping[Role, PoolLoad], sizes: Sequence[int], policy: PolicyInForce) -> Numbers:
    """[interval, size] sequence-seconds of batch work that a size costs; the plain pool has the rest."""
    plain = [split(size, policy)[Role.PLAIN] for size in sizes]
    missed = INTERACTIVE_WEIGHT * _missed(load[Role.SPECULATIVE], sizes) + _missed(load[Role.PLAIN], plain)
    found: Numbers = missed + SPARE * INTERVAL_S * np.array(plain)
    return found


def cheapest(costs: Numbers, per_step: float) -> list[int]:
    """The place in each row of `costs` such that these and `per_step` for each place moved cost least.

    By dynamic programming; of equally cheap courses it is one that ends at the smallest place.
    """
    rows, places = costs.shape
    apart = per_step * np.abs(np.subtract.outer(np.arange(places), np.arange(places)))  # [to, from]
    so_far, came = costs[0], np.zeros((rows, places), dtype=np.intp)
    for row in range(1, rows):
        ways = so_far[None, :] + apart
        came[row] = ways.argmin(axis=1)
        so_far = costs[row] + ways.min(axis=1)
    path = [int(so_far.argmin())]
    for row in range(rows - 1, 0, -1):
        path.append(int(came[row, path[-1]]))
    return path[::-1]


def _missed(load: PoolLoad, sizes: Sequence[int]) -> Numbers:
    """[interval, size] sequence-seconds without room or late, with the load spread evenly over replicas."""
    limit = len(load.late) - 1
    intervals = -(-len(load.open) // INTERVAL_S)
    open_now = np.pad(load.open, (0, intervals * INTERVAL_S - len(load.open)))[:, None]
    replicas = np.array(sizes, dtype=float)[None, :]
    placed = np.minimum(open_now, limit * replicas)
    late = np.interp(placed / np.maximum(1.0, replicas), np.arange(limit + 1), load.late)
    missed = open_now - placed + placed * late
    found: Numbers = missed.reshape(intervals, INTERVAL_S, len(sizes)).sum(axis=1)
    return found
