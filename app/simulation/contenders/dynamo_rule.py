"""The load rule of NVIDIA Dynamo's SLA planner (ai-dynamo/dynamo), on the speculative pool.

Every 5 s (`load_adjustment_interval`) it estimates the time per token at each engine from what runs and what
is queued there: one replica more when all engines are above the objective, one fewer when all are below 0.8
of it (`load_scaling_down_sensitivity`), one change on its way at a time, within the GPU budget.

Dynamo fits its estimate on the engines' own steps; here it is the believed cost model.  Its queues are in
the engines; ours are at the ingresses, so what waits there, or was sent elsewhere, counts in equal parts.
The plain pool gets the rest of the budget, which Dynamo would leave idle until that pool asks for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from app.simulation.contenders.rule_control import Look, RuleControl
from app.simulation.contenders.scene import Scene, two_pools
from app.simulation.setup import Setup
from autoscaling.profile import MEAN
from autoscaling.step_cost import tpot_s
from autoscaling.types import Role

SENSITIVITY = 0.8  # load_scaling_down_sensitivity: 80


class DynamoControl(RuleControl):
    """One replica at a time, when all engines agree."""

    period_s: ClassVar[float] = 5.0  # load_adjustment_interval

    def wanted(self, look: Look) -> int:
        """One more, one fewer, or as many as now."""
        current = look.targets[Role.SPECULATIVE]
        objective = look.policy.pools[Role.SPECULATIVE].tpot_s
        profile = self._believed.profile
        if look.moving or objective is None or profile is None:
            return current
        loads = [report.inflight for report in self._reports(Role.SPECULATIVE)]
        gain = profile.tokens_per_step[MEAN]
        cost, context = profile.costs[Role.SPECULATIVE], profile.context_tokens
        estimates = [
            tpot_s(cost, load, context, gain)
            for load in with_queue(loads, look.seen.pools[Role.SPECULATIVE].wanted)
        ]
        return current + vote(estimates, objective)


def dynamo_like(scene: Scene) -> Setup:
    """Dynamo's load rule in place of our controller, our routing."""
    return two_pools(scene, control=DynamoControl)


def with_queue(loads: Sequence[int], wanted: int | None) -> list[float]:
    """Sequences of each engine, with an equal part of those that are wanted and are on none of them."""
    waiting = max(0, (wanted or 0) - sum(loads))
    return [load + waiting / len(loads) for load in loads]


def vote(estimates: Sequence[float], objective: float) -> int:
    """1 when all are above the objective, -1 when all of several are below 0.8 of it, else 0."""
    if estimates and all(one > objective for one in estimates):
        return 1
    if len(estimates) > 1 and all(one < objective * SENSITIVITY for one in estimates):
        return -1
    return 0
