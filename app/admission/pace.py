"""How fast waiting requests are served, and so when it is worth asking again; pure."""

from __future__ import annotations

import math
from collections import deque
from typing import Final

WINDOW_S: Final = 10.0
LONGEST_S: Final = 120
MOST: Final = 4096  # of the newest; 400 a second fill the window


class Pace:
    """The sequences that got room in the last ten seconds."""

    def __init__(self) -> None:
        self._at: deque[tuple[float, int]] = deque()
        self._served = 0

    def granted(self, now: float, sequences: int = 1) -> None:
        """Note a request that got its room."""
        self._at.append((now, sequences))
        self._served += sequences
        if len(self._at) > MOST:
            self._forget()

    def retry_after_s(self, ahead: int, least_s: float, now: float) -> int:
        """Whole seconds until `ahead` waiting sequences may be served, `least_s` at least, 120 at most.

        With none served of late the pace is taken for one in the window: it is no faster.
        """
        while self._at and now - self._at[0][0] > WINDOW_S:
            self._forget()
        # A full memory may reach back less far than the window.
        span = max(now - self._at[0][0], 1e-3) if len(self._at) == MOST else WINDOW_S
        expected = ahead * span / max(1, self._served)
        return min(LONGEST_S, max(1, math.ceil(max(least_s, expected))))

    def _forget(self) -> None:
        _, sequences = self._at.popleft()
        self._served -= sequences
