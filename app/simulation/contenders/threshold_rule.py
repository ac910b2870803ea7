"""The threshold rule: a fixed number of concurrent sequences up to which a replica speculates.

Papers and guides on speculation under load come down to it: drafts pay while few sequences run, so speculate
while a replica has at most eight, else decode plainly.  Neither cost nor acceptance counts.  What it is here:

- a speculative replica takes eight sequences, and no profile is believed: who finds no room goes to plain,
  unless that was too slow in the last minute;
- every ten seconds there are as many speculative replicas as hold the open interactive sequences, eight
  each; without a margin, a window or a cool-down.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import ClassVar

from app.simulation.contenders.rule_control import Look, RuleControl
from app.simulation.contenders.scene import UNMEASURED_LIMIT, Scene, two_pools
from app.simulation.setup import Setup
from autoscaling.types import Role

THRESHOLD = UNMEASURED_LIMIT  # sequences per speculative replica


class ThresholdControl(RuleControl):
    """Sizes by a fixed share of concurrency."""

    period_s: ClassVar[float] = 10.0

    def wanted(self, look: Look) -> int:
        """Replicas that hold all interactive sequences; as many as now while nobody tells their number."""
        open_now = look.seen.pools[Role.SPECULATIVE].wanted
        return look.targets[Role.SPECULATIVE] if open_now is None else replicas_for(open_now, THRESHOLD)


def threshold(scene: Scene) -> Setup:
    """The threshold rule for limits and for sizes."""
    believed = replace(scene.believed, profile=None)
    return two_pools(scene, believed=believed, control=ThresholdControl)


def replicas_for(sequences: int, threshold: int) -> int:
    """As many replicas as take so many sequences at the threshold."""
    return ceil(sequences / threshold)
