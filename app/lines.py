"""Requests that have ended at this ingress, kept until the controller has them; pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from app.ask_of import Asked
from app.job import Course, Job
from app.routing.route import record
from app.workload.classify import WorkloadClass
from autoscaling.request_line import RequestLine
from autoscaling.types import Tier

KEPT: Final = 5000  # about 15 MB as JSON; more ended while no controller answered
AT_ONCE: Final = 500  # in one message
NOT_READ: Final = "not_read"  # why a request has no class: it ended before


class Lines:
    """A bounded queue: the oldest are lost, and counted, when nobody takes them.

    `ended` is told of every line.
    """

    def __init__(self, ended: Callable[[RequestLine], None] = lambda _line: None) -> None:
        self._ended = ended
        self._waiting: deque[RequestLine] = deque()
        self._seq = 0
        self.dropped = 0

    def add(self, line: RequestLine) -> None:
        """Keep a line for the controller."""
        self._ended(line)
        self._waiting.append(line)
        if len(self._waiting) > KEPT:
            self._waiting.popleft()
            self.dropped += 1

    def next_seq(self) -> int:
        """The number of the next line."""
        self._seq += 1
        return self._seq

    def oldest(self) -> tuple[RequestLine, ...]:
        """What the next message carries."""
        return tuple(self._waiting)[:AT_ONCE]

    def taken(self, lines: tuple[RequestLine, ...]) -> None:
        """Forget what has arrived."""
        newest = lines[-1].seq if lines else 0
        while self._waiting and self._waiting[0].seq <= newest:
            self._waiting.popleft()


def line_of(seq: int, job: Job, asked: Asked, course: Course, *, now: float, wall: float) -> RequestLine:
    """One request that has ended; `now` is the clock of `course`, `wall` Unix seconds."""
    route = course.route
    e2e_s = now - course.began
    decision = {} if course.decision is None else record(course.decision)
    if course.waited_for is not None:
        decision["waited_for"] = {role.value: verdict.value for role, verdict in course.waited_for.items()}
    return RequestLine(
        seq=seq,
        id=job.request_id,
        engine_id=job.engine_id,
        wall=wall - e2e_s,
        tier=job.tier.tier,
        tier_requested=job.tier.requested,
        workload=asked.workload.kind.value,
        workload_reason=asked.workload.reason,
        features=asked.features.plain(),
        tokens_per_step=asked.ask.tokens_per_step,
        stream=job.stream,
        sequences=asked.ask.sequences,
        outcome=course.outcome,
        status=course.status,
        code=course.code,
        pool=None if route is None else route.pool,
        replica=None if route is None else route.replica.replica_id,
        reason=None if route is None else route.reason.value,
        waited_s=round(course.waited_s, 6),
        first_byte_s=None if course.first_byte_s is None else round(course.first_byte_s, 6),
        e2e_s=round(e2e_s, 6),
        attempts=course.attempts,
        wider=course.wider,
        acceptance=course.acceptance,
        decision=decision,
    )


def early_line(
    seq: int, request_id: str, tier: Tier, course: Course, *, now: float, wall: float
) -> RequestLine:
    """One request that was refused before anything was known of it but its headers."""
    e2e_s = now - course.began
    return RequestLine(
        seq=seq,
        id=request_id,
        engine_id=request_id,
        wall=wall - e2e_s,
        tier=tier,
        tier_requested=None,
        workload=WorkloadClass.OTHER.value,
        workload_reason=NOT_READ,
        features={},
        tokens_per_step=None,
        stream=False,
        sequences=1,
        outcome=course.outcome,
        status=course.status,
        code=course.code,
        pool=None,
        replica=None,
        reason=None,
        waited_s=0.0,
        first_byte_s=None,
        e2e_s=round(e2e_s, 6),
    )
