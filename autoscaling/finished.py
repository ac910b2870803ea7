"""Finished-request records, each counted once however often it is reported; pure.

A replica repeats its records until a report that carried them was answered.  The sequences of one prompt
have one id, so a repeat is told from another sequence by its numbers, and two with equal numbers by how
often they stand in one report: they ended in the same engine step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from autoscaling.types import FinishedRequest

REMEMBERED = 20_000  # records of late; a repeat comes within seconds


@dataclass(slots=True)
class FinishedTotals:
    """Sums over every engine since this controller began, replicas that are gone included."""

    requests: int = 0  # prompts; several sequences of one count as one
    prompt_tokens: int = 0
    generated_tokens: int = 0


class Finished:
    """Records in; the new ones and the sums out."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, FinishedRequest], int] = {}
        self._prompts: dict[tuple[str, str], None] = {}
        self.totals = FinishedTotals()

    def take(self, boot_id: str, records: Iterable[FinishedRequest]) -> tuple[FinishedRequest, ...]:
        """The records of one report that were not known yet."""
        new: list[FinishedRequest] = []
        for record, count in Counter(records).items():
            more = count - self._known.get((boot_id, record), 0)
            if more > 0:
                self._known[boot_id, record] = count
                new.extend([record] * more)
        for record in new:
            self._count(boot_id, record)
        while len(self._known) > REMEMBERED:
            del self._known[next(iter(self._known))]
        while len(self._prompts) > REMEMBERED:
            del self._prompts[next(iter(self._prompts))]
        return tuple(new)

    def _count(self, boot_id: str, record: FinishedRequest) -> None:
        totals = self.totals
        totals.generated_tokens += record.generated_tokens
        if (boot_id, record.request_id) not in self._prompts:
            self._prompts[boot_id, record.request_id] = None
            totals.requests += 1
            totals.prompt_tokens += record.prompt_tokens
