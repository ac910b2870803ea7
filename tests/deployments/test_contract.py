"""The internals of Ray Serve and vLLM that we touch are still what we think; run on version bumps."""

from __future__ import annotations

import inspect
import logging
import logging.config
import logging.handlers
from importlib.metadata import entry_points
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from deployments import serve_internals

pytestmark = pytest.mark.contract


def test_serve_has_a_declarative_deploy() -> None:
    """`deploy` and `details` rest on these private names."""
    from ray.serve._private.client import ServeControllerClient
    from ray.serve.context import _get_global_client
    from ray.serve.schema import ServeDeploySchema

    assert callable(_get_global_client)
    assert "config" in inspect.signature(ServeControllerClient.deploy_apps).parameters
    assert hasattr(ServeControllerClient, "get_serve_details")
    assert "applications" in ServeDeploySchema.model_fields


def test_a_handle_can_call_by_value() -> None:
    """`by_value` rests on this private option of a handle."""
    from ray.serve._private.handle_options import DynamicHandleOptions
    from ray.serve.handle import DeploymentHandle

    assert "_by_reference" in inspect.signature(DeploymentHandle.options).parameters
    assert DynamicHandleOptions()._by_reference is True
    assert DynamicHandleOptions().copy_and_update(_by_reference=False)._by_reference is False


def test_a_dict_config_breaks_serves_log_handler_and_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trap of ADR 9: after a dictConfig the handler is broken, and `log_handler_fault` says so."""
    node = SimpleNamespace(get_logs_dir_path=lambda: str(tmp_path))
    monkeypatch.setattr("ray._private.worker._global_node", node)
    serve_logger = logging.getLogger("ray.serve")
    before = list(serve_logger.handlers)
    target = logging.FileHandler(tmp_path / "serve.log")
    memory = logging.handlers.MemoryHandler(1, target=target)
    serve_logger.addHandler(memory)
    try:
        assert serve_internals.log_handler_fault() is None
        logging.config.dictConfig({"version": 1, "disable_existing_loggers": False})
        assert serve_internals.log_handler_fault() is not None
    finally:
        serve_logger.handlers[:] = before
        target.close()


def test_our_vllm_plugin_is_found() -> None:
    """vLLM loads it by entry point in each of its processes."""
    found = {point.name: point.value for point in entry_points(group="vllm.general_plugins")}
    assert found["twinpool"] == "deployments.vllm_plugin:register"


def test_vllm_has_the_names_we_build_on() -> None:
    """The app, its state, the argument parser, the engine and its counters."""
    pytest.importorskip("vllm")
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.entrypoints.launchers.api_server.app_state import init_app_state
    from vllm.entrypoints.launchers.app import build_app
    from vllm.entrypoints.launchers.cli_args import make_arg_parser
    from vllm.v1.engine.async_llm import AsyncLLM
    from vllm.v1.engine.output_processor import OutputProcessor
    from vllm.v1.metrics.stats import FinishedRequestStats

    assert {"args", "supported_tasks", "model_config"} <= set(inspect.signature(build_app).parameters)
    assert {"engine_client", "state", "args"} <= set(inspect.signature(init_app_state).parameters)
    assert callable(make_arg_parser)
    assert hasattr(AsyncEngineArgs, "create_engine_config")
    assert "stat_loggers" in inspect.signature(AsyncLLM.from_vllm_config).parameters
    assert hasattr(AsyncLLM, "errored")
    assert hasattr(OutputProcessor, "get_num_unfinished_requests")
    assert {"request_id", "num_prompt_tokens", "num_generation_tokens"} <= set(
        FinishedRequestStats.__dataclass_fields__
    )


def test_vllm_still_refuses_what_we_say_it_refuses() -> None:
    """The capability record's list is vLLM's own check under speculation."""
    pytest.importorskip("vllm")
    from vllm.exceptions import VLLMValidationError
    from vllm.sampling_params import SamplingParams

    from deployments.speculation_limits import REFUSED

    for parameters in ({"min_p": 0.1}, {"logit_bias": {5: 1.0}}):
        assert set(parameters) <= set(REFUSED)
        with pytest.raises(VLLMValidationError):
            SamplingParams(**parameters)._validate_spec_decode(SimpleNamespace())


def test_a_step_without_drafts_takes_top_k() -> None:
    """vLLM's own function fails on it, and the engine ends; ours does not, and changes nothing else."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("vllm")
    from vllm.v1.sample import rejection_sampler
    from vllm.v1.sample.ops import topk_topp_sampler

    from deployments.vllm_guards import guard_top_k_under_speculation

    empty, none = torch.empty((0, 8)), torch.empty((0,), dtype=torch.int32)
    original = topk_topp_sampler.apply_top_k_only
    if not getattr(original, "guarded", False):
        with pytest.raises(RuntimeError):  # when this passes, the guard can go
            original(empty, none)
    for _ in range(2):
        guard_top_k_under_speculation()
    assert 0 == topk_topp_sampler.apply_top_k_top_p(empty, none, None).shape[0]
    logits = torch.tensor([[1.0, 3.0, 2.0]])
    kept = topk_topp_sampler.apply_top_k_only(logits.clone(), torch.tensor([2], dtype=torch.int32))
    assert [[float("-inf"), 3.0, 2.0]] == kept.tolist()
    spread = rejection_sampler.expand_batch_to_tokens
    cumulated = torch.tensor([2, 5, 5], dtype=torch.int32)
    top_k = torch.tensor([7, 9, 11], dtype=torch.int32)
    assert [7, 7, 9, 9, 9] == spread(top_k, cumulated, 5).tolist()
    temperature = torch.tensor([0.5, 0.0, 0.7])
    assert [0.5, 0.5, 1.0, 1.0, 1.0] == spread(
        temperature, cumulated, 5, replace_from=0, replace_to=1
    ).tolist()


def test_prescribed_acceptance_on_the_cpu() -> None:
    """vLLM refuses it there; ours accepts by the rates, and gives everything else to vLLM's own."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("vllm")
    from vllm.utils import cpu_triton_utils

    from deployments import vllm_synthetic_acceptance

    def tokens(kernel: Any, *, synthetic: bool) -> list[list[int]]:
        """Three requests with 2, 0 and 3 drafts, the last of them padded."""
        into = torch.full((3, 4), -1, dtype=torch.int32)
        kernel(
            into,
            torch.tensor([2, 2, 5], dtype=torch.int32),
            torch.tensor([11, 12, 31, 32, -1], dtype=torch.int32),
            torch.tensor([11, 13, 31, 32, 39]),
            torch.tensor([[91], [92], [93]]),
            None,
            3,
            torch.tensor([0.2, 0.4, 0.1, 0.1, 0.1], dtype=torch.float64),
            torch.tensor([0.5, 0.5, 0.5]) if synthetic else None,
            SYNTHETIC_MODE=synthetic,
        )
        return into.tolist()

    original = cpu_triton_utils._rejection_greedy_sample_kernel_impl
    if not getattr(original, "synthetic", False):
        with pytest.raises(AssertionError):  # when this passes, ours can go
            tokens(original, synthetic=True)
    for _ in range(2):
        vllm_synthetic_acceptance.register()
    kernel = cpu_triton_utils._rejection_greedy_sample_kernel_impl
    assert [[11, 12, 91, -1], [92, -1, -1, -1], [31, 32, 39, -1]] == tokens(kernel, synthetic=True)
    assert [[11, 13, -1, -1], [92, -1, -1, -1], [31, 32, 39, -1]] == tokens(kernel, synthetic=False)
