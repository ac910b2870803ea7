"""The demo's HTTP client: one streamed request, and what became of it."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from app.demo.answers import Answer, Phase
from app.demo.plan import Wanted
from app.demo.stream import StreamReader, error_code
from autoscaling.request_line import Outcome
from autoscaling.types import Role
from deployments.ports import is_loopback

CONNECT_LIMIT_S = 10.0
SILENCE_LIMIT_S = 120.0  # a batch request may wait for room this long before its first byte
LONGEST_RETRY_S = 120  # as the service's own
LOOK_LIMIT_S = 3.0
_WHOLE = re.compile("[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class Sending:
    """One attempt: which request, under which id, and when."""

    id: str
    wanted: Wanted
    phase: Phase
    began_s: float  # since the demo began
    pin: Role | None = None


def open_session(url: str) -> aiohttp.ClientSession:
    """A session without limits of its own; the environment's proxy counts except on loopback."""
    return aiohttp.ClientSession(
        base_url=url + "/",
        connector=aiohttp.TCPConnector(limit=0),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_LIMIT_S, sock_read=SILENCE_LIMIT_S),
        trust_env=not is_loopback(urlsplit(url).hostname or ""),
    )


async def ask(session: aiohttp.ClientSession, sending: Sending) -> Answer:
    """Send one request and read its stream to the end; only a cancel raises."""
    began = time.perf_counter()
    headers = {"x-request-id": sending.id, "x-twinpool-tier": sending.wanted.tier.value}
    if sending.pin is not None:
        headers["x-twinpool-pool"] = sending.pin.value
    reader = StreamReader()
    facts: dict[str, Any] = {}
    try:
        # Without its first slash the path is relative to the address, which may have a path itself.
        path = sending.wanted.path.lstrip("/")
        async with session.post(path, json=dict(sending.wanted.body), headers=headers) as response:
            facts |= _routed(response)
            if response.status != 200:
                facts["code"] = await _refusal(response)
            else:
                async for data in response.content.iter_any():
                    reader.feed(data, time.perf_counter())
    except (aiohttp.ClientError, OSError) as error:  # OSError covers the time limits
        facts["code"] = facts.get("code") or type(error).__name__
        reader.finished = False
    if reader.error is not None:
        facts["code"] = reader.error
    whole = reader.finished and reader.error is None
    if facts.get("status") == 200 and not whole and "code" not in facts:
        facts["code"] = "stream ended early"
    return Answer(
        id=sending.id,
        tier=sending.wanted.tier,
        sample=sending.wanted.sample,
        phase=sending.phase,
        outcome=outcome(facts.get("status"), whole=whole),
        began_s=sending.began_s,
        e2e_s=time.perf_counter() - began,
        ttft_s=None if reader.first_at is None else reader.first_at - began,
        stream_s=reader.stream_s,
        tokens=reader.tokens,
        drafts=reader.drafts,
        **facts,
    )


def outcome(status: int | None, *, whole: bool) -> Outcome:
    """What an HTTP status means; `whole` says whether a stream came to its end without an error."""
    match status:
        case 200:
            return Outcome.OK if whole else Outcome.FAILED
        case 429:
            return Outcome.SHED
        case 503:
            return Outcome.NO_CAPACITY
        case int() if 400 <= status < 500:
            return Outcome.CALLER
        case _:
            return Outcome.FAILED


async def look(session: aiohttp.ClientSession) -> Mapping[str, Any] | None:
    """The status JSON; None when it does not come."""
    try:
        limit = aiohttp.ClientTimeout(total=LOOK_LIMIT_S)
        async with session.get("admin/status", timeout=limit) as response:
            found = await response.json()
    except (aiohttp.ClientError, OSError, ValueError):
        return None
    return found if isinstance(found, dict) and "pools" in found else None


async def _refusal(response: aiohttp.ClientResponse) -> str:
    try:
        found = error_code(await response.json(content_type=None))
    except ValueError:
        found = None
    return found or f"HTTP {response.status}"


def _routed(response: aiohttp.ClientResponse) -> dict[str, Any]:
    """What the head of an answer says."""
    pool = response.headers.get("x-twinpool-pool")
    return {
        "status": response.status,
        "pool": Role(pool) if pool in set(Role) else None,
        "reason": response.headers.get("x-twinpool-route-reason"),
        "retry_after_s": retry_after_s(response.headers.get("retry-after")),
    }


def retry_after_s(header: str | None) -> int | None:
    """Whole seconds of a Retry-After header, 1 to 120; None for none and for any other form of it."""
    if header is None or not _WHOLE.fullmatch(header):
        return None
    return min(max(int(header), 1), LONGEST_RETRY_S)
