"""What of a profile counts beside the replicas that serve."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import Any

import pytest

from autoscaling.profile import PoolsAt, Profile, read_profile
from autoscaling.profile_match import (
    OF_SPECULATION,
    PARTS,
    Served,
    differences,
    doubts,
    fitted,
    measured,
    pools_at,
    prior,
    served,
)
from autoscaling.profiling.findings import PoolAnswer
from autoscaling.profiling.measured import Fingerprint
from autoscaling.types import Capabilities, Role
from tests.autoscaling.profiles import OF_F, TREE, WHOLE, capabilities, profile

SPEC, PLAIN = Role.SPECULATIVE, Role.PLAIN
KNOWN: dict[str, Any] = {
    "engine": "vllm",
    "engine_version": "0.11.0",
    "device": "cpu",
    "tensor_parallel": 1,
    "max_model_len": 2048,
}
DRAFTS: dict[str, Any] = {"method": "ngram", "draft": "d", "draft_length_max": 4}
ACCEPTED = {"points": 9, "error": 0.05, "holdOutError": 0.1, "accepted": True}


def whole(**changes: Any) -> Profile:
    """The profile with every optional field."""
    return read_profile(json.dumps(WHOLE | changes), "profile.json")


def one(role: Role, **changes: Any) -> Capabilities:
    """A replica of which the whole profile was measured, but for the changes."""
    return capabilities(role, **(KNOWN | (DRAFTS if role is SPEC else {}) | changes))


def told(*replicas: Capabilities) -> tuple[str, ...] | None:
    return differences(whole(), served("f", replicas))


def test_every_part_of_the_fingerprint_counts() -> None:
    """None is forgotten."""
    assert {"model", *PARTS, *OF_SPECULATION} == {part.name for part in fields(Fingerprint)}


def test_what_was_measured_fits() -> None:
    """Both pools as they were, and before any replica has told more than its model."""
    assert () == told(one(SPEC), one(PLAIN))
    assert () == told()


@pytest.mark.parametrize(
    ("part", "value", "words"),
    [
        ("engine", "simulated", "engine was vllm, the speculative pool has simulated"),
        ("engine_version", "0.12.0", "engineVersion was 0.11.0, the speculative pool has 0.12.0"),
        ("device", "H200", "device was cpu, the speculative pool has H200"),
        ("tensor_parallel", 2, "tensorParallel was 1, the speculative pool has 2"),
        ("max_model_len", 4096, "maxModelLen was 2048, the speculative pool has 4096"),
        ("method", "eagle3", "method was ngram, the speculative pool has eagle3"),
        ("draft", "e", "draft was d, the speculative pool has e"),
        ("draft_length_max", 6, "draftLengthMax was 4, the speculative pool has 6"),
    ],
)
def test_another_part_is_a_difference(part: str, value: Any, words: str) -> None:
    """In words with both values; of the plain pool only where it does not concern speculation."""
    assert (words,) == told(one(SPEC, **{part: value}), one(PLAIN))
    expected = () if part in OF_SPECULATION else (words.replace("speculative", "plain"),)
    assert expected == told(one(SPEC), one(PLAIN, **{part: value}))


@pytest.mark.parametrize("part", ["device", "tensor_parallel", "draft", "method"])
def test_what_is_unknown_fits(part: str) -> None:
    """On the replicas' side and on the profile's."""
    assert () == told(one(SPEC, **{part: None}))
    without = replace(whole(), measured_on=replace(whole().measured_on, **{part: None}))
    assert () == differences(without, served("f", [one(SPEC, **{part: "2"})]))


def test_one_replica_that_differs_is_enough() -> None:
    """As in the middle of a rolling update; each other value is named once."""
    replicas = [one(PLAIN, engine_version=version) for version in ("0.11.0", "0.13.0", "0.12.0", "0.12.0")]
    assert ("engineVersion was 0.11.0, the plain pool has 0.12.0 and 0.13.0",) == told(*replicas)


def test_another_model() -> None:
    """Its replicas are another matter: one of a model that is not served does not count."""
    other = one(PLAIN, fingerprint="other", device="H200")
    assert () == told(one(PLAIN), other)
    assert ("fingerprint was f, now it is other",) == differences(profile(), Served("other"))


def test_no_model_is_known() -> None:
    """Then nobody knows what differs, and nothing of the profile counts."""
    assert differences(whole(), Served()) is None
    assert (None, None, False) == tuple(found(whole(), Served()) for found in (measured, prior, fitted))
    assert (None, None, False) == tuple(found(None, OF_F) for found in (measured, prior, fitted))


def test_it_is_measured_or_a_prior() -> None:
    """Never both."""
    assert (profile(), None) == (measured(profile(), OF_F), prior(profile(), OF_F))
    other = Served("other")
    assert (None, profile()) == (measured(profile(), other), prior(profile(), other))


def test_the_smallest_memory_of_a_pool_counts() -> None:
    """Of its replicas and of what was measured."""
    replicas = [one(SPEC, kv_cache_tokens=tokens) for tokens in (8000, 7000, None)]
    found = measured(whole(), served("f", [*replicas, one(PLAIN, kv_cache_tokens=20_000)]))
    assert found is not None
    assert {SPEC: 7000, PLAIN: 10_000} == found.kv_cache_tokens


def test_a_refused_fit_has_no_cost() -> None:
    """And is told, with the reason that the measurement gave."""
    found = measured(whole(), OF_F)
    assert found is not None
    assert {SPEC} == set(found.costs)
    assert ("the fit of the plain pool is refused (error 40 %): its limit is unmeasured",) == doubts(whole())


def test_prescribed_acceptance_has_no_gains() -> None:
    """Costs stay."""
    synthetic = profile(syntheticAcceptance=True)
    found = measured(synthetic, OF_F)
    assert found is not None
    assert (synthetic.costs, {}) == (found.costs, found.tokens_per_step)
    assert (
        "its acceptance was prescribed, not measured: only costs are used, "
        "the limit of the speculative pool is unmeasured",
    ) == doubts(synthetic)
    assert () == doubts(profile())


def checked(*roles: Role) -> dict[str, Any]:
    """Pools of which these have passed the quality gate; nobody has judged the others."""
    return {
        role.value: TREE["pools"][role.value] | ({"fit": ACCEPTED} if role in roles else {}) for role in Role
    }


@pytest.mark.parametrize(
    ("changes", "model", "expected"),
    [
        ({"pools": checked(SPEC, PLAIN)}, "f", True),
        ({"pools": checked(SPEC, PLAIN)}, "other", False),
        ({"pools": checked(SPEC, PLAIN), "syntheticAcceptance": True}, "f", False),
        ({"pools": checked(SPEC)}, "f", False),
        ({"pools": WHOLE["pools"]}, "f", False),
        ({"pools": {"plain": checked(PLAIN)["plain"]}}, "f", False),
    ],
)
def test_both_pools_have_to_pass_the_gate(changes: dict[str, Any], model: str, expected: bool) -> None:
    """Before the model counts as fitted; a file that tells nothing of its fits was never judged."""
    assert expected is fitted(profile(**changes), Served(model))


def answers(*rows: tuple[float, str, float | None]) -> Profile:
    found = [{"tpotSeconds": tpot, "answer": answer, "margin": margin} for tpot, answer, margin in rows]
    return profile(twoPools=found)


@pytest.mark.parametrize(
    ("tpot", "expected"),
    [
        (0.02, (PoolAnswer.TWO_POOLS, 1.3)),
        (0.03, None),
        (0.04, (PoolAnswer.ONE_PLAIN, 1.02)),
        (0.05, (PoolAnswer.ONE_PLAIN, 1.01)),
        (0.07, (PoolAnswer.ONE_PLAIN, None)),
        (0.08, (PoolAnswer.ONE_PLAIN, None)),
        (0.01, None),
        (0.09, None),
        (None, None),
    ],
)
def test_the_answer_at_an_objective(
    tpot: float | None, expected: tuple[PoolAnswer, float | None] | None
) -> None:
    """As measured, or where both neighbours say the same; nothing outside, and without an objective."""
    found = answers(
        (0.02, "two_pools", 1.3),
        (0.04, "one_plain_pool", 1.02),
        (0.06, "one_plain_pool", 1.01),
        (0.08, "one_plain_pool", None),
    )
    assert (None if expected is None or tpot is None else PoolsAt(tpot, *expected)) == pools_at(found, tpot)
