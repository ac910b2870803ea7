"""How many requests may be sent a second time; pure.

Only attempts that a replica had accepted count.  A share of the recent requests, so that retries never
multiply an overload; a small floor, so that a quiet service still has its one retry.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import Final

WINDOW_S: Final = 10
REQUESTS_PER_RETRY: Final = 10  # 10 %
FLOOR: Final = 3
_SLOTS_PER_S: Final = 10  # times are kept to 0.1 s: memory is bounded at any rate


@dataclass(slots=True)
class _Slot:
    index: int
    requests: int = 0
    retries: int = 0


class RetryBudget:
    """At most one retry per ten requests over the last 10 s, or three if that is more."""

    def __init__(self) -> None:
        self._slots: deque[_Slot] = deque()
        self._requests = 0
        self._retries = 0

    def request(self, now: float) -> None:
        """Count a request that came in."""
        self._slot(now).requests += 1
        self._requests += 1

    def allow(self, now: float) -> bool:
        """Tell whether one more retry may be made; a yes is recorded as made."""
        slot = self._slot(now)
        if self._retries >= max(FLOOR, self._requests // REQUESTS_PER_RETRY):
            return False
        slot.retries += 1
        self._retries += 1
        return True

    def _slot(self, now: float) -> _Slot:
        """Find the slot of `now`, after dropping what has left the window."""
        index = math.floor(now * _SLOTS_PER_S)
        if not self._slots or self._slots[-1].index < index:
            self._slots.append(_Slot(index))
        newest = self._slots[-1]  # also for a clock that went back
        while self._slots[0].index <= newest.index - WINDOW_S * _SLOTS_PER_S:
            gone = self._slots.popleft()
            self._requests -= gone.requests
            self._retries -= gone.retries
        return newest
