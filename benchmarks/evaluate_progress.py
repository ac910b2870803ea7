"""How far `benchmarks.evaluate` is: a bar with the time that is left, or a line now and then in a log."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Final, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

LINES: Final = 50  # of a log, for a whole run


class Shown:
    """Counts runs that are done; a context that takes its bar away again."""

    def __init__(self, console: Console, total: int, what: str) -> None:
        self._console = console
        self._total = total
        self._what = what
        self._began = time.monotonic()
        self._done = 0
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=console,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task(what, total=total, left="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def known(self) -> None:
        """One of all need not run."""
        self._total -= 1
        self._bar.update(self._task, total=self._total)

    def done(self, words: str) -> None:
        """One more is done; the words say which."""
        self._done += 1
        passed = time.monotonic() - self._began
        left = f"about {_duration((self._total - self._done) * passed / self._done)} left"
        self._bar.update(self._task, completed=self._done, left=left)
        if not self._console.is_terminal and self._done % max(1, self._total // LINES) == 0:
            self._console.print(
                f"[{_duration(passed)}, {left}] {self._what}: {self._done} of {self._total}, {words}",
                markup=False,
                highlight=False,
                soft_wrap=True,
            )


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min" if minutes >= 10 else f"{minutes} min {rest} s" if minutes else f"{rest} s"
