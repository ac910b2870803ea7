"""The simulated engine as a replica sees it: `deployments.engine.Engine` over a child process."""

from __future__ import annotations

import hashlib
import json
from importlib.metadata import version

from autoscaling.types import Capabilities, Role
from deployments.config import EngineSettings
from deployments.engine import ASGIApp, EngineConfigError, EngineRecorder
from deployments.simulated.app import build_app
from deployments.simulated.child import Child
from deployments.simulated.frames import Configure
from deployments.simulated.tokens import TOKENIZER
from deployments.speculation_limits import NOT_UNDER_SPECULATION

KV_BYTES_PER_TOKEN = 30 * 2 * 3 * 64 * 2  # SmolLM2-135M: layers, K and V, heads, head size, bf16


class SimulatedEngine:
    """One simulated model; implements `deployments.engine.Engine`."""

    def __init__(self, settings: EngineSettings, role: Role) -> None:
        self._settings = settings
        self._capabilities = _capabilities(settings, role)
        self._recorder = EngineRecorder()
        self._child = Child(self._recorder)
        self._app = build_app(self._child, self._capabilities)

    @property
    def app(self) -> ASGIApp:
        """The OpenAI app: /v1/chat/completions, /v1/completions, /v1/models, /health."""
        return self._app

    @property
    def recorder(self) -> EngineRecorder:
        """Counters and gauges, as the child last reported them."""
        return self._recorder

    @property
    def capabilities(self) -> Capabilities:
        """What this engine can serve."""
        return self._capabilities

    async def start(self) -> None:
        """Start the child process; raises EngineConfigError or EngineStartError."""
        await self._child.start(_configure(self._settings, self._capabilities.draft_length_max))

    def unfinished(self) -> int:
        """Sequences that the child has accepted and not finished; a request with n > 1 counts n."""
        return self._child.unfinished

    def failure(self) -> str | None:
        """Why the child is dead, or None while it lives, hung or not."""
        return self._child.failure

    def processes(self) -> tuple[int, ...]:
        """Name the child while it runs."""
        pid = self._child.pid
        return () if pid is None else (pid,)

    async def stop(self) -> None:
        """End the child process."""
        await self._child.stop()


def _capabilities(settings: EngineSettings, role: Role) -> Capabilities:
    speculation = settings.speculative_config
    speculative = speculation is not None
    model = json.dumps([settings.model, TOKENIZER])
    length = (speculation or {}).get("num_speculative_tokens", 0)
    return Capabilities(
        role=role,
        engine="simulated",
        engine_version=version("twinpool"),
        method=str(speculation.get("method")) if speculation is not None else None,
        runner=None,
        draft_length_max=length,
        draft_length_adjustable=False,
        max_model_len=settings.max_model_len,
        max_num_seqs=settings.max_num_seqs,
        refuses=NOT_UNDER_SPECULATION if speculative else (),
        per_request_metrics=speculative,
        models=settings.served_names,
        fingerprint=hashlib.sha256(model.encode()).hexdigest(),
        device="simulated",
        kv_cache_tokens=settings.kv_cache_memory_bytes // KV_BYTES_PER_TOKEN,
        tensor_parallel=settings.tensor_parallel_size,
    )


def _configure(settings: EngineSettings, draft_length: int) -> Configure:
    capacity = settings.kv_cache_memory_bytes // KV_BYTES_PER_TOKEN
    if capacity < settings.max_model_len:
        raise EngineConfigError(
            f"engine.kv_cache_memory_bytes {settings.kv_cache_memory_bytes} holds {capacity} tokens, less "
            f"than engine.max_model_len {settings.max_model_len}: raise it to "
            f"{settings.max_model_len * KV_BYTES_PER_TOKEN} or lower engine.max_model_len"
        )
    if settings.speculative_config is not None and (not isinstance(draft_length, int) or draft_length < 1):
        raise EngineConfigError(
            "engine.speculative_config.num_speculative_tokens must be a whole number of at least 1, "
            f"not {draft_length!r}"
        )
    simulation = settings.simulation
    return Configure(
        start_s=simulation.start_s,
        step_base_s=simulation.step_base_s,
        step_per_token_s=simulation.step_per_token_s,
        step_per_context_s=simulation.step_per_context_s,
        acceptance=simulation.acceptance,
        seed=simulation.seed,
        max_prefill_tokens=simulation.max_prefill_tokens,
        max_num_seqs=settings.max_num_seqs,
        max_model_len=settings.max_model_len,
        kv_capacity=capacity,
        draft_length=draft_length,
    )
