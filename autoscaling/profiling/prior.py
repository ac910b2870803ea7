"""What a step costs by the sizes of model and accelerator alone: the prior of a fit; pure, no numpy.

A step reads all weights once, computes two operations per weight and token, and reads the keys and values of
the context once.  No engine reaches the figures of the data sheet; the shares are those of a published fit
(H100, Llama-3.1-8B, vLLM).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from autoscaling.routing_rules import StepCost

BANDWIDTH_SHARE = 0.8  # of the bandwidth that reading weights reaches
FLOPS_SHARE = 0.75  # of the operations per second that matrix products reach
HOST_S = 1.207e-3  # scheduling and sampling of each step, by the same fit
NGRAM_SHARE = 0.0059  # of what it verifies that drafting by n-gram costs, by the same fit
BYTES_OF_DTYPE = {"float32": 4.0, "bfloat16": 2.0, "float16": 2.0}
BITS_OF_METHOD = {"fp8": 8, "awq": 4, "gptq": 4}  # unless the file says how many


class PriorError(ValueError):
    """A configuration that no prior can be made of; the message names the field and what to do."""


@dataclass(frozen=True, slots=True)
class Device:
    """One accelerator, by its data sheet."""

    name: str
    memory_bandwidth: float  # bytes per second
    flops: float  # bf16 operations per second, dense
    source: str


# NVIDIA states most figures of the H100 and H200 with sparsity: the dense ones are half of those.
H100 = Device("H100", 3.35e12, 989.5e12, "NVIDIA H100 data sheet, SXM: 3.35 TB/s, 1,979 TFLOPS bf16 sparse")
A100 = Device("A100", 2.039e12, 312e12, "NVIDIA A100 80GB data sheet, SXM: 2,039 GB/s, 312 TFLOPS bf16")
H200 = Device("H200", 4.8e12, 989.5e12, "NVIDIA H200 data sheet, SXM: 4.8 TB/s, 1,979 TFLOPS bf16 sparse")
DEVICES: Mapping[str, Device] = {device.name: device for device in (H100, A100, H200)}


@dataclass(frozen=True, slots=True)
class ModelSize:
    """What a step has to read and compute of a dense model."""

    weight_bytes: float  # that one step reads, embeddings included
    active_parameters: float  # weights that each token is computed with
    kv_bytes_per_token: float  # keys and values of all layers

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> ModelSize:
        """By a Hugging Face config.json, read into a mapping, of a Llama-like decoder.

        Biases are left out.  Raises PriorError for a field that lacks or cannot be, and for a mixture of
        experts: more tokens read more of its weights, which this prior does not know.
        """
        for name in ("num_local_experts", "num_experts", "n_routed_experts"):
            if config.get(name):
                raise PriorError(
                    f"config.json: {name}: {config[name]}: only dense models have a prior: measure without"
                )
        hidden, layers = _count(config, "hidden_size"), _count(config, "num_hidden_layers")
        heads = _count(config, "num_attention_heads")
        kv_heads = _count(config, "num_key_value_heads", heads)
        head = _count(config, "head_dim", hidden // heads)
        inner, vocabulary = _count(config, "intermediate_size"), _count(config, "vocab_size")
        attention = 2 * hidden * heads * head + 2 * hidden * kv_heads * head
        layer = attention + 3 * hidden * inner + 2 * hidden
        tables = vocabulary * hidden * (1 if config.get("tie_word_embeddings") else 2)
        bytes_per_value = _bytes_per_value(config)
        weights = float(layers * layer + tables + hidden)
        return cls(
            weight_bytes=weights * _bytes_per_weight(config, bytes_per_value),
            active_parameters=weights,
            kv_bytes_per_token=2 * layers * kv_heads * head * bytes_per_value,
        )


def analytic_cost(
    model: ModelSize,
    device: Device,
    tensor_parallel: int = 1,
    communication_s: float = 0.0,
    host_s: float = HOST_S,
) -> StepCost:
    """The cost of a plain engine, in seconds, on `tensor_parallel` accelerators.

    `communication_s` is what they take to exchange their parts in each step, which depends on the links
    between them; `host_s` is what scheduling and sampling add to each step.
    """
    return StepCost(
        base_s=_read_s(model, device, tensor_parallel) + communication_s + host_s,
        per_token_s=_compute_s(model, device, tensor_parallel),
        per_context_s=_context_s(model, device, tensor_parallel),
    )


def with_draft(
    cost: StepCost, draft: ModelSize, device: Device, draft_length: int, tensor_parallel: int = 1
) -> StepCost:
    """The cost of an engine of `cost` beside which a draft model proposes K tokens, one after the other.

    Each token in turn reads all weights of the draft and the whole context.  Raises ValueError for
    a K below 1.
    """
    _check_drafts(draft_length)
    return replace(
        cost,
        draft_length=draft_length,
        draft_s=0.0,
        per_draft_s=_read_s(draft, device, tensor_parallel),
        draft_per_token_s=_compute_s(draft, device, tensor_parallel),
        draft_per_context_s=draft_length * _context_s(draft, device, tensor_parallel),
    )


def with_ngram(cost: StepCost, draft_length: int) -> StepCost:
    """The cost of an engine of `cost` that looks up to K tokens up in the prompt.

    That takes a fixed share of the step that verifies them.  Raises ValueError for a K below 1.
    """
    _check_drafts(draft_length)
    return replace(
        cost,
        draft_length=draft_length,
        draft_s=NGRAM_SHARE * cost.base_s,
        per_draft_s=0.0,
        draft_per_token_s=NGRAM_SHARE * cost.per_token_s,
        draft_per_context_s=NGRAM_SHARE * cost.per_context_s,
    )


def _check_drafts(draft_length: int) -> None:
    if draft_length < 1:
        raise ValueError(f"draft_length: {draft_length}: nothing is drafted: give 1 or more")


def _read_s(model: ModelSize, device: Device, tensor_parallel: int) -> float:
    return model.weight_bytes / (BANDWIDTH_SHARE * device.memory_bandwidth * tensor_parallel)


def _compute_s(model: ModelSize, device: Device, tensor_parallel: int) -> float:
    return 2 * model.active_parameters / (FLOPS_SHARE * device.flops * tensor_parallel)


def _context_s(model: ModelSize, device: Device, tensor_parallel: int) -> float:
    return model.kv_bytes_per_token / (device.memory_bandwidth * tensor_parallel)


def _count(config: Mapping[str, Any], name: str, otherwise: int | None = None) -> int:
    found = config.get(name)
    if found is None and otherwise is not None:
        return otherwise
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        raise PriorError(f"config.json: {name}: {found!r}: must be a whole number of at least 1")
    return found


def _bytes_per_value(config: Mapping[str, Any]) -> float:
    name = config.get("torch_dtype") or config.get("dtype") or "bfloat16"
    if name not in BYTES_OF_DTYPE:
        known = ", ".join(BYTES_OF_DTYPE)
        raise PriorError(f"config.json: torch_dtype: {name!r}: must be one of {known}")
    return BYTES_OF_DTYPE[name]


def _bytes_per_weight(config: Mapping[str, Any], bytes_per_value: float) -> float:
    quantised = config.get("quantization_config")
    if not quantised:
        return bytes_per_value
    bits = quantised.get("bits") or BITS_OF_METHOD.get(str(quantised.get("quant_method")))
    if not isinstance(bits, int):
        raise PriorError(
            f"config.json: quantization_config: {quantised.get('quant_method')!r} without bits: add bits"
        )
    return bits / 8
