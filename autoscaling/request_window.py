"""Sums and 95th percentiles over the last minutes, in bounded memory at any rate; pure."""

from __future__ import annotations

from collections import deque
from statistics import quantiles

WINDOW_S = 300.0
BUCKET_S = 5.0  # what is summed leaves the window in steps of this
MOST = 1000  # values of which a percentile is taken; older ones go first
FEWEST = 20  # a 95th percentile of fewer says nothing


class WindowSums:
    """`width` running sums over the last `span_s`; `now` never goes back."""

    def __init__(self, width: int, span_s: float = WINDOW_S) -> None:
        self._width = width
        self._buckets = round(span_s / BUCKET_S)
        self._sums: deque[tuple[int, list[int]]] = deque()  # number of the bucket, its sums

    def add(self, now: float, *amounts: int) -> None:
        """Add to each of the sums."""
        number = int(now // BUCKET_S)
        self._expire(number)
        if not self._sums or self._sums[-1][0] != number:
            self._sums.append((number, [0] * self._width))
        newest = self._sums[-1][1]
        for place, amount in enumerate(amounts):
            newest[place] += amount

    def sums(self, now: float) -> tuple[int, ...]:
        """The sums over the window that ends now."""
        self._expire(int(now // BUCKET_S))
        return tuple(sum(found[place] for _, found in self._sums) for place in range(self._width))

    def _expire(self, number: int) -> None:
        while self._sums and number - self._sums[0][0] >= self._buckets:
            self._sums.popleft()


class WindowValues:
    """The newest values of the last five minutes."""

    def __init__(self) -> None:
        self._at: deque[float] = deque(maxlen=MOST)
        self._values: deque[float] = deque(maxlen=MOST)

    def add(self, now: float, value: float) -> None:
        """Note one value."""
        self._at.append(now)
        self._values.append(value)

    def p95(self, now: float) -> float | None:
        """The 95th percentile; None for fewer than 20 values."""
        while self._at and now - self._at[0] > WINDOW_S:
            self._at.popleft()
            self._values.popleft()
        return None if len(self._values) < FEWEST else quantiles(self._values, n=20)[-1]
