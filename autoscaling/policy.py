"""The policy file's models: `CapacityPolicy`, v1alpha1; the only source of its fields, units and defaults.

Reading a file with all its problems located is `policy_file`; what no single field can say is
`policy_checks`; what holds at one moment is `policy_in_force`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from autoscaling.decisions import Mode
from autoscaling.policy_parts import (
    LONGEST_S,
    MOST_ACCELERATORS,
    MOST_REPLICAS,
    Behavior,
    Bootstrap,
    Budget,
    Direction,
    Limits,
    Metadata,
    Name,
    Objective,
    Objectives,
    Part,
    Pool,
    Pools,
    PositiveSeconds,
    Reason,
    Replicas,
    ScaleDown,
    ScaleUp,
    ScalingPolicy,
    ScalingPolicyType,
    Seconds,
    Share,
    TierObjective,
    Utilization,
)
from autoscaling.policy_routing import Admission, Backfill, Workload
from autoscaling.policy_times import (
    ClockTime,
    Day,
    Moment,
    PolicyOverride,
    PoolBounds,
    Schedule,
    ScheduledPools,
)
from autoscaling.types import Role

__all__ = [
    "API_VERSION",
    "KIND",
    "LONGEST_S",
    "MOST_ACCELERATORS",
    "MOST_ENTRIES",
    "MOST_REPLICAS",
    "Admission",
    "Backfill",
    "Behavior",
    "Bootstrap",
    "Budget",
    "CapacityPolicy",
    "ClockTime",
    "Day",
    "Direction",
    "Guardrails",
    "Limits",
    "Metadata",
    "Mode",
    "Moment",
    "Name",
    "Objective",
    "Objectives",
    "OnMetricsLoss",
    "Overload",
    "Part",
    "PolicyOverride",
    "Pool",
    "PoolBounds",
    "Pools",
    "PositiveSeconds",
    "Reason",
    "Replicas",
    "Role",
    "ScaleDown",
    "ScaleUp",
    "ScalingPolicy",
    "ScalingPolicyType",
    "Schedule",
    "ScheduledPools",
    "Seconds",
    "Share",
    "Spec",
    "TierObjective",
    "Utilization",
    "Workload",
    "json_schema",
]

API_VERSION = "twinpool.dev/v1alpha1"
KIND = "CapacityPolicy"
# A week has few windows; a longer list is a mistake, and pairs of them are compared.
MOST_ENTRIES = 50


class OnMetricsLoss(Part):
    """What happens when replicas fall silent."""

    after_seconds: Annotated[float, Field(ge=3, le=10)] = Field(
        10, description="A report older than this is missing; after 10 s of silence a replica is gone."
    )
    min_fresh_share: Share = Field(
        0.5, description="Fewer fresh reports than this share of a pool's replicas: hold."
    )
    action: Literal["hold"] = Field("hold", description="Hold the targets; nothing shrinks on missing data.")


class Guardrails(Part):
    """What no decision and no edit may do at once."""

    max_step_replicas: Annotated[int, Field(ge=1, le=1000)] = Field(
        1, description="Replicas that one move brings at most."
    )
    move_timeout_seconds: PositiveSeconds = Field(
        900, description="A move that is not complete by then is given up; the targets stay."
    )
    max_cut_share: Annotated[float, Field(gt=0, le=1)] = Field(
        0.5, description="An edit that would take away more than this share of the replicas is refused."
    )
    allow_large_change: int | None = Field(
        None, ge=0, description="Allows a larger cut once: the number of the revision that it replaces."
    )


class Overload(Part):
    """What callers are told when there is no room."""

    retry_after_seconds: Annotated[int, Field(ge=1, le=120)] = Field(
        2, description="`Retry-After` of an answer 503 for want of room; whole seconds."
    )


class Spec(Part):
    """How capacity is decided."""

    mode: Mode = Field(
        Mode.ENFORCE,
        description="`enforce`; `shadow`: decided and recorded while the last enforced revision acts; "
        "`hold`: targets stay as they are.",
    )
    budget: Budget = Field(description="Accelerators of both pools together.")
    bootstrap: Bootstrap | None = Field(
        None, description="Sizes of a new application; an even split of the budget when absent."
    )
    surge_slots: int = Field(
        0,
        ge=0,
        le=MOST_ACCELERATORS,
        description="Accelerators that a starting replica may use above the budget while a donor drains.",
    )
    objectives: Objectives = Field(default_factory=Objectives, description="What each tier is promised.")
    pools: Pools = Field(description="Bounds of the two pools.")
    workload: Workload = Field(
        default_factory=Workload, description="What of a request counts beside its tier."
    )
    backfill: Backfill = Field(
        default_factory=Backfill,
        description="What others than interactive requests may use of the speculative pool.",
    )
    admission: Admission = Field(
        default_factory=Admission, description="Who waits for room, how long, and who comes next."
    )
    behavior: Behavior = Field(default_factory=Behavior, description="How fast capacity moves.")
    schedules: tuple[Schedule, ...] = Field(
        (), max_length=MOST_ENTRIES, description="Other bounds at certain times."
    )
    overrides: tuple[PolicyOverride, ...] = Field(
        (),
        max_length=MOST_ENTRIES,
        description="Forced values with an end; stronger than schedules, and a later one wins.",
    )
    on_metrics_loss: OnMetricsLoss = Field(
        default_factory=OnMetricsLoss, description="What happens when replicas fall silent."
    )
    guardrails: Guardrails = Field(default_factory=Guardrails, description="What may not happen at once.")
    overload: Overload = Field(default_factory=Overload, description="What callers are told without room.")


class CapacityPolicy(Part):
    """The policy file: how capacity moves between the two pools."""

    api_version: Literal["twinpool.dev/v1alpha1"] = Field(description="Version of this format.")
    kind: Literal["CapacityPolicy"] = Field(description="Kind of this document.")
    metadata: Metadata = Field(description="Who and what this policy is.")
    spec: Spec = Field(description="How capacity is decided.")


def json_schema() -> dict[str, Any]:
    """JSON Schema of the policy file, by the names that the file uses."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema"} | CapacityPolicy.model_json_schema(
        by_alias=True
    )
