"""One client request on its way: what is sent, what routing knows of it, and what became of it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from app.errors import ApiError, Code
from app.routing.ask import Ask
from app.routing.route import Decision, Route
from app.routing.verdicts import Verdict
from app.tiers import TierChoice
from app.upstream import Outgoing
from autoscaling.request_line import Outcome
from autoscaling.types import Role

REFUSED: Final[Mapping[Code, Outcome]] = {
    Code.RATE_LIMIT_EXCEEDED: Outcome.SHED,
    Code.NO_CAPACITY: Outcome.NO_CAPACITY,
    Code.NOT_READY: Outcome.NO_CAPACITY,
}


@dataclass(frozen=True, slots=True)
class Job:
    """One client request, ready to be relayed."""

    request_id: str
    engine_id: str  # the request id with a suffix of our own, as the replica is told
    outgoing: Outgoing
    tier: TierChoice
    ask: Ask
    stream: bool = False


@dataclass(slots=True)
class Course:
    """What becomes of a request, written down as it happens; it was cancelled unless something is said."""

    began: float = field(default_factory=time.monotonic)
    outcome: Outcome = Outcome.CANCELLED
    status: int | None = None
    code: str | None = None
    route: Route | None = None  # of the last attempt
    decision: Decision | None = None  # of the last attempt, or of the refusal
    waited_for: Mapping[Role, Verdict] | None = None  # what stood against each pool when it began to wait
    waited_s: float = 0.0
    first_byte_s: float | None = None
    attempts: int = 0
    wider: bool = False
    acceptance: dict[str, Any] | None = None

    def answered(self, status: int) -> None:
        """A replica's own answer is complete."""
        self.status = status
        self.outcome = Outcome.OK if status < 400 else Outcome.CALLER if status < 500 else Outcome.FAILED

    def failed(self, error: ApiError) -> None:
        """We ended the request, before the first byte or by an event after it."""
        self.status, self.code = error.status, error.code.value
        made_by_caller = Outcome.CALLER if error.status < 500 else Outcome.FAILED
        self.outcome = REFUSED.get(error.code, made_by_caller)
