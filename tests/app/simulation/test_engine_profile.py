"""What a simulated engine is like by a measured profile."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app.simulation.engine_profile import Engines, from_profile
from autoscaling.profile import Profile, read_profile
from autoscaling.routing_rules import StepCost
from autoscaling.types import Role

FILE: dict[str, Any] = {
    "schemaVersion": 1,
    "fingerprint": "abc",
    "measuredOn": {"maxModelLen": 4096, "tensorParallel": 2},
    "madeAt": "2026-11-30T08:00:00Z",
    "contextTokens": 700,
    "pools": {
        "speculative": {
            "baseSeconds": 0.015,
            "perTokenSeconds": 0.0005,
            "draftSeconds": 0.0003,
            "draftLength": 2,
            "kvCacheTokens": 52000,
        },
        "plain": {"baseSeconds": 0.014, "perTokenSeconds": 0.0005, "kvCacheTokens": 54000},
    },
    "tokensPerStep": {"mean": 1.4, "code": 2.2, "copy": 1.0},
    "survival": {"mean": [0.5, 0.3]},
    "k0Tax": [{"sequences": 1, "ratio": 1.1}, {"sequences": 4, "ratio": 1.0}],
    "moveSeconds": {"start": 29.0, "stop": 2.5},
}


def profile(**changes: Any) -> Profile:
    """The file with other fields; None leaves one out."""
    fields = {key: value for key, value in (FILE | changes).items() if value is not None}
    return read_profile(json.dumps(fields), "profile.json")


def test_costs_memory_and_moves_are_the_measured_ones() -> None:
    """What the file says stays as it is; a cost that was fitted at K = 0 too takes no tax on top."""
    found = from_profile(profile(), "mine")

    assert {
        Role.SPECULATIVE: StepCost(0.015, 0.0005, draft_s=0.0003, draft_length=2),
        Role.PLAIN: StepCost(0.014, 0.0005),
    } == found.costs
    assert {Role.SPECULATIVE: 52000, Role.PLAIN: 54000} == found.kv_tokens
    assert (29.0, 2.5, 700, 4096, 2) == (
        found.start_s,
        found.stop_s,
        found.context_tokens,
        found.max_model_len,
        found.accelerators,
    )
    assert 1.0 == found.k0_tax
    assert ("mine", "measured: mine") == (found.name, found.source)


def test_what_a_file_leaves_out_is_given() -> None:
    """Memory, lengths and moves of engines that are as told."""
    pools = {"plain": {"baseSeconds": 0.014, "perTokenSeconds": 0.0005}}
    bare = profile(pools=pools, measuredOn=None, k0Tax=None, moveSeconds=None)
    found = from_profile(bare, "mine", Engines(32, 4096, 8192, 9999, 7.0, 1.0))

    assert {Role.PLAIN: 9999} == found.kv_tokens
    assert (32, 4096, 8192, 7.0, 1.0, 1.0, 1) == (
        found.max_num_seqs,
        found.max_batched_tokens,
        found.max_model_len,
        found.start_s,
        found.stop_s,
        found.k0_tax,
        found.accelerators,
    )


def test_acceptance_gives_the_measured_tokens_per_step() -> None:
    """By survival and a share of steps with drafts, or else by one acceptance at all positions."""
    acceptance = from_profile(profile(), "mine").acceptance

    # 0.5 x (0.5 + 0.3) = 0.4, and 0.5 / 1.4 steps without a draft for each token
    assert pytest.approx(1.4) == acceptance["mean"].tokens_per_step(2)
    assert pytest.approx(0.5) == acceptance["mean"].drafting(2)
    assert pytest.approx(0.357, abs=0.001) == acceptance["mean"].undrafted
    assert (0.5, "measured") == (acceptance["mean"].spread, acceptance["mean"].source)
    # 1 + a + a x a = 2.2 for a = 0.7042
    assert pytest.approx((0.7042, 0.4958), abs=1e-4) == acceptance["code"].survival
    assert pytest.approx(2.2) == acceptance["code"].tokens_per_step(2)
    assert 0.61 == acceptance["code"].spread
    assert 0.0 == acceptance["copy"].draft_rate


def test_a_shorter_draft_is_found_more_often() -> None:
    """At K = 1 1.5 / (1 + .357 x .5) tokens, so that .357 x 1.273 of the steps have no draft, and not .5."""
    found = from_profile(profile(), "mine").acceptance["mean"]

    assert pytest.approx(1.2727, abs=1e-4) == found.tokens_per_step(1)
    assert pytest.approx(1 - 0.5 / 1.4 * 1.2727, abs=1e-4) == found.drafting(1)


def test_each_draft_length_brings_what_it_was_measured_to() -> None:
    """Tokens per step at K = 1, 3 and 5; at K = 2 and 4 as survival has them, as far off as beside."""
    pools = FILE["pools"] | {"speculative": FILE["pools"]["speculative"] | {"draftLength": 5}}
    found = from_profile(
        profile(
            pools=pools,
            tokensPerStep={"mean": 2.0},
            tokensPerStepByLength={"mean": {"0": 1.0, "1": 1.5, "3": 1.9, "5": 2.0}},
            survival={"mean": [0.8, 0.6, 0.3, 0.3, 0.1]},
        ),
        "mine",
    ).acceptance["mean"]

    # 1 / 2.1 of the steps draft at K = 5, so 1.488, 1.756, 1.868, 1.969 and 2 tokens at K = 1 to 5.
    expected = (1.0, 1.5, 1.7780, 1.9, 1.9855, 2.0)
    assert pytest.approx(expected, abs=1e-4) == [found.tokens_per_step(at) for at in range(6)]
    # One token more in half of the steps needs a draft in half of them.
    assert (0.5, pytest.approx(0.607, abs=0.001)) == (found.drafting(5), found.drafting(1))


def test_no_position_brings_more_than_the_one_before() -> None:
    """0.1 tokens by the first and 0.3 by the second cannot be: each is taken for 0.2."""
    found = from_profile(
        profile(
            tokensPerStep={"mean": 1.4},
            tokensPerStepByLength={"mean": {"0": 1.0, "1": 1.1, "2": 1.4}},
        ),
        "mine",
    ).acceptance["mean"]

    assert pytest.approx((1.2, 1.4)) == [found.tokens_per_step(at) for at in (1, 2)]


def test_survival_that_is_too_low_for_the_tokens_is_not_taken() -> None:
    """Half of the drafts survive one position and none two, but 2.2 tokens came out of a step."""
    acceptance = from_profile(profile(survival={"code": [0.5, 0.0]}), "mine").acceptance

    assert pytest.approx(2.2) == acceptance["code"].tokens_per_step(2)


def test_a_pool_that_was_not_measured_cannot_be_simulated() -> None:
    """The message names the pools that can."""
    found = from_profile(profile(pools={"plain": FILE["pools"]["plain"]}), "mine")

    with pytest.raises(ValueError, match="profile mine: no speculative engine was measured, only plain"):
        found.cost_of(Role.SPECULATIVE)
