"""The parts of a policy that say how much and how fast: budget, objectives, pools, behaviour.

`policy` puts them together with times, exceptions and guards; import them from there.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from autoscaling.one_line import PATTERN, one_line
from autoscaling.types import Role

LONGEST_S = 86_400  # a day: a longer window is a unit mistake, such as milliseconds
MOST_REPLICAS = 10_000
MOST_ACCELERATORS = 100_000

Seconds = Annotated[float, Field(ge=0, le=LONGEST_S)]
PositiveSeconds = Annotated[float, Field(gt=0, le=LONGEST_S)]
# Objectives above ten minutes are milliseconds by mistake.
Objective = Annotated[float, Field(gt=0, le=600)]
Replicas = Annotated[int, Field(ge=0, le=MOST_REPLICAS)]
Share = Annotated[float, Field(ge=0, le=1)]
Name = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
Reason = Annotated[
    str,
    Field(min_length=1, max_length=500, json_schema_extra={"pattern": PATTERN}),
    AfterValidator(one_line),
]


class Part(BaseModel):
    """Base of every part: frozen, strict, camelCase; an unknown key is an error.

    Validate from JSON text: strict JSON takes a list for a tuple and text for an enum or a time.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        alias_generator=to_camel,
        allow_inf_nan=False,
        use_enum_values=False,
    )


class Metadata(Part):
    """Who and what this policy is."""

    name: Name = Field(description="Name of the policy, as in Kubernetes: lower case, digits, hyphens.")
    annotations: dict[str, str] = Field(
        default_factory=dict, description="Free pairs of text, such as a change number; not acted on."
    )


class Budget(Part):
    """Accelerators that both pools may use together."""

    min: int | None = Field(
        None,
        ge=1,
        le=MOST_ACCELERATORS,
        description="Accelerators that are kept assigned even when nobody needs them; `max` when absent.",
    )
    max: int = Field(
        ge=1, le=MOST_ACCELERATORS, description="Accelerators that both pools together never exceed."
    )


class Bootstrap(Part):
    """Sizes of a new application, until it has run once."""

    speculative: Replicas = Field(description="Replicas of the speculative pool.")
    plain: Replicas = Field(description="Replicas of the plain pool.")


class TierObjective(Part):
    """What a tier is promised; the pool that serves it first is held to it."""

    ttft_seconds: Objective | None = Field(
        None, description="95th percentile of the time to the first token, queueing included."
    )
    tpot_seconds: Objective | None = Field(
        None, description="95th percentile of the time per output token after the first."
    )


class Objectives(Part):
    """Objectives of the tiers; a donor of capacity must stay inside those of its tiers."""

    interactive: TierObjective = Field(
        default_factory=TierObjective, description="Served by the speculative pool first."
    )
    standard: TierObjective = Field(
        default_factory=TierObjective, description="Served by the plain pool first."
    )
    batch: TierObjective = Field(default_factory=TierObjective, description="Served by the plain pool first.")


class Limits(Part):
    """Limits of one replica, at most the replica's own; a change acts at once, without a restart."""

    soft_inflight: int | None = Field(
        None,
        ge=1,
        le=100_000,
        description="Sequences in flight up to which new work is welcome; lowers a profile's limit too.",
    )
    hard_inflight: int | None = Field(
        None, ge=1, le=100_000, description="Sequences in flight above which an ingress sends nothing more."
    )


class Pool(Part):
    """One pool's bounds."""

    role: Role | None = Field(None, description="Must be the pool's own name when given.")
    min_replicas: Replicas = Field(
        1, description="Never fewer; 0 needs a pool that was set up to be empty (`may_be_empty`)."
    )
    max_replicas: Annotated[int, Field(ge=1, le=MOST_REPLICAS)] = Field(description="Never more.")
    accelerators_per_replica: int = Field(
        1, ge=1, le=1024, description="Accelerators that one replica takes; an engine slot on a CPU is one."
    )
    limits: Limits = Field(default_factory=Limits, description="Limits of one replica.")
    drain_timeout_seconds: PositiveSeconds = Field(
        300,
        description="How long a stopping replica may be expected to finish its answers; "
        "a move that drains longer is shown as late.",
    )


class Pools(Part):
    """The two pools."""

    speculative: Pool = Field(description="Draft-and-verify replicas: low latency at low concurrency.")
    plain: Pool = Field(description="Continuous batching without drafts: throughput.")


class Utilization(Part):
    """The dead band of demand / (limit x replicas)."""

    above: float = Field(0.85, gt=0, le=4, description="A pool above it is short.")
    below: float = Field(
        0.60, gt=0, le=4, description="A donor must stay at or below it with the replicas that it keeps."
    )


class ScalingPolicyType(StrEnum):
    """Unit of a scaling policy's value."""

    REPLICAS = "Replicas"
    PERCENT = "Percent"


class ScalingPolicy(Part):
    """At most so much change of a pool in so long; HPA's meaning."""

    type: ScalingPolicyType = Field(description="Unit of `value`.")
    value: int = Field(
        ge=1,
        le=MOST_REPLICAS,
        description="Replicas, or percent of the pool's replicas; never less than one whole exchange: one "
        "replica that comes, and as many that go as free its accelerators.",
    )
    period_seconds: Annotated[int, Field(ge=1, le=1800)] = Field(
        description="The period that `value` is for."
    )


class Direction(Part):
    """HPA's `behavior` in one direction; a move obeys the donor's scaleDown and the receiver's scaleUp."""

    stabilization_window_seconds: Annotated[float, Field(ge=0, le=3600)] = Field(
        description="How long the cause must persist."
    )
    select_policy: Literal["Max", "Min", "Disabled"] = Field(
        "Max", description="Which of several policies counts; Disabled: never in this direction."
    )
    policies: tuple[ScalingPolicy, ...] = Field((), description="Limits of the change; none means no limit.")


class ScaleUp(Direction):
    """HPA's `behavior.scaleUp`."""

    stabilization_window_seconds: Annotated[float, Field(ge=0, le=3600)] = Field(
        30, description="How long a pool must be short before it receives."
    )


class ScaleDown(Direction):
    """HPA's `behavior.scaleDown`."""

    stabilization_window_seconds: Annotated[float, Field(ge=0, le=3600)] = Field(
        300, description="How long a pool must have capacity to spare before it gives."
    )


class Behavior(Part):
    """How fast capacity moves."""

    utilization: Utilization = Field(default_factory=Utilization, description="The dead band.")
    cooldown_seconds: Seconds = Field(60, description="Pause after the end of a move before the next.")
    scale_up: ScaleUp = Field(default_factory=ScaleUp, description="What a pool that receives must satisfy.")
    scale_down: ScaleDown = Field(
        default_factory=ScaleDown, description="What a pool that gives must satisfy."
    )
