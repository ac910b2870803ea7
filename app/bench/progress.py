"""How far a measurement has come, and how long it will still take: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

LINE_EVERY_S: Final = 15.0  # where there is no terminal to redraw
TICK_S: Final = 1.0  # of a bar, also while one part takes long


class Showing:
    """Counts expected seconds; what the done parts really took corrects the time that is shown."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._expected = 0.0
        self._done = 0.0
        self._began: float | None = None
        self._counted = 0.0  # when the last part was done
        self._lined: float | None = None
        self._text = ""
        self._bar: Progress | None = None
        self._task = TaskID(0)

    def __enter__(self) -> Showing:
        if self._console.is_terminal:
            columns = (BarColumn(20), TextColumn("{task.fields[left]}"), TextColumn("{task.description}"))
            self._bar = Progress(*columns, console=self._console, transient=True)
            self._task = self._bar.add_task("", total=1.0, left="")
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def expect(self, seconds: float) -> None:
        """So many more seconds of work are to come; the clock of the remaining time starts now."""
        self._expected += seconds
        self._began = self._clock() if self._began is None else self._began

    def say(self, text: str) -> None:
        """What is being done now."""
        self._text = text
        self._show()

    def note(self, text: str) -> None:
        """Tell one line that stays."""
        (self._console if self._bar is None else self._bar.console).print(text, markup=False, highlight=False)

    def done(self, expected_s: float) -> None:
        """Count a part that was expected to take so long as done."""
        self._done += expected_s
        self._counted = self._clock()
        self._show()

    def started(self, expected_s: float) -> None:
        """Count a part as done whose pace says nothing about the others: the start of an engine."""
        if self._began is not None:
            now = self._clock()
            self._began += now - max(self._began, self._counted)
            self._counted = now
        self._expected -= expected_s
        self._show()

    async def ticking(self) -> None:
        """Go on telling while nothing is said, as during the start of an engine; ends by a cancel."""
        while True:
            await asyncio.sleep(TICK_S)
            self._show()

    def _show(self) -> None:
        left = self._left()
        if self._bar is not None:
            share = min(1.0, self._done / self._expected) if self._expected else 0.0
            self._bar.update(self._task, completed=share, description=self._text, left=left)
        elif self._lined is None or self._clock() - self._lined >= LINE_EVERY_S:
            self._lined = self._clock()
            self._console.print(f"{left:>16}  {self._text}".rstrip(), markup=False, highlight=False)

    def _left(self) -> str:
        if self._began is None or self._done <= 0:
            return ""
        pace = (self._counted - self._began) / self._done
        left = max(0.0, (self._expected - self._done) * pace - (self._clock() - self._counted))
        return f"{left / 60:.0f} min left" if left >= 90 else f"{left:.0f} s left"
