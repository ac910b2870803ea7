"""An engine for tests of `benchmarks.goodput`: an OpenAI server with a step clock, in this process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from aiohttp import web

from autoscaling.profiling.findings import PoolAnswer
from autoscaling.routing_rules import StepCost
from autoscaling.types import Capabilities, Role
from benchmarks.goodput_engines import Engine
from benchmarks.goodput_plan import MAX_NUM_SEQS, Method
from benchmarks.goodput_rules import Calibrated, Predicted
from deployments.config import PoolSettings

BASE_S, PER_TOKEN_S = 0.002, 0.0001
GAIN = 2  # tokens of a step that drafts
NOT_IN_SALTS = set("@/\\\0")  # vLLM 0.32 refuses them, and more than 128 characters
TABLE = (0, *(4 if size <= 4 else 0 for size in range(1, MAX_NUM_SEQS + 1)))


def capabilities(role: Role, *, adjustable: bool = True) -> Capabilities:
    """What an engine of a role says."""
    speculative = role is Role.SPECULATIVE
    return Capabilities(
        role=role,
        engine="fake",
        engine_version="0",
        method="ngram" if speculative else None,
        runner=None,
        draft_length_max=4 if speculative else 0,
        draft_length_adjustable=adjustable,
        max_model_len=2048,
        max_num_seqs=MAX_NUM_SEQS,
        refuses=(),
        per_request_metrics=True,
        models=("m",),
        fingerprint="f",
    )


class FakeEngine:
    """Steps take longer the more sequences run, and bring two tokens where K is not 0."""

    def __init__(self, pool: PoolSettings, cores: tuple[int, ...]) -> None:
        self.url = ""
        self.role = pool.role
        self.cores = cores
        self.tables: list[tuple[int, ...]] = []
        self.bodies: list[dict[str, Any]] = []
        self.stopped = False
        self._open = 0
        self._runner: web.AppRunner | None = None

    @property
    def capabilities(self) -> Capabilities:
        return capabilities(self.role)

    async def begin(self) -> None:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", self._chat)
        self._runner = web.AppRunner(app, handler_cancellation=True)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def set_draft_lengths(self, table: Sequence[int]) -> None:
        self.tables.append(tuple(table))

    async def stop(self) -> float:
        self.stopped = True
        assert self._runner is not None
        await self._runner.cleanup()
        return 0.0

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.bodies.append(body)
        if len(salt := body["cache_salt"]) > 128 or not NOT_IN_SALTS.isdisjoint(salt):
            return web.json_response({"error": {"message": f"cache_salt {salt}"}}, status=400)
        answer = web.StreamResponse()
        await answer.prepare(request)
        self._open += 1
        try:
            left = body["max_tokens"]
            while left > 0:
                length = self.tables[-1][min(self._open, MAX_NUM_SEQS)] if self.tables else 0
                await asyncio.sleep(BASE_S + PER_TOKEN_S * self._open * (1 + length))
                left -= GAIN if length else 1
                await answer.write(b'data: {"choices":[{"delta":{"content":"x"}}]}\n\n')
            usage = {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": body["max_tokens"]}}
            await answer.write(b"data: %b\n\ndata: [DONE]\n\n" % json.dumps(usage).encode())
        finally:
            self._open -= 1
        return answer


class Fakes:
    """Starts engines and remembers them."""

    def __init__(self) -> None:
        self.engines: list[FakeEngine] = []

    async def start(
        self, pool: PoolSettings, cores: tuple[int, ...], _say: Callable[[str], None], _log: Path
    ) -> FakeEngine:
        engine = FakeEngine(pool, cores)
        await engine.begin()
        self.engines.append(engine)
        return engine


def calibrated(answer: PoolAnswer = PoolAnswer.TWO_POOLS, margin: float = 1.3) -> Calibrated:
    """What calibration would find: K = 4 pays up to four sequences."""
    return Calibrated(
        costs={
            Role.SPECULATIVE: StepCost(0.016, 0.0003, draft_s=0.002, draft_length=4),
            Role.PLAIN: StepCost(0.03, 0.001),
        },
        gains={"mean": {2: 1.5, 4: 2.0}, "code": {4: 2.5}},
        context_tokens=100.0,
        table=TABLE,
        longest=4,
        predicted=(Predicted(0.05, answer, margin, {answer: 1.0}),),
        errors={Role.PLAIN: 0.05},
    )


async def calibrate(
    _method: Method, _longest: int, _speculative: Engine, _plain: Engine, _say: Callable[[str], None]
) -> Calibrated:
    """A calibration that takes no time."""
    return calibrated()
