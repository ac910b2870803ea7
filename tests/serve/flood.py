"""Requests sent at a fixed rate, whatever becomes of them: an open loop, in one event loop of the test.

Input: a schedule.  Output: what came of every request, measured at the client.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import aiohttp

from tests.service import MODEL, Service


@dataclass(frozen=True, slots=True)
class Shot:
    """One request to be sent `at_s` after the begin."""

    at_s: float
    tier: str
    tokens: int
    headers: tuple[tuple[str, str], ...] = ()
    prompt: str = "Tell a story"


@dataclass(frozen=True, slots=True)
class Hit:
    """What came of it; None for what never came."""

    shot: Shot
    status: int | None
    retry_after: str | None
    code: str | None
    pool: str | None
    reason: str | None
    replica: str | None
    tokens: int | None
    ttft_s: float | None
    tpot_s: float | None
    complete: bool

    def in_time(self, ttft_s: float, tpot_s: float) -> bool:
        """Whether the answer is whole and kept both objectives."""
        if not self.complete or self.ttft_s is None or self.ttft_s > ttft_s:
            return False
        return self.tpot_s is None or self.tpot_s <= tpot_s


def steady_shots(
    tier: str, per_s: float, seconds: float, tokens: int, seed: int = 1, begin_s: float = 0.0, **more: Any
) -> list[Shot]:
    """Poisson arrivals of one tier."""
    chance, at_s, found = random.Random(f"{seed}/{tier}"), begin_s, []
    while (at_s := at_s + chance.expovariate(per_s)) < begin_s + seconds:
        found.append(Shot(at_s, tier, tokens, **more))
    return found


def flood(service: Service, shots: Iterable[Shot], limit_s: float) -> list[Hit]:
    """Send them all; returns when every answer has ended."""
    return asyncio.run(_flood(service.url, sorted(shots, key=lambda shot: shot.at_s), limit_s))


async def _flood(url: str, shots: Sequence[Shot], limit_s: float) -> list[Hit]:
    began = time.monotonic()
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session, asyncio.timeout(limit_s):
        return await asyncio.gather(*(_fire(session, url, shot, began) for shot in shots))


async def _fire(session: aiohttp.ClientSession, url: str, shot: Shot, began: float) -> Hit:
    await asyncio.sleep(max(0.0, began + shot.at_s - time.monotonic()))
    sent = time.monotonic()
    body = {
        "model": MODEL,
        "messages": [{"role": "user", "content": shot.prompt}],
        "max_tokens": shot.tokens,
        "ignore_eos": True,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    headers = {"x-twinpool-tier": shot.tier} | dict(shot.headers)
    first = last = None
    tokens, complete, code, end = None, False, None, b""
    async with session.post(f"{url}/v1/chat/completions", json=body, headers=headers) as answer:
        async for piece in answer.content.iter_any():
            last = time.monotonic()
            first = last if first is None else first
            end = (end + piece)[-4096:]
        said = answer.headers
        status = answer.status
    if status == 200:
        complete = end.endswith(b"data: [DONE]\n\n") and b'data: {"error"' not in end
        tokens = _tokens(end)
    else:
        code = json.loads(end)["error"]["code"]
    spread = None if first is None or last is None or not tokens or tokens < 2 else last - first
    return Hit(
        shot=shot,
        status=status,
        retry_after=said.get("retry-after"),
        code=code,
        pool=said.get("x-twinpool-pool"),
        reason=said.get("x-twinpool-route-reason"),
        replica=said.get("x-twinpool-replica"),
        tokens=tokens,
        ttft_s=None if first is None else first - sent,
        tpot_s=None if spread is None or tokens is None else spread / (tokens - 1),
        complete=complete,
    )


def _tokens(end: bytes) -> int | None:
    for event in reversed(end.split(b"\n\n")):
        if event.startswith(b"data: {") and b'"completion_tokens"' in event:
            usage = json.loads(event.removeprefix(b"data: "))["usage"]
            return int(usage["completion_tokens"])
    return None


def by(hits: Iterable[Hit], *names: str) -> Counter[tuple[Any, ...]]:
    """Counts by fields of the hits, `tier` included."""
    return Counter(
        tuple(hit.shot.tier if name == "tier" else getattr(hit, name) for name in names) for hit in hits
    )
