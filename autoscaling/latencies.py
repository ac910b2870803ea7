"""Latencies of each pool over the last minute, from the engines' finished-request records; pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from statistics import quantiles

from autoscaling.types import FinishedRequest, Role

WINDOW_S = 60.0
MOST = 1000  # records per pool; older ones go first
FEWEST = 20  # a 95th percentile of fewer says nothing


class Latencies:
    """Finished requests in, 95th percentiles out; `now` is the receiver's monotonic clock."""

    def __init__(self) -> None:
        self._ttft = {role: _Window() for role in Role}
        self._tpot = {role: _Window() for role in Role}

    def take(self, role: Role, finished: Iterable[FinishedRequest], now: float) -> None:
        """Note requests that an engine has finished; aborted ones say nothing."""
        ttft, tpot = self._ttft[role], self._tpot[role]
        for request in finished:
            if request.finish_reason == "abort" or request.generated_tokens == 0:
                continue
            ttft.add(now, request.queued_s + request.prefill_s)
            if request.generated_tokens > 1:
                tpot.add(now, request.decode_s / (request.generated_tokens - 1))

    def ttft_p95_s(self, role: Role, now: float) -> float | None:
        """Time to the first token inside the engine; None for fewer than 20 requests."""
        return self._ttft[role].p95(now)

    def tpot_p95_s(self, role: Role, now: float) -> float | None:
        """Time per further token; None for fewer than 20 requests."""
        return self._tpot[role].p95(now)


class _Window:
    """Values of late, and when they came beside them: a tick sorts the values alone."""

    def __init__(self) -> None:
        self._at: deque[float] = deque(maxlen=MOST)
        self._values: deque[float] = deque(maxlen=MOST)

    def add(self, now: float, value: float) -> None:
        self._at.append(now)
        self._values.append(value)

    def p95(self, now: float) -> float | None:
        while self._at and now - self._at[0] > WINDOW_S:
            self._at.popleft()
            self._values.popleft()
        if len(self._values) < FEWEST:
            return None
        return quantiles(self._values, n=20)[-1]
