"""What one request is waiting for: the outputs of its sequences, or the news that none will come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection

from deployments.engine import EngineError
from deployments.simulated.frames import Output


class EngineDeadError(EngineError):
    """The child process is gone; nothing more will be generated."""


class Generation:
    """The sequences of one request and what has come of them; `abort` ends sequences by key."""

    def __init__(self, keys: Collection[int], abort: Callable[[Collection[int]], None]) -> None:
        self._index = {key: index for index, key in enumerate(keys)}
        self._unfinished = set(keys)
        self._abort = abort
        self._outputs: asyncio.Queue[Output | EngineDeadError] = asyncio.Queue()

    async def outputs(self) -> AsyncIterator[tuple[int, Output]]:
        """Yield the outputs with the index of their sequence, in the order of the steps.

        Raises EngineDeadError when the engine dies first.
        """
        left = len(self._index)
        while left:
            output = await self._outputs.get()
            if isinstance(output, EngineDeadError):
                raise output
            left -= output.finish_reason is not None
            yield self._index[output.key], output

    def abort(self) -> None:
        """Tell the engine that nobody waits any more; nothing happens when all has finished."""
        if self._unfinished:
            self._abort(self._unfinished)

    def put(self, output: Output) -> None:
        """Hand over what a step has added."""
        if output.finish_reason is not None:
            self._unfinished.discard(output.key)
        self._outputs.put_nowait(output)

    def fail(self, reason: str) -> None:
        """Nothing more will come."""
        self._outputs.put_nowait(EngineDeadError(reason))
