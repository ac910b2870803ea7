"""What a step costs by the data sheets alone."""

from __future__ import annotations

from typing import Any

import pytest

from autoscaling.profiling.prior import (
    A100,
    DEVICES,
    H100,
    H200,
    ModelSize,
    PriorError,
    analytic_cost,
    with_draft,
    with_ngram,
)
from autoscaling.step_cost import step_s

# config.json of Llama-3.1-8B, as published.
LLAMA_8B: dict[str, Any] = {
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "vocab_size": 128256,
}


def test_the_prior_of_a_published_model_is_close_to_its_fit() -> None:
    """An H100 with Llama-3.1-8B was fitted at 5.886 ms, 21.01 us per token, 0.03926 us per context."""
    cost = analytic_cost(ModelSize.from_config(LLAMA_8B), H100, host_s=0.0)

    assert pytest.approx(5.886e-3, rel=0.15) == cost.base_s
    assert pytest.approx(21.01e-6, rel=0.05) == cost.per_token_s
    assert pytest.approx(0.03926e-6, rel=0.05) == cost.per_context_s


def test_the_size_of_a_model_is_read_from_its_configuration() -> None:
    """8.03 billion weights of two bytes; 2 x 32 layers x 8 heads x 128 x 2 bytes of keys and values."""
    size = ModelSize.from_config(LLAMA_8B)

    assert 8_030_261_248 == size.active_parameters
    assert 16_060_522_496 == size.weight_bytes
    assert 131_072 == size.kv_bytes_per_token


def test_what_a_configuration_leaves_out_is_as_the_library_takes_it() -> None:
    """Every head has its own keys, and is hidden size over heads wide; a tied table counts once."""
    few = {key: value for key, value in LLAMA_8B.items() if key != "num_key_value_heads"}

    assert 4 * 131_072 == ModelSize.from_config(few).kv_bytes_per_token
    assert 2 * 131_072 == ModelSize.from_config(LLAMA_8B | {"head_dim": 256}).kv_bytes_per_token
    tied = ModelSize.from_config(LLAMA_8B | {"tie_word_embeddings": True})
    assert 8_030_261_248 - 128_256 * 4096 == tied.active_parameters


@pytest.mark.parametrize(
    ("quantised", "expected"),
    [
        ({"quant_method": "fp8"}, 1.0),
        ({"quant_method": "awq", "bits": 4}, 0.5),
        ({"quant_method": "gptq", "bits": 8}, 1.0),
        ({"quant_method": "other", "bits": 3}, 0.375),
    ],
)
def test_quantised_weights_take_fewer_bytes(quantised: dict[str, Any], expected: float) -> None:
    """Weights alone: keys and values keep their type."""
    size = ModelSize.from_config(LLAMA_8B | {"quantization_config": quantised})

    assert expected * 8_030_261_248 == size.weight_bytes
    assert 8_030_261_248 == size.active_parameters
    assert 131_072 == size.kv_bytes_per_token


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"hidden_size": None}, "hidden_size: None: must be a whole number"),
        ({"vocab_size": "many"}, "vocab_size: 'many'"),
        ({"num_hidden_layers": 0}, "num_hidden_layers: 0"),
        ({"num_local_experts": 8}, "num_local_experts: 8: only dense models"),
        ({"torch_dtype": "int3"}, "torch_dtype: 'int3': must be one of float32"),
        ({"quantization_config": {"quant_method": "other"}}, "'other' without bits"),
    ],
)
def test_a_configuration_that_gives_no_prior_is_refused_in_words(changed: dict[str, Any], words: str) -> None:
    """The message names the field and what it holds."""
    with pytest.raises(PriorError, match=words):
        ModelSize.from_config(LLAMA_8B | changed)


def test_two_accelerators_share_the_work() -> None:
    """Each reads and computes half; the host's work is not shared."""
    size = ModelSize.from_config(LLAMA_8B)
    one, two = (analytic_cost(size, A100, count, host_s=0.0) for count in (1, 2))

    assert pytest.approx(one.base_s / 2) == two.base_s
    assert pytest.approx(one.per_token_s / 2) == two.per_token_s
    assert pytest.approx(one.per_context_s / 2) == two.per_context_s
    assert pytest.approx(two.base_s + 0.003) == analytic_cost(size, A100, 2, 0.002, 0.001).base_s


def test_a_device_with_more_bandwidth_reads_faster() -> None:
    """The H200 computes like the H100 and reads 4.8 TB/s for 3.35."""
    size = ModelSize.from_config(LLAMA_8B)
    old, new = (analytic_cost(size, device, host_s=0.0) for device in (H100, H200))

    assert pytest.approx(old.base_s * 3.35 / 4.8) == new.base_s
    assert old.per_token_s == new.per_token_s


def test_each_device_names_its_source() -> None:
    """The figures can be looked up."""
    assert ["A100", "H100", "H200"] == sorted(DEVICES)
    assert all("data sheet" in device.source for device in DEVICES.values())


def test_a_draft_adds_its_passes_one_after_the_other() -> None:
    """A draft of a tenth: reading it 4 times, computing each token, and 4 times its context."""
    plain = analytic_cost(ModelSize.from_config(LLAMA_8B), H100)
    draft = ModelSize(weight_bytes=1.6e9, active_parameters=8e8, kv_bytes_per_token=10_000)
    cost = with_draft(plain, draft, H100, 4)

    # 1.6 GB at 80 % of 3.35 TB/s are 0.597 ms a pass; 2 x 0.8e9 over 75 % of 989.5 TFLOPS 2.156 us a token;
    # 10 kB at 3.35 TB/s 2.985 ns a pass and token of context.
    added = 4 * 0.59701e-3 + 2.156e-6 * 8 * 5 + 4 * 2.98507e-9 * 8 * 1000
    assert pytest.approx(step_s(cost, 8, 1000), rel=1e-4) == step_s(plain, 8 * 5, 200) + added
    assert step_s(plain, 8, 1000) == step_s(cost, 8, 1000, draft_length=0)
    with pytest.raises(ValueError, match="1 or more"):
        with_draft(plain, draft, H100, 0)


def test_an_ngram_costs_a_share_of_what_it_verifies() -> None:
    """0.59 % of the step, whatever the batch and context."""
    plain = analytic_cost(ModelSize.from_config(LLAMA_8B), H100)
    cost = with_ngram(plain, 4)

    for batch, context in ((1, 100), (64, 4000)):
        verified = step_s(plain, batch * 5, context / 5)
        assert pytest.approx(1.0059 * verified) == step_s(cost, batch, context)
        assert step_s(plain, batch, context) == step_s(cost, batch, context, draft_length=0)
    with pytest.raises(ValueError, match="1 or more"):
        with_ngram(plain, 0)
