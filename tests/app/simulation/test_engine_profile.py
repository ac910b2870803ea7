"""What a simulated engine is like by a measured profile."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from app.simulation.acceptance import Acceptance
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
    """What the file says stays as it is; the tax without drafts is the mean over batches."""
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
    assert pytest.approx(1.05) == found.k0_tax
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

    # 0.5 x (0.5 + 0.3) = 0.4
    assert Acceptance((0.5, 0.3), 0.5, 0.5, source="measured") == replace(acceptance["mean"], draft_rate=0.5)
    assert pytest.approx(0.5) == acceptance["mean"].draft_rate
    # 1 + a + a x a = 2.2 for a = 0.7042
    assert pytest.approx((0.7042, 0.4958), abs=1e-4) == acceptance["code"].survival
    assert pytest.approx(2.2) == acceptance["code"].tokens_per_step(2)
    assert 0.61 == acceptance["code"].spread
    assert 0.0 == acceptance["copy"].draft_rate


def test_survival_that_is_too_low_for_the_tokens_is_not_taken() -> None:
    """Half of the drafts survive one position and none two, but 2.2 tokens came out of a step."""
    acceptance = from_profile(profile(survival={"code": [0.5, 0.0]}), "mine").acceptance

    assert pytest.approx(2.2) == acceptance["code"].tokens_per_step(2)


def test_a_pool_that_was_not_measured_cannot_be_simulated() -> None:
    """The message names the pools that can."""
    found = from_profile(profile(pools={"plain": FILE["pools"]["plain"]}), "mine")

    with pytest.raises(ValueError, match="profile mine: no speculative engine was measured, only plain"):
        found.cost_of(Role.SPECULATIVE)
