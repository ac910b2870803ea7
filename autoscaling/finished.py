"""Finished-request records, each counted once however often it is reported; pure.

A replica repeats its records until a report that carried them was answered, so one may come twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from autoscaling.types import FinishedRequest

REMEMBERED = 20_000  # ids of late; a repeat comes within seconds


@dataclass(slots=True)
class FinishedTotals:
    """Sums over every engine since this controller began, replicas that are gone included."""

    requests: int = 0
    prompt_tokens: int = 0
    generated_tokens: int = 0


class Finished:
    """Records in; the new ones and the sums out."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], None] = {}
        self.totals = FinishedTotals()

    def take(self, boot_id: str, records: Iterable[FinishedRequest]) -> tuple[FinishedRequest, ...]:
        """The records of one report that were not known yet."""
        new = []
        for record in records:
            key = (boot_id, record.request_id)
            if key in self._known:
                continue
            self._known[key] = None
            new.append(record)
            self.totals.requests += 1
            self.totals.prompt_tokens += record.prompt_tokens
            self.totals.generated_tokens += record.generated_tokens
        while len(self._known) > REMEMBERED:
            del self._known[next(iter(self._known))]
        return tuple(new)
