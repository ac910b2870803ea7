"""The rule of Kubernetes' HorizontalPodAutoscaler (autoscaling/v2) on the speculative pool's utilization.

By the algorithm and the defaults of its documentation (kubernetes.io, Horizontal Pod Autoscaling): every 15 s
desired = ceil(current x utilization / target), no change within 10 % of the target, up at once and by at most
four replicas or the double, down to the highest recommendation of the last 300 s.  The target is 0.7.

Kubernetes would scale each pool by itself and knows no common budget: here the speculative pool comes first,
and the plain pool gets the rest.  Utilization is demand over soft limits, as our controller reads it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from math import ceil
from typing import ClassVar

from app.simulation.contenders.rule_control import Look, RuleControl
from app.simulation.contenders.scene import Scene, two_pools
from app.simulation.control import Believed
from app.simulation.fleet import Fleet
from app.simulation.setup import Setup
from autoscaling.types import Role

TARGET = 0.7  # of the soft limits; HPA has no default
TOLERANCE = 0.1  # --horizontal-pod-autoscaler-tolerance
DOWN_WINDOW_S = 300.0  # --horizontal-pod-autoscaler-downscale-stabilization
MOST_MORE, MOST_TIMES = 4, 2  # scaleUp.policies: 4 pods or 100 percent in 15 s, the larger


class HpaControl(RuleControl):
    """Remembers what it has recommended, which keeps it from going down too soon."""

    period_s: ClassVar[float] = 15.0  # --horizontal-pod-autoscaler-sync-period

    def __init__(self, believed: Believed, fleet: Fleet, now: float) -> None:
        super().__init__(believed, fleet, now)
        self._past: deque[tuple[float, int]] = deque()  # when, and how many

    def wanted(self, look: Look) -> int:
        """The stabilized recommendation; the size at the start counts as the first one."""
        now, current = look.seen.now, look.targets[Role.SPECULATIVE]
        if not self._past:
            self._past.append((now, current))
        self._past.append((now, recommended(current, look.signals[Role.SPECULATIVE].utilization)))
        while now - self._past[0][0] > DOWN_WINDOW_S:
            self._past.popleft()
        return stabilized(current, [count for _, count in self._past])


def hpa_like(scene: Scene) -> Setup:
    """HPA in place of our controller, our routing."""
    return two_pools(scene, control=HpaControl)


def recommended(current: int, utilization: float | None) -> int:
    """Replicas that bring utilization to the target; as many as now within the tolerance, and unknown."""
    if utilization is None or abs(utilization / TARGET - 1.0) <= TOLERANCE:
        return current
    return ceil(current * utilization / TARGET)


def stabilized(current: int, recommendations: Iterable[int]) -> int:
    """Up to the newest recommendation, within the limit on growth; down to the highest of all."""
    past = list(recommendations)
    newest, highest = past[-1], max(past)
    if newest > current:
        return min(newest, max(current + MOST_MORE, current * MOST_TIMES))
    return min(current, highest)
