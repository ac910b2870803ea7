"""Data sheets: memory of accelerators, published models, draft heads, and the tokens that fit beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from autoscaling.profiling.prior import A100, H100, H200, Device, ModelSize

# vLLM's own is 0.92 of the memory; what is left out here is for activations and graphs.
MEMORY_SHARE = 0.9
_BYTES = 2  # of a weight and of a value in the KV cache: bfloat16

_LLAMA: dict[str, Any] = {"num_key_value_heads": 8, "vocab_size": 128_256, "torch_dtype": "bfloat16"}
# config.json of meta-llama/Llama-3.1-8B-Instruct and -70B-Instruct, as published.
LLAMA_8B: Mapping[str, Any] = _LLAMA | {
    "hidden_size": 4096,
    "intermediate_size": 14_336,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
}
LLAMA_70B: Mapping[str, Any] = _LLAMA | {
    "hidden_size": 8192,
    "intermediate_size": 28_672,
    "num_attention_heads": 64,
    "num_hidden_layers": 80,
}
DRAFT_VOCABULARY = 32_000  # of the published EAGLE-3 heads for Llama 3.1 and 3.3 (draft_vocab_size)


@dataclass(frozen=True, slots=True)
class Accelerator:
    """One accelerator, by its data sheet."""

    device: Device
    memory_bytes: float
    source: str


ACCELERATORS: Mapping[str, Accelerator] = {
    "h100": Accelerator(H100, 80e9, "NVIDIA H100 data sheet, SXM: 80 GB"),
    "a100": Accelerator(A100, 80e9, "NVIDIA A100 80GB data sheet, SXM: 80 GB"),
    "h200": Accelerator(H200, 141e9, "NVIDIA H200 data sheet, SXM: 141 GB"),
}


def eagle3_bytes(config: Mapping[str, Any]) -> float:
    """Bytes of an EAGLE-3 head for a model of this config.json.

    One decoder layer whose attention reads the token and the features side by side, a projection of three
    layers' features, and its own table of output tokens; the table of input tokens is the model's.
    """
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    heads = config["num_key_value_heads"] * hidden // config["num_attention_heads"]
    attention = 2 * hidden * hidden + 2 * 2 * hidden * heads + hidden * hidden
    weights = attention + 3 * hidden * inner + 3 * hidden * hidden + DRAFT_VOCABULARY * hidden
    return float(weights * _BYTES)


def kv_tokens(
    config: Mapping[str, Any], accelerator: Accelerator, tensor_parallel: int, draft_head: bool = False
) -> int:
    """Tokens of context that fit beside the weights on `tensor_parallel` accelerators.

    A draft head takes its weights, and keys and values of one more layer.
    """
    size, layers = ModelSize.from_config(config), config["num_hidden_layers"]
    free = MEMORY_SHARE * accelerator.memory_bytes * tensor_parallel - size.weight_bytes
    per_token = size.kv_bytes_per_token
    if draft_head:
        free -= eagle3_bytes(config)
        per_token *= (layers + 1) / layers
    return int(free / per_token)
