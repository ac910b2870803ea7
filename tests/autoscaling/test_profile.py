"""A profile file, and everything that makes a text none."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaling.profile import Profile, ProfileError, read_profile, usable
from autoscaling.routing_rules import StepCost
from autoscaling.types import Role
from tests.autoscaling.profiles import TREE, profile, profile_text

PAGE = Path(__file__).parents[2] / "docs" / "concepts" / "profile.md"


def refused(text: str) -> str:
    with pytest.raises(ProfileError) as error:
        read_profile(text, "profile.json")
    return str(error.value)


def changed(path: str, value: Any) -> str:
    """The file with one value changed or, for None, taken out."""
    tree = json.loads(json.dumps(TREE))
    *way, last = path.split(".")
    here = tree
    for part in way:
        here = here[part]
    here.pop(last)
    if value is not None:
        here[last] = value
    return json.dumps(tree)


def test_a_profile_is_read_whole() -> None:
    """Every value under its own name; what is not given is zero."""
    assert profile() == Profile(
        fingerprint="f",
        made_at=1_796_025_600.0,
        context_tokens=500.0,
        costs={
            Role.SPECULATIVE: StepCost(0.015, 0.0005, 0.000001, 0.001, 4),
            Role.PLAIN: StepCost(0.015, 0.0005),
        },
        tokens_per_step={"mean": 2.0, "code": 3.0},
    )


def test_a_pool_may_be_unmeasured() -> None:
    """Then it has no cost."""
    assert {Role.PLAIN: StepCost(0.015, 0.0005)} == profile(pools={"plain": TREE["pools"]["plain"]}).costs


def test_unknown_fields_are_ignored() -> None:
    """A newer writer of the same version may add some, at the top and inside a pool."""
    more = {
        "news": [1],
        "pools": TREE["pools"] | {"third": 1, "plain": TREE["pools"]["plain"] | {"fit": 0.9}},
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


def test_only_the_served_model_counts() -> None:
    """A profile of another model, and one while no model is known, are not used."""
    found = profile()
    assert [found, None, None] == [usable(found, name) for name in ("f", "other", None)]
    assert usable(None, "f") is None


def test_the_page_shows_a_profile() -> None:
    """The example of the page is read without complaint."""
    (block,) = re.findall(r"```json\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert {"mean": 1.9, "code": 2.6} == read_profile(block, "profile.md").tokens_per_step


def test_the_page_has_every_field() -> None:
    """One row for each name that the file of the tests uses."""
    names = {"schemaVersion", "fingerprint", "madeAt", "contextTokens", *TREE["pools"]["speculative"], "mean"}
    rows = {
        line.split("`")[1].rpartition(".")[2] for line in PAGE.read_text().splitlines() if line[:3] == "| `"
    }
    assert names <= rows
