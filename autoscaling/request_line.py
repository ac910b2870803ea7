"""One request from its arrival to its end, as the ingress that served it saw it; the unit of records.

Never text: of the prompt only features.  The ingress sends lines to the controller, which joins them
with the engine's own finished-request record by `engine_id`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from autoscaling.roles import Role, Tier


class Outcome(StrEnum):
    """How a request ended."""

    OK = "ok"  # a complete answer
    CALLER = "caller_error"  # 4xx of the caller's making
    SHED = "shed"  # 429: its queue was full
    NO_CAPACITY = "no_capacity"  # 503: no room before the deadline, or no replica
    FAILED = "failed"  # 5xx, or an answer that broke off
    CANCELLED = "cancelled"  # the caller left


@dataclass(frozen=True, slots=True)
class RequestLine:
    """What the ingress knows; `None` means unknown or that it never came to that."""

    seq: int  # per ingress, growing by one
    id: str  # the caller's, or made up
    engine_id: str  # what the replica was told: `id` with a suffix
    wall: float  # arrival, Unix seconds
    tier: Tier  # used
    tier_requested: Tier | None
    workload: str  # class
    workload_reason: str
    features: Mapping[str, Any]
    tokens_per_step: float | None  # predicted with drafts
    stream: bool
    sequences: int
    outcome: Outcome
    status: int | None  # HTTP
    code: str | None  # of the error catalogue
    pool: Role | None
    replica: str | None
    reason: str | None  # RouteReason
    waited_s: float  # in the ingress's queue
    first_byte_s: float | None  # from arrival
    e2e_s: float  # from arrival to the last byte or the error
    attempts: int = 0  # replicas that were asked
    wider: bool = False  # a 400 of the first replica was answered by a wider one
    acceptance: Mapping[str, float] | None = None  # the engine's own numbers on this request's drafts
    decision: Mapping[str, Any] = field(default_factory=dict)  # what the last route was made from
