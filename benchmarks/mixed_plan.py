"""What `benchmarks.mixed` compares, in which order, and under which policy; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

import yaml

from app.demo.answers import Objective
from autoscaling.types import Role, Tier

ROLES: Final = tuple(role.value for role in Role)
OBJECTIVES: Final[Mapping[Tier, Objective]] = {
    Tier.INTERACTIVE: Objective(2.0, 0.06),
    Tier.STANDARD: Objective(4.0, 0.12),
    Tier.BATCH: Objective(),
}
LEVELS: Final = (1, 4, 8, 16)  # streams at each pool while steps are measured
MEASURED: Final = max(LEVELS)  # no pool is loaded beyond it: a longer batch would be a guess
UNMEASURED_LIMIT: Final = 8  # the usual one of a speculative replica
LONGEST_GENERATION_S: Final = 120.0  # far above an answer here, so that a stop need not wait for long


class Condition(StrEnum):
    """One way to route; all else is the same."""

    TIER_ONLY = "tier_only"
    CLASSES = "classes"
    CLASSES_BACKFILL = "classes_backfill"
    NO_RESERVE = "no_reserve"


@dataclass(frozen=True, slots=True)
class Switches:
    """What of the policy differs between conditions."""

    classify: bool
    backfill: bool
    reserve: int = 2


SWITCHES: Final[Mapping[Condition, Switches]] = {
    Condition.TIER_ONLY: Switches(classify=False, backfill=False),
    Condition.CLASSES: Switches(classify=True, backfill=False),
    Condition.CLASSES_BACKFILL: Switches(classify=True, backfill=True),
    Condition.NO_RESERVE: Switches(classify=True, backfill=True, reserve=0),
}
USUAL: Final = (Condition.TIER_ONLY, Condition.CLASSES, Condition.CLASSES_BACKFILL)


@dataclass(frozen=True, slots=True)
class Window:
    """Which answers of one condition count; seconds since it began.

    Closed loops count what ended after the warm-up and before the end.  The open loop counts what arrived
    after the warm-up and before the tail, so that the last of these still meets the full load.
    """

    total_s: float
    warm_up_s: float
    tail_s: float

    @property
    def closed_s(self) -> float:
        """Seconds in which answers of closed loops count."""
        return self.total_s - self.warm_up_s

    @property
    def open_s(self) -> float:
        """Seconds in which arrivals of the open loop count."""
        return self.total_s - self.warm_up_s - self.tail_s

    def ends_in(self, end_s: float) -> bool:
        """Whether an answer of a closed loop counts, by its end."""
        return self.warm_up_s <= end_s < self.total_s

    def arrives_in(self, began_s: float) -> bool:
        """Whether a request of the open loop counts, by its arrival."""
        return self.warm_up_s <= began_s < self.total_s - self.tail_s


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured; seconds."""

    rounds: int
    window: Window
    level_s: float  # of each number of streams at calibration
    answers_per_class: int | None  # asked of every kind of sample at calibration; None: all
    conditions: tuple[Condition, ...] = USUAL


FULL: Final = Plan(4, Window(40.0, 5.0, 5.0), level_s=9.0, answers_per_class=None)
QUICK: Final = Plan(2, Window(15.0, 5.0, 3.0), level_s=6.0, answers_per_class=3)


def order(conditions: Sequence[Condition], index: int) -> tuple[Condition, ...]:
    """The order of one round: turned by one every second round, and backwards in between."""
    turn = index // 2 % len(conditions)
    turned = (*conditions[turn:], *conditions[:turn])
    return tuple(reversed(turned)) if index % 2 else turned


def policy_text(name: str, switches: Switches, speculative_limit: int = MEASURED) -> str:
    """The policy file: one replica of each pool, no moves, the objectives, and what differs.

    `speculative_limit` is the soft limit of the speculative pool.
    """
    objectives = {
        tier.value: {"ttftSeconds": one.ttft_s, "tpotSeconds": one.tpot_s}
        for tier, one in OBJECTIVES.items()
        if one.promised
    }
    limits = {Role.SPECULATIVE: speculative_limit, Role.PLAIN: MEASURED}
    pools = {
        role.value: {"maxReplicas": 1, "limits": {"softInflight": limit}} for role, limit in limits.items()
    }
    return yaml.safe_dump(
        {
            "apiVersion": "twinpool.dev/v1alpha1",
            "kind": "CapacityPolicy",
            "metadata": {"name": name},
            "spec": {
                "budget": {"max": 2},
                "bootstrap": dict.fromkeys(ROLES, 1),
                "objectives": objectives,
                "pools": pools,
                "workload": {"classify": switches.classify},
                "backfill": {"enabled": switches.backfill, "reserve": switches.reserve},
                "behavior": {way: {"selectPolicy": "Disabled"} for way in ("scaleUp", "scaleDown")},
            },
        },
        sort_keys=False,
    )


def settings_text(folder: Path) -> str:
    """The settings file of the service, everything of it inside a folder.

    The speculative pool's own limit lets calibration fill it; afterwards the profile and the policy count.
    """
    pool = {"longest_generation_s": LONGEST_GENERATION_S}
    return yaml.safe_dump(
        {
            "policy": str(folder / "policy.yaml"),
            "profile": str(folder / "profile.json"),
            "record_dir": str(folder / "records"),
            "state_dir": str(folder / "state"),
            "speculative": pool | {"soft_limit": MEASURED},
            "plain": pool,
        },
        sort_keys=False,
    )
