"""Ctrl-C, SIGTERM and a closed terminal: what the demo has begun is ended in order, and measured so far."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Iterator
from typing import Any

NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stops:
    """The handler of the three: KeyboardInterrupt, but for a loop that runs, whose task is cancelled once.

    An exception in the middle of a loop would leave tasks that nobody ends.
    """

    def __init__(self) -> None:
        self._held = False
        self._asked = False
        self._cancel: Callable[[], Any] | None = None

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        """Handle the signals while this lasts; main thread only."""
        before = {number: signal.signal(number, self._on) for number in NUMBERS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Raise nothing while a loop starts, runs and closes."""
        self._held, self._asked = True, False
        try:
            yield
        finally:
            self._held = False

    @contextlib.contextmanager
    def cancelling(self) -> Iterator[None]:
        """Cancel the task that this is entered in at the first signal, one that came before included."""
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        self._cancel = lambda: loop.call_soon_threadsafe(task.cancel)
        if self._asked:
            self._cancel()
        try:
            yield
        finally:
            self._cancel = None

    def _on(self, _number: int, _frame: Any) -> None:
        if not self._held:
            raise KeyboardInterrupt
        if not self._asked:
            self._asked = True
            if self._cancel is not None:
                self._cancel()
