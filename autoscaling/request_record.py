"""A request line joined with the engines' own records of it; what `why` and the records show."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

from autoscaling.request_line import RequestLine
from autoscaling.types import FinishedRequest

MIXED = "mixed"  # the finish reason of sequences that ended differently


class Verdict(StrEnum):
    """Whether a request met its tier's objectives."""

    MET = "met"
    MISSED = "missed"
    UNKNOWN = "unknown"  # it was complete, and what the objectives ask for cannot be known


@dataclass(frozen=True, slots=True)
class Measured:
    """What the engine counted and timed, over all sequences of one request."""

    prompt_tokens: int  # each prompt once, however many answers it got
    generated_tokens: int
    finish_reason: str
    queued_s: float  # inside the engine; of the sequence that had its first token first
    prefill_s: float  # of the same sequence
    decode_s: float  # of the longest sequence
    tpot_s: float | None  # of the slowest sequence; None when none had a second token

    @property
    def first_token_s(self) -> float | None:
        """From the engine's acceptance to the first token; None when none came."""
        return self.queued_s + self.prefill_s if self.generated_tokens else None


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """One request that ended, and how it is judged."""

    line: RequestLine
    ingress: str
    measured: Measured | None = None  # None: no engine ran it, or its record never came
    objective_ttft_s: float | None = None  # what it was judged by
    objective_tpot_s: float | None = None
    verdict: Verdict | None = None  # None: it does not count
    pending: bool = False  # it ended, and its engine's record is still awaited; not judged yet

    @property
    def ttft_s(self) -> float | None:
        """Time to the first token, from arrival."""
        return ttft_s(self.line, self.measured)

    @property
    def tpot_s(self) -> float | None:
        """Time per output token after the first; None for an answer of one token too."""
        return None if self.measured is None or odd(self.measured.tpot_s) else self.measured.tpot_s


def measured(records: Sequence[FinishedRequest]) -> Measured:
    """Sum up at least one record: those of all sequences of one request."""
    first = min(records, key=lambda one: (one.generated_tokens == 0, one.queued_s + one.prefill_s))
    reasons = {one.finish_reason for one in records}
    return Measured(
        prompt_tokens=sum({one.request_id: one.prompt_tokens for one in records}.values()),
        generated_tokens=sum(one.generated_tokens for one in records),
        finish_reason=reasons.pop() if len(reasons) == 1 else MIXED,
        queued_s=first.queued_s,
        prefill_s=first.prefill_s,
        decode_s=max(one.decode_s for one in records),
        tpot_s=_slowest(
            [one.decode_s / (one.generated_tokens - 1) for one in records if one.generated_tokens > 1]
        ),
    )


def odd(value: float | None) -> bool:
    """Whether a time is none: negative or not finite; to be called unknown."""
    return value is not None and not 0 <= value < math.inf


def _slowest(each: Sequence[float]) -> float | None:
    """The largest; an odd one when there is one, since then nobody knows."""
    return next((value for value in each if odd(value)), max(each, default=None))


def ttft_s(line: RequestLine, found: Measured | None) -> float | None:
    """Time to the first token, from arrival.

    The caller of a stream sees it as the first byte.  Without a stream it is made up of the wait in the
    ingress and the engine's own time to its first token.  None when it is unknown or odd.
    """
    first = None if found is None else found.first_token_s
    taken = line.first_byte_s if line.stream else None if first is None else line.waited_s + first
    return None if odd(taken) else taken


def as_fields(record: RequestRecord) -> dict[str, Any]:
    """The record as one flat object: the line, then what was measured, then the verdict."""
    found = record.measured
    return _shallow(record.line) | {
        "ingress": record.ingress,
        "prompt_tokens": None if found is None else found.prompt_tokens,
        "generated_tokens": None if found is None else found.generated_tokens,
        "finish_reason": None if found is None else found.finish_reason,
        "queued_s": None if found is None else found.queued_s,
        "prefill_s": None if found is None else found.prefill_s,
        "decode_s": None if found is None else found.decode_s,
        "ttft_s": record.ttft_s,
        "tpot_s": record.tpot_s,
        "objective": {"ttft_s": record.objective_ttft_s, "tpot_s": record.objective_tpot_s},
        "verdict": record.verdict,
        "pending": record.pending,
    }


def _shallow(line: RequestLine) -> dict[str, Any]:
    found = {one.name: getattr(line, one.name) for one in fields(line)}
    return {name: dict(value) if isinstance(value, Mapping) else value for name, value in found.items()}
