"""A profile file, and everything that makes a text none."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaling.profile import FitQuality, PoolsAt, Profile, ProfileError, read_profile
from autoscaling.profiling.findings import PoolAnswer, TableRow
from autoscaling.profiling.measured import Fingerprint
from autoscaling.routing_rules import StepCost
from autoscaling.types import Role
from tests.autoscaling.profiles import TREE, WHOLE, profile, profile_text

PAGE = Path(__file__).parents[2] / "docs" / "concepts" / "profile.md"


def refused(text: str) -> str:
    with pytest.raises(ProfileError) as error:
        read_profile(text, "profile.json")
    return str(error.value)


def changed(path: str, value: Any, tree: dict[str, Any] = TREE) -> str:
    """The file with one value changed or, for None, taken out."""
    tree = json.loads(json.dumps(tree))
    *way, last = path.split(".")
    here = tree
    for part in way:
        here = here[part]
    here.pop(last, None)
    if value is not None:
        here[last] = value
    return json.dumps(tree)


def test_a_profile_is_read_whole() -> None:
    """Every value under its own name; what is not given is zero."""
    assert profile() == Profile(
        measured_on=Fingerprint("f"),
        made_at=1_796_025_600.0,
        context_tokens=500.0,
        costs={
            Role.SPECULATIVE: StepCost(0.015, 0.0005, 0.000001, 0.001, 4),
            Role.PLAIN: StepCost(0.015, 0.0005),
        },
        tokens_per_step={"mean": 2.0, "code": 3.0},
    )


def test_every_optional_field_is_read() -> None:
    """Under its own name, in both pools and at the top."""
    assert read_profile(json.dumps(WHOLE), "profile.json") == Profile(
        measured_on=Fingerprint("f", "vllm", "0.11.0", "cpu", 1, 2048, "ngram", "d", 4),
        made_at=1_796_025_600.0,
        context_tokens=500.0,
        costs={
            Role.SPECULATIVE: StepCost(
                0.015, 0.0005, 0.000001, 0.001, 4, 0.0001, 0.0002, 0.0000003, 2.5, 0.0004, 64.0, 0.00005
            ),
            Role.PLAIN: StepCost(0.015, 0.0005),
        },
        tokens_per_step={"mean": 2.0, "code": 3.0},
        tokens_by_length={"mean": {2: 1.5, 4: 2.0}},
        survival={"mean": (0.6, 0.4, 0.4, 0.1)},
        synthetic_acceptance=False,
        kv_cache_tokens={Role.SPECULATIVE: 9000, Role.PLAIN: 10000},
        fits={
            Role.SPECULATIVE: FitQuality(12, 0.05, 0.1, True),
            Role.PLAIN: FitQuality(8, 0.4, None, False, "error 40 %"),
        },
        draft_table=(TableRow(1, 4, 4), TableRow(5, 16, 0)),
        k0_tax=((1, 1.1), (16, 1.05)),
        start_s=20.5,
        stop_s=1.5,
        two_pools=(
            PoolsAt(0.02, PoolAnswer.TWO_POOLS, 1.3),
            PoolsAt(0.1, PoolAnswer.ONE_PLAIN, None),
        ),
    )


def test_prescribed_acceptance_is_told() -> None:
    """As the file says."""
    assert profile(syntheticAcceptance=True).synthetic_acceptance


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("measuredOn.tensorParallel", 0, "measuredOn.tensorParallel is the number 0"),
        ("measuredOn.engineVersion", 11, "measuredOn.engineVersion is the number 11"),
        ("measuredOn.device", "", "measuredOn.device is the text ''"),
        ("pools.speculative.perDraftSeconds", -1, "pools.speculative.perDraftSeconds is the number -1"),
        ("pools.speculative.hingeTokens", "64", "pools.speculative.hingeTokens is the text '64'"),
        (
            "pools.speculative.draftedTokens",
            4.5,
            "pools.speculative.draftedTokens is 4.5, above draftLength 4",
        ),
        ("pools.plain.draftedTokens", 0.5, "pools.plain.draftedTokens is 0.5, above draftLength 0"),
        ("pools.plain.kvCacheTokens", 0, "pools.plain.kvCacheTokens is the number 0"),
        ("pools.plain.fit.accepted", "yes", "pools.plain.fit.accepted is the text 'yes'"),
        ("pools.plain.fit.accepted", None, "pools.plain.fit.accepted is missing"),
        (
            "pools.speculative.fit.error",
            None,
            "pools.speculative.fit: accepted, but without an error on any points",
        ),
        (
            "pools.speculative.fit.points",
            0,
            "pools.speculative.fit: accepted, but without an error on any points",
        ),
        ("pools.plain.fit.error", float("nan"), "pools.plain.fit.error is the number nan"),
        ("survival.mean", [0.6, 1.1], "survival.mean[1] is the number 1.1"),
        (
            "survival.mean",
            [0.6, 0.5, 0.55],
            "survival.mean[2] is 0.55, above 0.5 before it: no draft survives longer than its beginning",
        ),
        (
            "tokensPerStepByLength.mean",
            {"1": 2.5},
            "tokensPerStepByLength.mean.1 is 2.5, but a step with a draft length of 1 brings 2 at most",
        ),
        ("draftTable", [[2, 4, 4]], "draftTable[0] begins at 2, but 1 is next: leave no gap"),
        ("draftTable", [[1, 4, 4], [6, 9, 0]], "draftTable[1] begins at 6, but 5 is next: leave no gap"),
        ("draftTable", [[1, 4, 4], [4, 9, 0]], "draftTable[1] begins at 4, but 5 is next: leave no gap"),
        ("draftTable", [[1, 4, 4], [5, 3, 0]], "draftTable[1] ends at 3, before its begin at 5"),
        (
            "draftTable",
            [[1, 4, 5]],
            "draftTable[0] drafts 5, but no more than pools.speculative.draftLength 4 was measured",
        ),
        ("draftTable", [[1, 4]], "draftTable[0][2] is missing"),
        ("k0Tax", [{"sequences": 1, "ratio": 0}], "k0Tax[0].ratio is the number 0"),
        ("moveSeconds.stop", -1, "moveSeconds.stop is the number -1"),
        ("syntheticAcceptance", 1, "syntheticAcceptance is the number 1"),
        (
            "twoPools",
            [{"tpotSeconds": 0.1, "answer": "no_pool"}],
            "twoPools[0].answer is the text 'no_pool': input should be 'two_pools', 'one_plain_pool' or",
        ),
        (
            "twoPools",
            [{"tpotSeconds": value, "answer": "two_pools"} for value in (0.1, 0.1)],
            "twoPools[1].tpotSeconds is 0.1, not above 0.1 before it: sort the objectives, each once",
        ),
    ],
)
def test_a_wrong_optional_value_is_named(path: str, value: Any, message: str) -> None:
    """With its place, and nothing of the file is used."""
    assert refused(changed(path, value, WHOLE)).startswith(f"profile.json: {message}")


def test_a_pool_may_be_unmeasured() -> None:
    """Then it has no cost."""
    assert {Role.PLAIN: StepCost(0.015, 0.0005)} == profile(pools={"plain": TREE["pools"]["plain"]}).costs


def test_unknown_fields_are_ignored() -> None:
    """A newer writer of the same version may add some, at the top and inside a pool."""
    more = {
        "news": [1],
        "pools": TREE["pools"] | {"third": 1, "plain": TREE["pools"]["plain"] | {"fits": 0.9}},
    }
    assert profile() == profile(**more)


@pytest.mark.parametrize("version", [0, 2, 17])
def test_an_unknown_version_is_refused(version: int) -> None:
    """Whatever else the file holds: nobody knows what its fields mean; it says what to do."""
    assert (
        f"profile.json: schemaVersion is {version}, known here is 1: "
        "write the profile anew with this version of twinpool, or update twinpool"
    ) == refused(json.dumps({"schemaVersion": version, "pools": "of a new kind"}))


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("schemaVersion", None, "schemaVersion is missing"),
        ("schemaVersion", True, "schemaVersion is true: input should be a valid integer"),
        ("fingerprint", None, "fingerprint is missing"),
        ("fingerprint", "", "fingerprint is the text ''"),
        ("madeAt", "yesterday", "madeAt is the text 'yesterday'"),
        ("madeAt", "2026-11-30T08:00:00", "madeAt is the text '2026-11-30T08:00:00': input should have time"),
        ("contextTokens", -1, "contextTokens is the number -1: input should be greater than or equal to 0"),
        ("contextTokens", float("nan"), "contextTokens is the number nan: input should be a finite number"),
        ("pools", None, "pools is missing"),
        ("pools.plain.baseSeconds", None, "pools.plain.baseSeconds is missing"),
        ("pools.plain.baseSeconds", -0.1, "pools.plain.baseSeconds is the number -0.1"),
        ("pools.plain.baseSeconds", 15.0e3, "pools.plain.baseSeconds is the number 15000.0"),
        ("pools.plain.baseSeconds", "0.1", "pools.plain.baseSeconds is the text '0.1'"),
        ("pools.plain.perTokenSeconds", float("inf"), "pools.plain.perTokenSeconds is the number inf"),
        ("pools.speculative.draftLength", 2.5, "pools.speculative.draftLength is the number 2.5"),
        ("pools.speculative.draftSeconds", float("nan"), "pools.speculative.draftSeconds is the number nan"),
        ("tokensPerStep.code", 0.5, "tokensPerStep.code is the number 0.5: input should be greater than"),
        ("tokensPerStep.code", float("nan"), "tokensPerStep.code is the number nan"),
        ("tokensPerStep.mean", None, "tokensPerStep has no 'mean': give the average over all classes"),
        (
            "tokensPerStep.code",
            5.5,
            "tokensPerStep.code is 5.5, but a step with draftLength 4 brings 5 at most",
        ),
    ],
)
def test_a_wrong_value_is_named(path: str, value: Any, message: str) -> None:
    """With the file, the field, what was given and what to do."""
    found = refused(changed(path, value))
    assert found.startswith(f"profile.json: {message}")
    assert found.endswith(": mend the field, or write the profile anew")


@pytest.mark.parametrize(
    ("pools", "message"),
    [
        ({}, "pools has neither speculative nor plain: nothing is measured"),
        ({"third": {}}, "pools has neither speculative nor plain: nothing is measured"),
        (
            {"plain": {"baseSeconds": 0, "perTokenSeconds": 0}},
            "pools.plain: a step costs nothing at all, which no engine's does",
        ),
        (
            {"speculative": {"baseSeconds": 0, "perTokenSeconds": 0, "draftSeconds": 0, "draftLength": 4}},
            "pools.speculative: a step costs nothing at all, which no engine's does",
        ),
        (
            {"plain": {"baseSeconds": 0, "perTokenSeconds": 0, "draftSeconds": 1}},
            "pools.plain: a step costs nothing at all, which no engine's does",
        ),
        (
            {"plain": TREE["pools"]["speculative"]},
            "pools.plain.draftLength is 4, but the plain pool drafts nothing: are the pools exchanged?",
        ),
    ],
)
def test_pools_that_were_hardly_measured_are_refused(pools: dict[str, Any], message: str) -> None:
    """None at all, one without any cost, and a plain one that drafts."""
    assert f"profile.json: {message}: mend the field, or write the profile anew" == refused(
        profile_text(pools=pools)
    )


def test_one_cost_is_enough() -> None:
    """Drafting alone, too, where something is drafted."""
    drafting = {"baseSeconds": 0, "perTokenSeconds": 0, "draftSeconds": 0.001, "draftLength": 4}
    assert {Role.SPECULATIVE: StepCost(0.0, 0.0, 0.0, 0.001, 4)} == profile(
        pools={"speculative": drafting}
    ).costs


@pytest.mark.parametrize("text", ["", "{", "plain", "[" * 5000, '{"a": 1,}'])
def test_what_is_not_json_is_refused(text: str) -> None:
    """With the place, and never in another way."""
    assert re.match(
        r"profile\.json: not JSON: .* at line \d+ column \d+: write the profile anew", refused(text)
    )


@pytest.mark.parametrize("text", ["[]", "null", "3", '"text"'])
def test_json_that_is_no_mapping_is_refused(text: str) -> None:
    """A profile is one object."""
    assert refused(text).startswith("profile.json: Input should be an object")


def test_many_errors_are_cut() -> None:
    """Five are named."""
    classes = {f"c{number}": 0 for number in range(50)}
    assert refused(profile_text(tokensPerStep=classes)).count("tokensPerStep.c") == 5


@given(st.text() | st.recursive(st.none() | st.floats() | st.text(), st.lists).map(json.dumps))
def test_no_text_is_a_surprise(text: str) -> None:
    """Whatever is in the file, it is a profile or a ProfileError."""
    with pytest.raises(ProfileError):
        read_profile(text, "profile.json")


def test_the_page_shows_a_profile() -> None:
    """The example of the page is read without complaint."""
    (block,) = re.findall(r"```json\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert {"mean": 1.9, "code": 2.6} == read_profile(block, "profile.md").tokens_per_step


def leaves(tree: dict[str, Any]) -> set[str]:
    """The names of all values that are no mappings, those of mappings in lists included."""
    found = set()
    for name, value in tree.items():
        inner = [value] if isinstance(value, dict) else value if isinstance(value, list) else []
        mappings = [one for one in inner if isinstance(one, dict)]
        found |= set().union(*map(leaves, mappings)) if mappings else {name}
    return found


def test_the_page_has_every_field() -> None:
    """One row for each name that the whole file of the tests uses."""
    names = leaves(WHOLE) - {"code", "2", "4"}
    rows = {
        line.split("`")[1].rpartition(".")[2] for line in PAGE.read_text().splitlines() if line[:3] == "| `"
    }
    assert names <= rows
