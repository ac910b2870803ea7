"""What the ingress adds to an answer, and what it reads from its end; the bytes pass unchanged."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from app.job import Course, Job
from app.routing.route import Route
from autoscaling.request_line import Outcome

KEPT: Final = 4096  # bytes of the end; the last events with usage and the engine's metrics are shorter
_ACCEPTANCE = re.compile(rb'"speculative_decoding":\s*(\{[^{}]*\})')
_ERROR_CODE = re.compile(rb'\Adata: \{"error":\s*\{.*?"code":\s*"([a-z_]{1,40})"', re.DOTALL)
_NUMBERS = ("num_spec_steps", "num_draft_tokens", "num_accepted_draft_tokens")


class Tail:
    """The last bytes of an answer."""

    def __init__(self, first: bytes) -> None:
        self._end = first[-KEPT:]

    def add(self, piece: bytes) -> int:
        """Take a further piece; returns how many events it begins, each a token or more."""
        self._end = piece[-KEPT:] if len(piece) >= KEPT else (self._end + piece)[-KEPT:]
        return piece.count(b"data: ")

    def gap(self) -> bytes:
        """What separates an event of ours from what was cut off."""
        return b"" if not self._end or self._end.endswith(b"\n\n") else b"\n\n"

    def tell(self, course: Course) -> None:
        """Note what the end of a complete answer says: the drafts' fate, or the replica's error event."""
        found = _ACCEPTANCE.search(self._end)
        course.acceptance = None if found is None else _numbers(found[1])
        at = self._end.rfind(b'data: {"error"')
        if at >= 0 and (at == 0 or self._end[at - 1 : at] == b"\n"):
            course.outcome = Outcome.FAILED
            code = _ERROR_CODE.match(self._end[at:])
            course.code = None if code is None else code[1].decode()


def answer_headers(job: Job, route: Route) -> list[tuple[bytes, bytes]]:
    """What every routed answer says about its route."""
    tier = job.tier
    headers = [
        (b"x-twinpool-pool", route.replica.pool.encode()),
        (b"x-twinpool-tier", tier.tier.value.encode()),
        (b"x-twinpool-route-reason", route.reason.value.encode()),
        (b"x-twinpool-replica", route.replica.replica_id.encode()),
    ]
    if tier.requested is not None and tier.requested is not tier.tier:
        headers.append((b"x-twinpool-tier-requested", tier.requested.value.encode()))
    return headers


def last(body: bytes) -> dict[str, Any]:
    """The message that ends an answer."""
    return {"type": "http.response.body", "body": body, "more_body": False}


def _numbers(raw: bytes) -> dict[str, Any] | None:
    try:
        said: Any = msgspec.json.decode(raw)
    except msgspec.DecodeError:
        return None
    kept = {name: said[name] for name in _NUMBERS if isinstance(said.get(name), int)}
    return kept or None
