"""One streamed request to an engine of the bench."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import aiohttp

from app.bench.answer import Answer, AnswerReader
from app.bench.engine_process import EngineProcess


async def ask(engine: EngineProcess, body: Mapping[str, Any]) -> Answer:
    """Send one request and read its stream to the end; only a cancel raises."""
    began = time.perf_counter()
    reader = AnswerReader(began)
    try:
        async with engine.session.post("v1/chat/completions", json=body) as response:
            if response.status != 200:
                return reader.answer(f"HTTP {response.status}: {(await response.text())[:200]}")
            async for data in response.content.iter_any():
                reader.feed(data, time.perf_counter())
    except (aiohttp.ClientError, OSError) as error:  # OSError covers the time limits
        return reader.answer(str(error) or type(error).__name__)
    return reader.answer()


async def prompt_tokens(engine: EngineProcess, model: str, messages: object) -> int | None:
    """Tokens of a prompt by the engine's own count; None when it does not tell."""
    body = {"model": model, "messages": messages}
    try:
        async with engine.session.post("tokenize", json=body) as response:
            found = (await response.json()).get("count") if response.status == 200 else None
    except (aiohttp.ClientError, OSError, ValueError):
        return None
    return found if isinstance(found, int) else None
