"""How far a measurement has come, and how long it will still take: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Final, Protocol

from rich.console import Console
from rich.progress import BarColumn, TaskID, TextColumn
from rich.progress import Progress as Bar

LINE_EVERY_S: Final = 15.0  # where there is no terminal to redraw
TICK_S: Final = 1.0  # of a bar, also while one part takes long
SURE_PARTS: Final = 3  # before them the pace of a few small batches would be told as that of all


class Progress(Protocol):
    """Where a measurement says what it does."""

    def say(self, text: str) -> None:
        """What is being done now."""

    def note(self, text: str) -> None:
        """Tell one line that stays."""

    def done(self, expected_s: float) -> None:
        """Count a part that was expected to take so long as done."""

    def drop(self, expected_s: float) -> None:
        """A part that was expected to take so long will not be done."""


class Showing:
    """Counts expected seconds; what the done parts really took corrects the time that is shown."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._expected = 0.0  # of the parts that tell the pace
        self._starts = 0.0  # expected of what has a pace of its own, and is still to come
        self._budget: tuple[float, float] | None = None  # seconds of all parts; expected of those made anyway
        self._done = 0.0
        self._parts = 0
        self._began: float | None = None
        self._counted = 0.0  # when the last part was done
        self._lined: float | None = None
        self._text = ""
        self._usual: str | None = None
        self._said = 0.0  # since when the text holds
        self._bar: Bar | None = None
        self._task = TaskID(0)

    def __enter__(self) -> Showing:
        if self._console.is_terminal:
            columns = (BarColumn(20), TextColumn("{task.fields[left]}"), TextColumn("{task.description}"))
            self._bar = Bar(*columns, console=self._console, transient=True)
            self._task = self._bar.add_task("", total=1.0, left="")
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def expect(self, parts_s: float, starts_s: float = 0.0) -> None:
        """What is to come: the parts that tell the pace, and starts, which do not; the clock starts now."""
        self._expected += parts_s
        self._starts += starts_s
        self._began = self._clock() if self._began is None else self._began

    def within(self, most_s: float, least_s: float) -> None:
        """Parts beyond `most_s` will be left out, but not those first ones that were expected `least_s`."""
        self._budget = (most_s, least_s)

    def say(self, text: str) -> None:
        """What is being done now."""
        self._text, self._usual = text, None
        self._show()

    def wait(self, text: str, usual: str) -> None:
        """Something that takes long is being done now: told with the time since, and what is usual."""
        self._text, self._usual, self._said = text, usual, self._clock()
        self._show()

    def note(self, text: str) -> None:
        """Tell one line that stays."""
        (self._console if self._bar is None else self._bar.console).print(text, markup=False, highlight=False)

    def done(self, expected_s: float) -> None:
        """Count a part that was expected to take so long as done."""
        self._done += expected_s
        self._parts += 1
        self._counted = self._clock()
        self._show()

    def drop(self, expected_s: float) -> None:
        """A part that was expected to take so long will not be done."""
        self._expected -= expected_s
        self._show()

    def started(self, expected_s: float) -> None:
        """Count a part as done whose pace says nothing about the others: the start of an engine."""
        if self._began is not None:
            now = self._clock()
            self._began += now - max(self._began, self._counted)
            self._counted = now
        self._starts -= expected_s
        self._show()

    @contextlib.contextmanager
    def beating(self) -> Iterator[None]:
        """Go on telling while this lasts, also while the caller computes and says nothing."""
        over = threading.Event()

        def beat() -> None:
            while not over.wait(TICK_S):
                self._show()

        beats = threading.Thread(target=beat, name="progress", daemon=True)
        beats.start()
        try:
            yield
        finally:
            over.set()
            beats.join()

    async def ticking(self) -> None:
        """Go on telling while nothing is said, as during the start of an engine; ends by a cancel."""
        while True:
            await asyncio.sleep(TICK_S)
            self._show()

    def _show(self) -> None:
        left, words = self._left(), self._words()
        if self._bar is not None:
            share = min(1.0, self._done / self._expected) if self._expected else 0.0
            self._bar.update(self._task, completed=share, description=words, left=left)
        elif self._lined is None or self._clock() - self._lined >= LINE_EVERY_S:
            self._lined = self._clock()
            self._console.print(f"{left:>16}  {words}".rstrip(), markup=False, highlight=False)

    def _words(self) -> str:
        if self._usual is None:
            return self._text
        return f"{self._text}: {self._clock() - self._said:.0f} s, {self._usual}"

    def _left(self) -> str:
        if self._began is None or self._done <= 0 or self._parts < SURE_PARTS:
            return ""
        took = self._counted - self._began
        pace = took / self._done
        parts = (self._expected - self._done) * pace
        if self._budget is not None:
            most, least = self._budget
            parts = min(parts, max(most - took, (least - self._done) * pace))
        left = max(0.0, max(0.0, parts) + self._starts - (self._clock() - self._counted))
        return f"{left / 60:.0f} min left" if left >= 90 else f"{left:.0f} s left"
