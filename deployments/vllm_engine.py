"""The real engine: vLLM's AsyncLLM behind vLLM's own OpenAI app.

With `deployments.vllm_stats` and `deployments.vllm_plugin`, the only importer of vllm.
"""

from __future__ import annotations

import json
import os
import sys
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from autoscaling.types import Capabilities, Role
from deployments import vllm_draft_length
from deployments.config import EngineSettings
from deployments.device import cpu_device
from deployments.engine import (
    ASGIApp,
    DraftLengthError,
    EngineConfigError,
    EngineRecorder,
    EngineStartError,
)
from deployments.fingerprint import model_fingerprint
from deployments.process_tree import ProcessMark, engine_processes, kill, wait_gone
from deployments.speculation_limits import NOT_UNDER_SPECULATION
from deployments.vllm_plugin import PARENT_ENV

SPECULATION_MEND = (
    "mend engine.speculative_config of the speculative pool (method, model, num_speculative_tokens)"
)

LENGTH_TABLE = "num_speculative_tokens_per_batch_size"


def prepare_environment(cores: tuple[int, ...]) -> None:
    """Set what vLLM reads at import; call before the first import of vllm in this process."""
    mark = ProcessMark.of(os.getpid())
    os.environ.update(
        {
            PARENT_ENV: str(mark),
            # vLLM's logging set-up would close Serve's log handler: docs/adr/0009.
            "VLLM_CONFIGURE_LOGGING": "0",
            "VLLM_NO_USAGE_STATS": "1",
            "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
        }
    )
    if cores:
        os.environ["VLLM_CPU_OMP_THREADS_BIND"] = ",".join(map(str, cores))


class VLLMEngine:
    """One AsyncLLM with its EngineCore and workers; implements `deployments.engine.Engine`."""

    def __init__(
        self, settings: EngineSettings, role: Role, model: str, cores: tuple[int, ...], oversubscribed: bool
    ) -> None:
        self._settings = settings
        self._role = role
        self._model = model
        self._cores = cores
        self._oversubscribed = oversubscribed
        self._engine: Any = None
        self._app: ASGIApp | None = None
        self._capabilities: Capabilities | None = None
        self._recorder = EngineRecorder()

    @property
    def app(self) -> ASGIApp:
        """VLLM's FastAPI app."""
        if self._app is None:
            raise RuntimeError("start the engine first")
        return self._app

    @property
    def recorder(self) -> EngineRecorder:
        """Counters written by vLLM's stat logger."""
        return self._recorder

    @property
    def capabilities(self) -> Capabilities:
        """Known once `start` has returned."""
        if self._capabilities is None:
            raise RuntimeError("start the engine first")
        return self._capabilities

    async def start(self) -> None:
        """Build the configuration, start EngineCore, mount the app."""
        prepare_environment(self._cores)
        args, engine_args = self._parse()
        try:
            await self._bring_up(args, engine_args)
        except Exception as error:
            await self.stop()
            if isinstance(error, EngineConfigError):
                raise
            raise EngineStartError(
                f"vLLM did not start: {_first_line(error)} (the engine's own log, with the cause, "
                "is in the replica's worker log)"
            ) from error

    def _parse(self) -> tuple[Any, Any]:
        from vllm.engine.arg_utils import AsyncEngineArgs  # noqa: PLC0415  # heavy: only in a replica
        from vllm.entrypoints.launchers.cli_args import make_arg_parser  # noqa: PLC0415
        from vllm.utils.argparse_utils import FlexibleArgumentParser  # noqa: PLC0415

        try:
            args = make_arg_parser(FlexibleArgumentParser()).parse_args(self._arguments())
        except SystemExit as error:
            raise EngineConfigError(
                f"vLLM does not accept engine.extra_args {list(self._settings.extra_args)}: mend them"
            ) from error
        return args, AsyncEngineArgs.from_cli_args(args)

    def _arguments(self) -> list[str]:
        s = self._settings
        arguments = [
            *("--model", self._model),
            *("--served-model-name", *s.served_names),
            *("--dtype", s.dtype),
            *("--max-model-len", str(s.max_model_len)),
            *("--max-num-seqs", str(s.max_num_seqs)),
            *("--kv-cache-memory-bytes", str(s.kv_cache_memory_bytes)),
            *("--tensor-parallel-size", str(s.tensor_parallel_size)),
            *("--scheduling-policy", "priority"),  # the tier sets X-Vllm-Priority
        ]
        if s.enforce_eager:
            arguments.append("--enforce-eager")
        if s.speculative_config is not None:
            arguments += ["--speculative-config", json.dumps(s.speculative_config)]
            arguments += ["--per-request-spec-decode-metrics", "summary"]
        return [*arguments, *s.extra_args]

    async def _bring_up(self, args: Any, engine_args: Any) -> None:
        from vllm import __version__  # noqa: PLC0415
        from vllm.entrypoints.launchers.api_server.app_state import init_app_state  # noqa: PLC0415
        from vllm.entrypoints.launchers.app import build_app  # noqa: PLC0415
        from vllm.usage.usage_lib import UsageContext  # noqa: PLC0415
        from vllm.v1.engine.async_llm import AsyncLLM  # noqa: PLC0415

        from deployments.vllm_stats import stat_logger_factory  # noqa: PLC0415

        try:
            config = engine_args.create_engine_config(usage_context=UsageContext.OPENAI_API_SERVER)
        except Exception as error:
            raise EngineConfigError(self._refusal(error)) from error
        self._engine = AsyncLLM.from_vllm_config(
            config,
            usage_context=UsageContext.OPENAI_API_SERVER,
            stat_loggers=[stat_logger_factory(self._recorder)],
        )
        tasks = await self._engine.get_supported_tasks()
        app = build_app(args, tasks, self._engine.model_config)
        await init_app_state(self._engine, app.state, args, tasks)
        app.state.server = types.SimpleNamespace()  # vLLM's error handler sets should_exit on it
        self._app = app
        table = await self._draft_lengths()
        self._capabilities = self._describe(config, __version__, adjustable=bool(table))

    async def _draft_lengths(self) -> list[int]:
        """The table of draft lengths in force; empty where K is fixed or EngineCore does not answer."""
        if not (self._settings.speculative_config or {}).get(LENGTH_TABLE):
            return []
        try:
            return list(await self._engine.engine_core.call_utility_async(vllm_draft_length.GET))
        except Exception as error:  # vLLM wraps what EngineCore says
            print(f"the draft length is not adjustable: {_first_line(error)}", file=sys.stderr)  # noqa: T201
            return []

    async def set_draft_lengths(self, table: Sequence[int]) -> None:
        """Draft `table[b]` tokens while b sequences run, from the next step on; index 0 is not used.

        Raises DraftLengthError when K is fixed, or for a table that this engine cannot take.
        """
        try:
            await self._engine.engine_core.call_utility_async(vllm_draft_length.SET, list(table))
        except Exception as error:
            raise DraftLengthError(_first_line(error)) from error

    def _refusal(self, error: Exception) -> str:
        reason = _first_line(error)
        if self._settings.speculative_config is not None and _is_about_speculation(str(error)):
            return f"vLLM refuses the draft: {reason} ({SPECULATION_MEND})"
        return f"vLLM refuses the engine settings: {reason} (mend the engine section of pool {self._role})"

    def _describe(self, config: Any, version: str, *, adjustable: bool) -> Capabilities:
        s = self._settings
        speculation = s.speculative_config
        model = config.model_config
        return Capabilities(
            role=self._role,
            engine="vllm",
            engine_version=version,
            method=None if speculation is None else str(config.speculative_config.method),
            runner="v2" if getattr(config, "use_v2_model_runner", False) else "v1",
            draft_length_max=0
            if speculation is None
            else int(config.speculative_config.num_speculative_tokens),
            draft_length_adjustable=adjustable,
            max_model_len=int(model.max_model_len),
            max_num_seqs=s.max_num_seqs,
            refuses=() if speculation is None else NOT_UNDER_SPECULATION,
            per_request_metrics=speculation is not None,
            models=s.served_names,
            fingerprint=model_fingerprint(_model_folder(self._model), str(model.dtype), model.quantization),
            cores=self._cores,
            oversubscribed=self._oversubscribed,
            device=self._device(),
            kv_cache_tokens=getattr(config.cache_config, "kv_cache_size_tokens", None),
            tensor_parallel=s.tensor_parallel_size,
            draft=None if speculation is None else _draft(speculation.get("model"), str(model.dtype)),
        )

    def _device(self) -> str:
        from vllm.platforms import current_platform  # noqa: PLC0415

        if current_platform.is_cpu():
            return cpu_device(len(self._cores))
        return str(current_platform.get_device_name())

    def unfinished(self) -> int:
        """Requests inside vLLM's output processor: queued, prefilling or decoding."""
        if self._engine is None:
            return 0
        return int(self._engine.output_processor.get_num_unfinished_requests())

    def failure(self) -> str | None:
        """Set once EngineCore or a worker has died."""
        if self._engine is not None and self._engine.errored:
            return "the engine process died"
        return None

    def processes(self) -> tuple[int, ...]:
        """EngineCore, its workers and their helpers, by pid."""
        return tuple(mark.pid for mark in engine_processes(os.getpid()))

    async def stop(self) -> None:
        """End the engine's processes, then close vLLM's front end.

        Nothing is in flight by now, and vLLM's own order of shutting down takes 4-5 s.
        """
        below = engine_processes(os.getpid())
        kill(below)
        wait_gone(below, 5.0)
        if self._engine is not None:
            engine, self._engine = self._engine, None
            try:
                engine.shutdown()
            except Exception as error:
                print(f"vLLM shutdown: {_first_line(error)}", file=sys.stderr)  # noqa: T201  # logging may be gone


def _model_folder(model: str) -> Path:
    if Path(model).is_dir():
        return Path(model)
    from huggingface_hub import snapshot_download  # noqa: PLC0415

    return Path(snapshot_download(model, local_files_only=True))


def _draft(model: Any, dtype: str) -> str | None:
    """The draft model: by content where it is a folder, else its name; None for a method without one."""
    if not isinstance(model, str):
        return None
    return model_fingerprint(Path(model), dtype, None) if Path(model).is_dir() else model


def _is_about_speculation(text: str) -> bool:
    lowered = text.lower()
    return any(word in lowered for word in ("speculat", "draft", "ngram", "prompt_lookup", "eagle", "medusa"))


def _first_line(error: Exception) -> str:
    """The telling line of an exception: pydantic puts it behind a header line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    if "validation error" in lines[0] and len(lines) > 1:
        return lines[1].removeprefix("Value error, ").split(" [type=")[0]
    return lines[0]
