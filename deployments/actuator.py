"""Applies the controller's plan to Serve's targets, from inside Serve's own controller process.

Standard library only, because that process has none of our environment.  An exception here would stop
every application of the cluster and a wait would stop its control loop, so `ApplyPlan` does neither:
on any doubt it holds, which means it returns nothing and every target stays as it is.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

logger = logging.getLogger("ray.serve")

FRESH_S = 15.0
FORGET_S = 300.0  # a controller that is silent for so long is gone, and its epoch with it
LOG_EVERY_S = 60.0
LARGEST = 2**53  # whole numbers up to here are exact in the floats that metrics travel as

WAITING = frozenset({"no_plan", "unproven"})  # causes that every start passes through


class DoubtError(Exception):
    """Why the targets are held this tick; `args` are the cause, one word, and what was seen."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What the controller wants; it never costs more than `budget`."""

    epoch: int  # one per controller life, growing
    seq: int  # grows with every report of the plan
    budget: int  # accelerators
    targets: Mapping[str, int]  # replicas per pool
    accelerators: Mapping[str, int]  # per replica of each pool


def metric_names(pools: Iterable[str]) -> tuple[str, ...]:
    """The autoscaling statistics that make up one plan."""
    per_pool = (f"{what}_{pool}" for pool in pools for what in ("target", "accelerators"))
    return ("plan_epoch", "plan_seq", "plan_budget", *per_pool)


def whole(name: str, value: object) -> int:
    """`value` as an integer of at least 0; `DoubtError` for everything else, NaN and booleans included."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= LARGEST:
        number = int(value)
        if number == value:
            return number
    raise DoubtError("not_whole", f"{name} is {value!r}, not a whole number of at least 0")


def newest_points(raw: Mapping[str, Mapping[Any, Any]], names: tuple[str, ...]) -> dict[Any, dict[str, Any]]:
    """By controller replica and metric name: the newest point, with its `timestamp` and `value`.

    A replica that reports none of `names` is left out; one that lacks some raises `DoubtError`.
    """
    points: dict[Any, dict[str, Any]] = {}
    for name in names:
        for replica, series in raw.get(name, {}).items():
            if series:
                points.setdefault(replica, {})[name] = max(series, key=lambda point: point.timestamp)
    for found in points.values():
        absent = [name for name in names if name not in found]
        if absent:
            raise DoubtError("incomplete", f"the plan lacks {', '.join(absent)}")
    return points


def parse(points: Mapping[str, Any], pools: Iterable[str], ceiling: int) -> Plan:
    """One replica's plan from its newest points; `DoubtError` if it is torn or wrong."""
    if len({point.timestamp for point in points.values()}) != 1:
        raise DoubtError("torn", "the plan's numbers are not of one moment")
    numbers = {name: whole(name, point.value) for name, point in points.items()}
    plan = Plan(
        epoch=numbers["plan_epoch"],
        seq=numbers["plan_seq"],
        budget=numbers["plan_budget"],
        targets={pool: numbers[f"target_{pool}"] for pool in pools},
        accelerators={pool: numbers[f"accelerators_{pool}"] for pool in pools},
    )
    if not all(plan.accelerators.values()):
        raise DoubtError("not_whole", "a replica of no accelerators")
    if plan.budget > ceiling:
        raise DoubtError("above_ceiling", f"a budget of {plan.budget} accelerators; the ceiling is {ceiling}")
    wanted = cost(plan, plan.targets)
    if wanted > plan.budget:
        raise DoubtError("above_budget", f"targets of {wanted} accelerators; the budget is {plan.budget}")
    return plan


def cost(plan: Plan, replicas: Mapping[str, int]) -> int:
    """Accelerators that so many replicas of each pool take."""
    return sum(replicas[pool] * each for pool, each in plan.accelerators.items())


def changes(plan: Plan, current: Mapping[str, int]) -> dict[str, int]:
    """The targets to change now, given the current ones: donors at once, receivers into free room.

    What a donor gives up counts as free from the next tick, when Serve has taken the lower target.
    """
    changed = {pool: target for pool, target in plan.targets.items() if target < current[pool]}
    room = plan.budget - cost(plan, current)
    for pool, target in plan.targets.items():
        grow = min(target - current[pool], room // plan.accelerators[pool])
        if grow > 0:
            changed[pool] = current[pool] + grow
            room -= grow * plan.accelerators[pool]
    return changed


class ApplyPlan:
    """Application-level autoscaling policy: Serve calls it with every deployment's context each tick.

    `controller` and `pools` are deployment names; `ceiling` is the most accelerators that any plan may
    use.  `clock` is monotonic, in seconds.
    """

    def __init__(
        self, controller: str, pools: list[str], ceiling: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._controller = controller
        self._pools = pools
        self._ceiling = ceiling
        self._clock = clock
        self._seen: tuple[int, int] | None = None  # the highest (epoch, seq) of a valid plan
        self._advanced_at: float | None = None  # when it last grew; None until it has
        self._seen_at = 0.0  # when it was first seen
        self._lower: tuple[int, int] | None = None  # the last (epoch, seq) that was refused as old
        self._logged: dict[str, float] = {}

    def __call__(self, contexts: Mapping[Any, Any]) -> tuple[dict[Any, int], dict[Any, Any]]:
        """Targets by deployment id, and no state; `({}, {})` holds."""
        try:
            return self._decide(contexts), {}
        except DoubtError as doubt:
            self._log(*doubt.args)
        except Exception as error:
            self._log("error", type(error).__name__)
        return {}, {}

    def _decide(self, contexts: Mapping[Any, Any]) -> dict[Any, int]:
        ids = {deployment.name: deployment for deployment in contexts}
        missing = [name for name in (self._controller, *self._pools) if name not in ids]
        if missing:
            raise DoubtError("missing_deployment", f"Serve gave no context of {', '.join(missing)}")
        plan = self._newest(contexts[ids[self._controller]].raw_metrics or {})
        self._prove(plan)
        current = {pool: whole(pool, contexts[ids[pool]].target_num_replicas) for pool in self._pools}
        return {ids[pool]: target for pool, target in changes(plan, current).items()}

    def _newest(self, raw: Mapping[str, Mapping[Any, Any]]) -> Plan:
        """The plan of the highest epoch among the controller's replicas (usually there is one)."""
        reports = newest_points(raw, metric_names(self._pools)).values()
        if not reports:
            raise DoubtError("no_plan", "the controller has reported no plan")
        epochs = [whole("plan_epoch", points["plan_epoch"].value) for points in reports]
        plans = [
            parse(points, self._pools, self._ceiling)
            for points, epoch in zip(reports, epochs, strict=True)
            if epoch == max(epochs)
        ]
        return max(plans, key=lambda plan: plan.seq)

    def _prove(self, plan: Plan) -> None:
        """Whether the controller behind the plan is alive: its numbers grew while this object looked on.

        The first sight proves nothing: it may be the last word of a dead controller.  Timestamps prove
        nothing either: the clocks of two nodes may differ.
        """
        position, now = (plan.epoch, plan.seq), self._clock()
        if self._seen is not None and position < self._seen and not self._outlived_by(position, now):
            raise DoubtError("old", f"plan {position} after plan {self._seen}")
        if position != self._seen:
            self._advanced_at = None if self._seen is None else now
            self._seen, self._seen_at, self._lower = position, now, None
        if self._advanced_at is None:
            raise DoubtError("unproven", f"plan {position} has not advanced yet")
        if not 0.0 <= now - self._advanced_at <= FRESH_S:
            raise DoubtError("stale", f"plan {position} has not advanced for {now - self._advanced_at:.0f} s")

    def _outlived_by(self, position: tuple[int, int], now: float) -> bool:
        """Whether a controller of a lower epoch lives, and the highest one has long been silent.

        Else an epoch that was too high, of a store that is gone, would hold the targets for ever.
        """
        former, self._lower = self._lower, position
        advances = former is not None and former[0] == position[0] and former < position
        return (
            advances
            and self._seen is not None
            and position[0] < self._seen[0]
            and now - self._seen_at >= FORGET_S
        )

    def _log(self, cause: str, detail: str) -> None:
        with contextlib.suppress(Exception):
            now = self._clock()
            if now - self._logged.get(cause, now - LOG_EVERY_S) >= LOG_EVERY_S:
                self._logged[cause] = now
                level = logging.INFO if cause in WAITING else logging.WARNING
                message = "twinpool holds the targets (%s): %s."
                logger.log(level, message, cause, detail, exc_info=cause == "error")


def hold(context: Any) -> tuple[int, dict[str, Any]]:
    """Deployment-level policy of each pool, in force only if `ApplyPlan` could not be loaded."""
    return context.target_num_replicas, {}
