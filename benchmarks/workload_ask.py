"""Ask a running service every prompt, pinned to the speculative pool, a few at a time."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import aiohttp

from benchmarks.errors import BenchError, UnfitError
from benchmarks.workload_lines import row_of
from benchmarks.workload_prompts import Prompt

AT_ONCE: Final = 8
ANSWER_LIMIT_S: Final = 600.0
MOST_FAILED: Final = 0.05  # of the prompts; more, and the run is void
HEADERS: Final = {"x-twinpool-pool": "speculative"}
STREAM: Final = {"stream": True, "stream_options": {"include_usage": True}}
DATA: Final = b"data: "
END: Final = b"[DONE]"

Row = dict[str, Any]


@dataclass(slots=True)
class Pace:
    """How far the run is; `say` hears of it about twenty times."""

    total: int
    say: Callable[[str], None]
    started: float = field(default_factory=time.monotonic)
    done: int = 0

    def one_more(self) -> None:
        """Count one answer."""
        self.done += 1
        if self.done == self.total or self.done % max(1, self.total // 20) == 0:
            passed = time.monotonic() - self.started
            left = passed / self.done * (self.total - self.done)
            self.say(f"[{passed:4.0f} s, about {left:.0f} s left] {self.done} of {self.total} answers")


async def ask_all(url: str, prompts: Sequence[Prompt], say: Callable[[str], None]) -> list[Row]:
    """The row of each prompt, in their order.

    Raises UnfitError when nothing serves at `url`, BenchError when too many answers failed.
    """
    limit = aiohttp.ClientTimeout(total=ANSWER_LIMIT_S)
    room = asyncio.Semaphore(AT_ONCE)
    pace = Pace(len(prompts), say)
    async with aiohttp.ClientSession(url, timeout=limit, headers=HEADERS) as session:
        await _check_ready(session, url)

        async def one(prompt: Prompt) -> Row:
            async with room:
                row = await _ask(session, prompt)
            pace.one_more()
            return row

        rows = await asyncio.gather(*(one(prompt) for prompt in prompts))
    failed = [row["err"] for row in rows if row["err"]]
    if len(failed) > MOST_FAILED * len(rows):
        raise BenchError(f"{len(failed)} of {len(rows)} answers failed, the first with: {failed[0]}")
    return rows


async def _check_ready(session: aiohttp.ClientSession, url: str) -> None:
    try:
        async with session.get("/ready") as answer:
            status = answer.status
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        raise UnfitError(f"nothing serves at {url} ({error}): start it with `make serve`") from None
    if status != 200:
        raise UnfitError(f"{url}/ready says {status}: wait until `twinpool status` says that it is ready")


async def _ask(session: aiohttp.ClientSession, prompt: Prompt) -> Row:
    try:
        async with session.post("/v1/chat/completions", json={**prompt.body, **STREAM}) as answer:
            if answer.status != 200:
                text = (await answer.text())[:200]
                return row_of(prompt.id, prompt.category, None, f"{answer.status}: {text}")
            last = None
            async for line in answer.content:
                if line.startswith(DATA) and not line.startswith(DATA + END):
                    last = json.loads(line[len(DATA) :])
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
        return row_of(prompt.id, prompt.category, None, f"{type(error).__name__}: {error}")
    problem = last.get("error") if isinstance(last, dict) else "an answer without an event"
    return row_of(prompt.id, prompt.category, last, str(problem) if problem else None)
