"""Latencies of each pool over the last minute, from the engines' finished-request records; pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from statistics import quantiles

from autoscaling.types import FinishedRequest, Role

WINDOW_S = 60.0
MOST = 2000  # records per pool; older ones go first
FEWEST = 20  # a 95th percentile of fewer says nothing


class Latencies:
    """Finished requests in, 95th percentiles out; `now` is the receiver's monotonic clock."""

    def __init__(self) -> None:
        self._ttft: dict[Role, deque[tuple[float, float]]] = {role: deque(maxlen=MOST) for role in Role}
        self._tpot: dict[Role, deque[tuple[float, float]]] = {role: deque(maxlen=MOST) for role in Role}

    def take(self, role: Role, finished: Iterable[FinishedRequest], now: float) -> None:
        """Note requests that an engine has finished; aborted ones say nothing."""
        for request in finished:
            if request.finish_reason == "abort" or request.generated_tokens == 0:
                continue
            self._ttft[role].append((now, request.queued_s + request.prefill_s))
            if request.generated_tokens > 1:
                self._tpot[role].append((now, request.decode_s / (request.generated_tokens - 1)))

    def ttft_p95_s(self, role: Role, now: float) -> float | None:
        """Time to the first token inside the engine; None for fewer than 20 requests."""
        return _p95(self._ttft[role], now)

    def tpot_p95_s(self, role: Role, now: float) -> float | None:
        """Time per further token; None for fewer than 20 requests."""
        return _p95(self._tpot[role], now)


def _p95(values: deque[tuple[float, float]], now: float) -> float | None:
    while values and now - values[0][0] > WINDOW_S:
        values.popleft()
    if len(values) < FEWEST:
        return None
    return quantiles((value for _, value in values), n=20)[-1]
