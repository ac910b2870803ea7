"""The parts of a policy that ingresses obey: what the workload counts for, backfill, and how tiers wait."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from autoscaling.policy_parts import Part, PositiveSeconds, Share

LONGEST_WAIT_S = 3600
MOST_WAITING = 1_000_000

Deadline = Annotated[float, Field(ge=0, le=LONGEST_WAIT_S)]
Waiting = Annotated[int, Field(ge=0, le=MOST_WAITING)]

_DEADLINE = "How long a request waits for room, then 503; 0: it does not wait."
_WAITING = "Sequences that wait at most, all ingresses together, above it 429; 0: none waits."


class Workload(Part):
    """What of a request counts beside its tier."""

    classify: bool = Field(
        True,
        description="Whether the kind of work, such as code or chat, says where drafts help; "
        "else the tier alone counts.",
    )


class Backfill(Part):
    """What others than interactive requests may use of the speculative pool."""

    enabled: bool = Field(
        True, description="Whether batch requests may use what is free there above the reserve."
    )
    reserve: Annotated[int, Field(ge=0, le=100_000)] = Field(
        2, description="Sequences per speculative replica that only interactive requests may take."
    )
    max_residence_seconds: PositiveSeconds = Field(
        15, description="A batch request is sent there only when it is predicted to stay no longer."
    )


class TierWaiting(Part):
    """How a tier's requests wait when there is no room."""

    deadline_seconds: Deadline = Field(description=_DEADLINE)
    max_waiting: Waiting = Field(description=_WAITING)


class InteractiveWaiting(TierWaiting):
    """How interactive requests wait."""

    deadline_seconds: Deadline = Field(5, description=_DEADLINE)
    max_waiting: Waiting = Field(64, description=_WAITING)


class StandardWaiting(TierWaiting):
    """How standard requests wait."""

    deadline_seconds: Deadline = Field(30, description=_DEADLINE)
    max_waiting: Waiting = Field(256, description=_WAITING)


class BatchWaiting(TierWaiting):
    """How batch requests wait."""

    deadline_seconds: Deadline = Field(300, description=_DEADLINE)
    max_waiting: Waiting = Field(1024, description=_WAITING)


class Admission(Part):
    """Who waits for room, how long, and who comes next."""

    interactive: InteractiveWaiting = Field(
        default_factory=InteractiveWaiting, description="How interactive requests wait."
    )
    standard: StandardWaiting = Field(
        default_factory=StandardWaiting, description="How standard requests wait."
    )
    batch: BatchWaiting = Field(default_factory=BatchWaiting, description="How batch requests wait.")
    batch_share: Share = Field(
        0.1,
        description="Of the room that comes free, what waiting batch requests get at least, "
        "so that batch work ends under any load.",
    )
