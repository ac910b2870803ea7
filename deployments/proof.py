"""What a replica proves before it takes work: it answers, the answer is sane, speculation is really on."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from deployments.config import EngineSettings
from deployments.engine import ASGIApp, Engine, EngineConfigError, EngineStartError, Message

# A pattern that every drafter can continue: an n-gram drafter finds it in the prompt.
WARM_UP_PROMPT = "1 2 3 4 5 6 1 2 3 4 5 6 1 2 3 4 5 6 1 2 3"
WARM_UP_TOKENS = 24
# The embedded model is known to say this; another model is only asked to agree with itself.
CANARY_PROMPT = "The capital of France is"
CANARY_WORD = "Paris"
CANARY_TOKENS = 8
LIMIT_S = 120.0


async def prove(engine: Engine, settings: EngineSettings) -> None:
    """Warm up once, check speculation by its counters, check a canary answer.

    Raises EngineStartError for a sick engine, EngineConfigError when speculation is configured
    and no draft was ever made.
    """
    await complete(engine.app, settings.served_name, WARM_UP_PROMPT, WARM_UP_TOKENS)
    if settings.speculative_config is not None and engine.recorder.totals.drafts == 0:
        raise EngineConfigError(
            "speculation is configured but the engine made no draft on a repeating prompt: "
            f"check engine.speculative_config {json.dumps(settings.speculative_config)}"
        )
    first = await complete(engine.app, settings.served_name, CANARY_PROMPT, CANARY_TOKENS)
    if not first.strip() or "\ufffd" in first:
        raise EngineStartError(f"canary: the engine answered {first!r}; the weights or the build are broken")
    if settings.kind == "vllm" and settings.model == "embedded" and CANARY_WORD not in first:
        raise EngineStartError(
            f"canary: asked for the capital of France, the engine answered {first!r}; "
            "remove the cached model (twinpool's cache folder) and start again"
        )


async def complete(app: ASGIApp, model: str, prompt: str, max_tokens: int) -> str:
    """One greedy completion through the engine's own app; raises EngineStartError."""
    body = {"model": model, "prompt": prompt, "max_tokens": max_tokens, "temperature": 0, "ignore_eos": True}
    try:
        status, raw = await asyncio.wait_for(
            _post(app, "/v1/completions", json.dumps(body).encode()), LIMIT_S
        )
    except TimeoutError:
        raise EngineStartError(f"the engine gave no answer to the first request in {LIMIT_S:.0f} s") from None
    if status != 200:
        raise EngineStartError(f"the engine answered {status} to the first request: {raw[:300]!r}")
    return str(json.loads(raw)["choices"][0]["text"])


async def _post(app: ASGIApp, path: str, body: bytes) -> tuple[int, bytes]:
    status = 0
    parts: list[bytes] = []
    never: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        return waiting.pop() if waiting else await never

    async def send(message: Message) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = int(message["status"])
        else:
            parts.append(bytes(message.get("body", b"")))

    scope: dict[str, Any] = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())],
        "client": ("127.0.0.1", 0),
        "server": ("127.0.0.1", 80),
        "scheme": "http",
        "root_path": "",
    }
    await app(scope, receive, send)
    return status, b"".join(parts)
