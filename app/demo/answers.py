"""What became of one request of the demo, as its caller saw it; pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from autoscaling.request_line import Outcome
from autoscaling.types import Role, Tier

REFUSALS = (Outcome.SHED, Outcome.NO_CAPACITY)


class Phase(StrEnum):
    """A part of the demo, in order; the last one sends nothing new."""

    QUIET = "quiet"
    MIXED = "mixed"
    BUSY = "busy"
    FALL_OFF = "fall-off"
    FINISHING = "finishing"


@dataclass(frozen=True, slots=True)
class Drafts:
    """How the drafts of one answer fared, by its usage chunk."""

    steps: int  # that carried a draft
    drafted: int  # tokens
    accepted: int  # tokens


@dataclass(frozen=True, slots=True)
class Answer:
    """One attempt; `None` is unknown, or never came to that.  Seconds; `began_s` since the demo began."""

    id: str
    tier: Tier
    sample: str
    phase: Phase
    outcome: Outcome
    began_s: float
    e2e_s: float
    status: int | None = None  # HTTP
    code: str | None = None  # of the error, or the kind of failure
    pool: Role | None = None
    reason: str | None = None  # route reason
    ttft_s: float | None = None  # to the first byte of the stream
    stream_s: float | None = None  # from its first byte to its last; None when it came in one piece
    tokens: int | None = None  # by the usage chunk, never by counting chunks
    drafts: Drafts | None = None
    retry_after_s: int | None = None
    again: bool = False  # refused, and sent again under another id

    @property
    def tpot_s(self) -> float | None:
        """Seconds per token after the first; None without usage or pace, and for one token."""
        if self.tokens is None or self.tokens < 2 or self.stream_s is None:
            return None
        return self.stream_s / (self.tokens - 1)

    @property
    def answered(self) -> bool:
        """Whether the answer came whole."""
        return self.outcome is Outcome.OK

    @property
    def refused(self) -> bool:
        """Whether it was turned away before any byte: 429 or 503."""
        return self.outcome in REFUSALS

    @property
    def cut(self) -> bool:
        """Whether the demo itself ended it."""
        return self.outcome is Outcome.CANCELLED

    @property
    def failed(self) -> bool:
        """Whether it ended in any other way."""
        return not (self.answered or self.refused or self.cut)


@dataclass(frozen=True, slots=True)
class Objective:
    """What the policy promises a tier, as 95th percentiles; None is not promised."""

    ttft_s: float | None = None
    tpot_s: float | None = None

    @property
    def promised(self) -> bool:
        """Whether there is anything to be judged by."""
        return self.ttft_s is not None or self.tpot_s is not None


def in_time(answer: Answer, objective: Objective) -> bool | None:
    """Whether a request met its objective; None when that cannot be told, and for one the demo cut.

    A refused or failed one did not; an answer of one token is judged by its first token alone.
    """
    if answer.cut:
        return None
    if not answer.answered:
        return False
    met: list[bool | None] = []
    if objective.ttft_s is not None:
        met.append(None if answer.ttft_s is None else answer.ttft_s <= objective.ttft_s)
    if objective.tpot_s is not None:
        if answer.tokens is None:
            met.append(None)
        elif answer.tokens > 1:
            met.append(None if answer.tpot_s is None else answer.tpot_s <= objective.tpot_s)
    if False in met:
        return False
    return None if None in met else True
