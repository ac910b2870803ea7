"""A running demo on the terminal: drawn again and again, or as lines where nothing can be drawn."""

from __future__ import annotations

import asyncio

from rich.console import Console
from rich.live import Live
from rich.text import Text

from app.cli.output import printable
from app.demo.client import open_session
from app.demo.run import Run
from app.demo.stops import Stops
from app.demo.view import announcement, picture, progress

DRAWN_EVERY_S = 0.5
LINE_EVERY_S = 5.0
LOOKS_EVERY_S = 0.2  # for a phase that has begun, where lines are printed


def say(console: Console, words: str) -> None:
    """One line, however long, with nothing in it that a terminal obeys."""
    console.print(Text(printable(words)), soft_wrap=True)


async def go(run: Run, url: str, console: Console, stops: Stops) -> None:
    """Run to the end against the service at `url`, or until a stop cancels it, and show it."""
    with stops.cancelling():
        await _go(run, url, console)


async def _go(run: Run, url: str, console: Console) -> None:
    async with open_session(url) as session:
        showing = asyncio.create_task(_show(run, console))
        try:
            await run.go(session)
        finally:
            showing.cancel()
            await asyncio.gather(showing, return_exceptions=True)


async def _show(run: Run, console: Console) -> None:
    """Until it is cancelled."""
    if console.is_interactive:
        with Live(console=console, auto_refresh=False, transient=True) as live:
            while True:
                live.update(picture(run.view()), refresh=True)
                await asyncio.sleep(DRAWN_EVERY_S)
    phase, due_s = None, 0.0
    while True:
        view = run.view()
        if view.phase is not phase:
            phase, due_s = view.phase, run.now_s + LINE_EVERY_S
            say(console, announcement(view))
        elif run.now_s >= due_s:
            due_s += LINE_EVERY_S
            say(console, progress(view))
        await asyncio.sleep(LOOKS_EVERY_S)
