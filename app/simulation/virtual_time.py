"""An event loop on virtual time: code that sleeps and waits runs at once, in the order of its times."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


class StalledError(RuntimeError):
    """Everything waits and nothing is due: in real time this would hang for ever."""


class _Waiting(selectors.DefaultSelector):
    """Time passes by being waited for; what is really ready, such as a thread's answer, comes first."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Answer at once, later by `timeout` seconds of virtual time."""
        ready: list[tuple[selectors.SelectorKey, int]] = super().select(0)
        if not ready:
            if timeout is None:
                raise StalledError("every task waits, and no timer is set: something waits for itself")
            self.now += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """`time()` is 0 at first and moves only while nothing can run; nothing here may do real IO."""

    def __init__(self) -> None:
        self._waiting = _Waiting()
        super().__init__(self._waiting)

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._waiting.now


def run_virtually(main: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine to its end on virtual time; raises StalledError for one that waits for ever."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
