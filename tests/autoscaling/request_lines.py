"""Lines of ingresses and records of engines for tests of the book of requests."""

from __future__ import annotations

from typing import Any

from autoscaling.request_line import Outcome, RequestLine
from autoscaling.routing_rules import TierRules
from autoscaling.types import FinishedRequest, IngressLoad, Role, Tier

WALL = 1_800_000_000.0  # 2027-01-15T08:00:00Z
STRICT = {tier: TierRules(ttft_s=1.0, tpot_s=0.1) for tier in Tier}


def line(seq: int = 1, **changes: Any) -> RequestLine:
    """A complete streamed answer of the plain pool: first byte after 0.5 s, all of it after 1 s."""
    fields: dict[str, Any] = {
        "seq": seq,
        "id": f"req-{seq}",
        "engine_id": f"req-{seq}-abc",
        "wall": WALL,
        "tier": Tier.STANDARD,
        "tier_requested": None,
        "workload": "chat",
        "workload_reason": "no_evidence",
        "features": {},
        "tokens_per_step": None,
        "stream": True,
        "sequences": 1,
        "outcome": Outcome.OK,
        "status": 200,
        "code": None,
        "pool": Role.PLAIN,
        "replica": "a",
        "reason": "tier_standard",
        "waited_s": 0.25,
        "first_byte_s": 0.5,
        "e2e_s": 1.0,
        "attempts": 1,
    }
    return RequestLine(**(fields | changes))


def load(*lines: RequestLine, **changes: Any) -> IngressLoad:
    """What an ingress says with these lines."""
    fields: dict[str, Any] = {"wanted": {}, "refused": {}, "lines": lines}
    return IngressLoad(**(fields | changes))


def record(seq: int = 1, **changes: Any) -> FinishedRequest:
    """The engine's record of `line(seq)`: 0.25 s to its first token, then 0.0625 s for each of eight."""
    fields: dict[str, Any] = {
        "request_id": f"chatcmpl-req-{seq}-abc",
        "prompt_tokens": 5,
        "generated_tokens": 9,
        "finish_reason": "stop",
        "queued_s": 0.125,
        "prefill_s": 0.125,
        "decode_s": 0.5,
        "e2e_s": 0.75,
    }
    return FinishedRequest(**(fields | changes))
