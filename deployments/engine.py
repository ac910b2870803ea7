"""The engine as a replica sees it: one ASGI app, counters, and processes that can die."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from autoscaling.types import Capabilities, EngineTotals, FinishedRequest

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]


class EngineError(Exception):
    """Root of what an engine can raise at start."""


class EngineConfigError(EngineError):
    """The settings cannot work; repeating the start will not help.

    The message names the setting and the mend.
    """


class EngineStartError(EngineError):
    """The engine did not come up; a new attempt may succeed."""


class DraftLengthError(EngineError):
    """The draft length stays as it is; the message says why."""


@dataclass(slots=True)
class EngineGauges:
    """What the engine last said about itself; `None` until it has."""

    running: int | None = None
    waiting: int | None = None
    kv_cache_usage: float | None = None  # 0..1
    last_step_at: float | None = None  # time.monotonic() of the newest engine step


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One engine step; tokens and sequences are counts."""

    at: float  # time.monotonic() when the engine had done it
    step_s: float | None  # since the step before; None unless all its sequences took part in that one
    sequences: int  # that decoded
    started: int  # that got their first token
    prompt_tokens: int  # of prompts that were completed, cached ones left out
    decode_tokens: int  # that came out, first tokens left out
    drafts: int
    drafted: int
    accepted: int


@dataclass(slots=True)
class EngineRecorder:
    """Where an engine writes its counters, steps and finished-request records."""

    gauges: EngineGauges = field(default_factory=EngineGauges)
    totals: EngineTotals = field(default_factory=EngineTotals)
    errors: int = 0  # records that could not be read; shown, never raised into the engine
    on_finished: Callable[[FinishedRequest], None] = lambda _record: None
    on_step: Callable[[StepRecord], None] | None = None  # of the bench; nothing is made for it without


class Engine(Protocol):
    """One model behind the OpenAI surface.

    `start` raises EngineConfigError or EngineStartError and leaves no process behind.
    """

    @property
    def app(self) -> ASGIApp:
        """The OpenAI app: /v1/chat/completions, /v1/completions, /v1/models."""

    @property
    def recorder(self) -> EngineRecorder:
        """Counters and gauges, written by the engine, read by the replica."""

    @property
    def capabilities(self) -> Capabilities:
        """Known once `start` has returned."""

    async def start(self) -> None:
        """Bring the engine up; returns when it can serve."""

    def unfinished(self) -> int:
        """Requests that the engine has accepted and not finished."""

    def failure(self) -> str | None:
        """Why the engine is dead, or None while it lives.  A hung engine is not dead."""

    def processes(self) -> tuple[int, ...]:
        """Direct child processes of this engine, by pid."""

    async def stop(self) -> None:
        """End the engine and its processes; never raises for a dead engine."""
