"""The profiles that need no measurement, and the data sheets that they come from."""

from __future__ import annotations

import pytest

from app.simulation.built_in_costs import PAIRS
from app.simulation.built_in_profiles import BUILT_IN, built_in
from app.simulation.published_acceptance import EAGLE3, NGRAM
from app.simulation.sheets import ACCELERATORS, LLAMA_8B, LLAMA_70B, eagle3_bytes, kv_tokens
from autoscaling.goodput import speed_up
from autoscaling.profiling.prior import ModelSize, analytic_cost
from autoscaling.step_cost import step_s
from autoscaling.types import Role

GPUS = ("h100-8b", "h100-70b", "a100-8b", "a100-70b", "h200-8b", "h200-70b")


def test_every_pair_has_a_profile_for_both_ways_of_drafting() -> None:
    """Six pairs, with EAGLE-3 and with n-gram, and the CPU; each says where its numbers come from."""
    assert {*GPUS, *(f"{name}-ngram" for name in GPUS), "cpu"} == set(BUILT_IN)
    for name, profile in BUILT_IN.items():
        assert name == profile.name
        assert profile.source
        assert all(one.source for one in profile.acceptance.values())
        assert set(Role) == set(profile.costs) == set(profile.kv_tokens)
        assert profile.cost_of(Role.PLAIN).draft_length == 0


def test_a_name_that_is_not_built_in_is_refused_with_those_that_are() -> None:
    """The message lists them."""
    with pytest.raises(ValueError, match="'h300': is not built in: give a file, or one of h100-8b"):
        built_in("h300")


@pytest.mark.parametrize("name", GPUS)
def test_measured_costs_are_close_to_the_data_sheets(name: str) -> None:
    """The sheet's base within 15 %, a token past the hinge within 5 %, a context token within 1 %."""
    pair = PAIRS[name]
    sheet = analytic_cost(ModelSize.from_config(pair.config), pair.accelerator.device, pair.tensor_parallel)

    assert pytest.approx(pair.plain.base_s, rel=0.15) == sheet.base_s
    assert pytest.approx(sheet.per_token_s, rel=0.05) == pair.plain.per_token_s + pair.plain.past_hinge_s
    assert pytest.approx(sheet.per_context_s, rel=0.01) == pair.plain.per_context_s


def test_the_fit_of_the_h100_is_the_published_one() -> None:
    """5.886 + 1.207 ms, 21.01 us per token, .03926 us per context token; K = 3 for 2.135 ms and .84 us."""
    cost = built_in("h100-8b").cost_of(Role.SPECULATIVE)

    # 32 sequences of 512 tokens: 128 tokens are decoded.
    verify = 5.886e-3 + 1.207e-3 + 128 * 21.01e-6 + 32 * 512 * 0.03926e-6
    assert pytest.approx(verify + 2.135e-3 + 128 * 0.84e-6 + 32 * 512 * 0.0024e-6) == step_s(cost, 32, 512)


@pytest.mark.parametrize("model", ["8b", "70b"])
def test_an_h200_is_an_h100_that_reads_faster(model: str) -> None:
    """Few sequences gain up to its bandwidth, many past every hinge take as long."""
    old, new = (built_in(f"{name}-{model}").cost_of(Role.PLAIN) for name in ("h100", "h200"))

    assert 1.25 < step_s(old, 1, 512) / step_s(new, 1, 512) < 4.8 / 3.35
    difference = step_s(old, 8192, 0) - step_s(new, 8192, 0)
    assert pytest.approx(0.0 if model == "70b" else old.base_s - new.base_s, abs=1e-9) == difference


def test_a_draft_head_takes_its_part_of_the_memory() -> None:
    """4.6 % of the tokens of an 8B on one H100, as published; a head of 0.85 GB and one more layer."""
    sheet = ACCELERATORS["h100"]
    plain, drafts = (kv_tokens(LLAMA_8B, sheet, 1, head) for head in (False, True))

    assert pytest.approx(0.85e9, rel=0.01) == eagle3_bytes(LLAMA_8B)
    # (0.9 x 80 GB - 16.06 GB) / 131,072 bytes
    assert 426_784 == plain
    assert pytest.approx(0.046, abs=0.002) == 1 - drafts / plain
    # Four accelerators hold the 70B once.
    assert 448_280 == kv_tokens(LLAMA_70B, sheet, 4)


@pytest.mark.parametrize(
    ("kind", "at_one", "at_256"), [("code", 2.4, 1.4), ("chat", 1.46, 1.13), ("math", 1.17, 1.0)]
)
def test_n_grams_gain_what_was_published(kind: str, at_one: float, at_256: float) -> None:
    """The best K at one sequence and at 256 within 3 %, each class with its own share of drafts."""
    profile, acceptance = built_in("h100-8b-ngram"), NGRAM[kind]
    plain, cost = (profile.cost_of(role) for role in (Role.PLAIN, Role.SPECULATIVE))

    def best(sequences: int) -> float:
        gains = []
        for length in range(1, 8):
            drafted = acceptance.draft_rate * length
            exact = type(cost)(
                **{name: getattr(cost, name) for name in cost.__slots__}
                | {"draft_length": length, "drafted": drafted}
            )
            tokens = acceptance.tokens_per_step(length)
            gains.append(speed_up(exact, plain, sequences, 512, tokens, length))
        return max(gains)

    assert pytest.approx(at_one, rel=0.03) == best(1)
    assert pytest.approx(at_256, rel=0.03) == best(256)


def test_acceptance_is_that_of_each_draft_length() -> None:
    """Chat brings 2.25 tokens at K = 3 with EAGLE-3, code 2.29 at K = 5 with n-grams."""
    assert pytest.approx(2.252) == EAGLE3["chat"].tokens_per_step(3)
    assert pytest.approx(2.289) == NGRAM["code"].tokens_per_step(5)
