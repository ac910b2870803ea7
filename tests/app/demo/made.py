"""Answers made by hand: only what a test is about is named."""

from __future__ import annotations

from typing import Any

from app.demo.answers import Answer, Phase
from autoscaling.request_line import Outcome
from autoscaling.types import Role, Tier


def answer(tier: Tier = Tier.INTERACTIVE, **facts: Any) -> Answer:
    """A whole answer of 11 tokens: 0.5 s to the first byte, then 1 s, by the speculative pool."""
    known: dict[str, Any] = {
        "id": "demo-1-1",
        "sample": "chat-1",
        "phase": Phase.MIXED,
        "outcome": Outcome.OK,
        "began_s": 0.0,
        "e2e_s": 1.5,
        "status": 200,
        "pool": Role.SPECULATIVE,
        "reason": "tier_interactive",
        "ttft_s": 0.5,
        "stream_s": 1.0,
        "tokens": 11,
    }
    return Answer(tier=tier, **(known | facts))


def refused(tier: Tier = Tier.BATCH, *, again: bool = False, **facts: Any) -> Answer:
    """Turned away for want of room."""
    known: dict[str, Any] = {"outcome": Outcome.NO_CAPACITY, "status": 503, "code": "no_capacity"}
    nothing = dict.fromkeys(("pool", "reason", "ttft_s", "stream_s", "tokens"))
    return answer(tier, **(known | nothing | {"again": again} | facts))


def failed(tier: Tier = Tier.INTERACTIVE, **facts: Any) -> Answer:
    """Broken off in the middle."""
    return answer(tier, outcome=Outcome.FAILED, code="stream_interrupted", **({"tokens": None} | facts))


def cut(tier: Tier = Tier.BATCH) -> Answer:
    """Ended by the demo itself."""
    return answer(tier, outcome=Outcome.CANCELLED, ttft_s=None, stream_s=None, tokens=None)
