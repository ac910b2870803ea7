"""Latencies of each pool over the last minute, from the engines' finished-request records; pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import fmean, quantiles

from autoscaling.routing_rules import PoolSpeed
from autoscaling.types import FinishedRequest, Role

WINDOW_S = 60.0
MOST = 1000  # records per pool; older ones go first
FEWEST = 20  # a 95th percentile of fewer says nothing
SPEED_KEPT_S = 1.0  # many ask for the speeds, and those of a minute hardly change in a second


class Latencies:
    """Finished requests in, percentiles out; `now` is the receiver's monotonic clock."""

    def __init__(self) -> None:
        self._pools = {role: _Pool() for role in Role}

    def take(self, role: Role, finished: Iterable[FinishedRequest], now: float) -> None:
        """Note requests that an engine has finished; aborted ones say nothing."""
        pool = self._pools[role]
        for request in finished:
            if request.finish_reason == "abort" or request.generated_tokens == 0:
                continue
            pool.ttft.add(now, request.queued_s + request.prefill_s)
            pool.tokens.add(now, request.generated_tokens)
            pool.prompts.add(now, request.prompt_tokens)
            if request.generated_tokens > 1:
                pool.tpot.add(now, request.decode_s / (request.generated_tokens - 1))
            pool.changed = True

    def ttft_p95_s(self, role: Role, now: float) -> float | None:
        """Time to the first token inside the engine; None for fewer than 20 requests."""
        return self._pools[role].exact(now).ttft_p95_s

    def tpot_p95_s(self, role: Role, now: float) -> float | None:
        """Time per further token; None for fewer than 20 requests."""
        return self._pools[role].exact(now).tpot_p95_s

    def speed(self, role: Role, now: float) -> PoolSpeed:
        """Percentiles and mean lengths of prompts and answers, as they were at most a second ago."""
        return self._pools[role].recent(now)


class _Window:
    """Values of late, and when they came beside them: a tick sorts the values alone."""

    def __init__(self) -> None:
        self._at: deque[float] = deque(maxlen=MOST)
        self._values: deque[float] = deque(maxlen=MOST)

    def add(self, now: float, value: float) -> None:
        self._at.append(now)
        self._values.append(value)

    def p50_p95(self, now: float) -> tuple[float, float] | tuple[None, None]:
        if not self._enough(now):
            return None, None
        cuts = quantiles(self._values, n=20)
        return cuts[9], cuts[18]

    def mean(self, now: float) -> float | None:
        return fmean(self._values) if self._enough(now) else None

    def _enough(self, now: float) -> bool:
        while self._at and now - self._at[0] > WINDOW_S:
            self._at.popleft()
            self._values.popleft()
        return len(self._values) >= FEWEST


@dataclass(slots=True)
class _Pool:
    """One pool's windows, and what was last computed from them: it is sorted once for all who ask."""

    ttft: _Window = field(default_factory=_Window)
    tpot: _Window = field(default_factory=_Window)
    tokens: _Window = field(default_factory=_Window)
    prompts: _Window = field(default_factory=_Window)
    changed: bool = True  # since `speed` was computed
    speed: PoolSpeed = field(default_factory=PoolSpeed)
    at: float = float("-inf")

    def exact(self, now: float) -> PoolSpeed:
        """As it is at `now`."""
        if self.changed or now != self.at:
            ttft_p50, ttft_p95 = self.ttft.p50_p95(now)
            tpot_p50, tpot_p95 = self.tpot.p50_p95(now)
            answers, prompts = self.tokens.mean(now), self.prompts.mean(now)
            self.speed = PoolSpeed(ttft_p50, ttft_p95, tpot_p50, tpot_p95, answers, prompts)
            self.changed, self.at = False, now
        return self.speed

    def recent(self, now: float) -> PoolSpeed:
        """As it was at most `SPEED_KEPT_S` ago."""
        return self.speed if now - self.at < SPEED_KEPT_S else self.exact(now)
