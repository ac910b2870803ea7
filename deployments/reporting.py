"""A replica's reports to the controller: one a second, one in flight, the newest wins."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from autoscaling.observations import Taken
from autoscaling.types import FinishedRequest, ReplicaReport

PERIOD_S = 1.0
CALL_LIMIT_S = 1.0
MAX_FINISHED = 512  # records kept while the controller is away; older ones stay in the totals only

Deliver = Callable[[dict[str, Any]], Awaitable[Any]]


class Reporter:
    """Pushes `make(seq, finished)` through `deliver` until `stop`.

    A finished-request record is sent until a report that carried it was taken.
    """

    def __init__(
        self, make: Callable[[int, tuple[FinishedRequest, ...]], ReplicaReport], deliver: Deliver
    ) -> None:
        self._make = make
        self._deliver = deliver
        self._finished: deque[FinishedRequest] = deque(maxlen=MAX_FINISHED)
        self._seq = 0
        self._task: asyncio.Task[None] | None = None
        self._sending = asyncio.Lock()
        self.delivered_at: float | None = None  # monotonic; None until the controller took one
        self.failures = 0

    def finished(self, record: FinishedRequest) -> None:
        """Queue a record for the next report."""
        self._finished.append(record)

    def start(self) -> None:
        """Begin pushing."""
        self._task = asyncio.create_task(self._run(), name="reports")

    async def stop(self) -> None:
        """Stop pushing."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        next_at = time.monotonic()
        while True:
            await self.push()
            next_at = max(next_at + PERIOD_S, time.monotonic() + 0.05)
            await asyncio.sleep(next_at - time.monotonic())

    async def push(self) -> bool:
        """Send one report now; False when the controller did not take it in time."""
        async with self._sending:
            self._seq += 1
            records = tuple(self._finished)
            try:
                report = msgspec.to_builtins(self._make(self._seq, records))
                # Not wait_for: in Python 3.11 it swallows a cancellation that meets the answer, and `stop`
                # would wait for ever.
                async with asyncio.timeout(CALL_LIMIT_S):
                    taken = await self._deliver(report)
            except Exception:  # the controller is away: try again in a second
                taken = None
            if taken != Taken.TAKEN:
                self.failures += 1
                return False
            for record in records:
                if self._finished and self._finished[0] is record:
                    self._finished.popleft()
            self.delivered_at = time.monotonic()
            return True
