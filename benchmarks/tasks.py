"""Tasks of a load: none may fail in silence, and none outlives its run."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence


async def no_fault_for(seconds: float, tasks: Sequence[asyncio.Task[None]]) -> None:
    """Wait; a task that raises is a fault of ours and ends the run at once."""
    done, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
    for task in done:
        task.result()


async def cancel(tasks: Sequence[asyncio.Task[None]]) -> None:
    """End these, and wait until they have ended."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
