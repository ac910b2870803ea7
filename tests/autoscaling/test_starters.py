"""The starter policies and the JSON Schema: complete, without warnings, and what the models say."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from autoscaling.policy_file import read_policy
from deployments import starter_policies
from tests.by_path import module_at

ROOT = Path(__file__).parents[2]
NAMES = ("batch-first", "interactive-first", "launch-day", "night-batch")
HEADER = "# yaml-language-server: $schema=../../docs/capacity-policy.v1alpha1.schema.json"
IN_2026 = 1_796_000_000.0  # 2026-11-30


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    return module_at("docs/generate_policy.py")


def test_the_starters_are_the_files_of_the_package() -> None:
    """Their names are those of the files, and another name is refused with the known ones."""
    assert NAMES == starter_policies.names()
    with pytest.raises(KeyError, match="no starter 'night'; there are batch-first, interactive-first"):
        starter_policies.text("night")


@pytest.mark.parametrize("name", NAMES)
def test_a_starter_is_a_policy_without_warnings(name: str) -> None:
    """It reads well, under its own name, for eight accelerators, and names its schema in the first line."""
    text = starter_policies.text(name)
    read = read_policy(text, IN_2026)
    assert ((), ()) == (read.problems, read.warnings)
    assert read.policy is not None
    assert (name, 8, 8) == (
        read.policy.metadata.name,
        read.policy.spec.budget.min,
        read.policy.spec.budget.max,
    )
    assert HEADER == text.splitlines()[0]
    assert (ROOT / "autoscaling" / "starters" / HEADER.partition("=")[2]).resolve().is_file()


def test_the_night_goes_over_midnight() -> None:
    """The night of night-batch ends before it starts by the clock, and gives most replicas to batch work."""
    policy = read_policy(starter_policies.text("night-batch")).policy
    assert policy is not None
    night = policy.spec.schedules[0]
    assert ("22:00", "06:00") == (night.start, night.end)
    assert night.pools.plain is not None
    assert (4, 7) == (night.pools.plain.min_replicas, night.pools.plain.max_replicas)


def test_the_launch_ends_by_itself() -> None:
    """Each override of launch-day ends in 2027, and each schedule is weaker than it."""
    policy = read_policy(starter_policies.text("launch-day")).policy
    assert policy is not None
    assert [2027, 2027] == [override.until.year for override in policy.spec.overrides]
    assert ["business-hours", "nightly-reports"] == [schedule.name for schedule in policy.spec.schedules]


def test_the_schema_is_what_the_models_say(generator: ModuleType) -> None:
    """When it differs: python docs/generate_policy.py."""
    assert generator.schema_text() == generator.SCHEMA.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_an_editor_takes_a_starter_and_marks_a_typo(name: str, generator: ModuleType) -> None:
    """The schema validates each starter; a misspelt or mistyped field is an error at its place."""
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(json.loads(generator.schema_text()))
    document = yaml.safe_load(starter_policies.text(name))
    # PyYAML makes times of unquoted timestamps; JSON, and so an editor, has text.
    document = json.loads(json.dumps(document, default=lambda moment: moment.isoformat()))
    assert [] == list(validator.iter_errors(document))
    pool = document["spec"]["pools"]["plain"]
    pool["minReplica"] = pool.pop("minReplicas")
    pool["maxReplicas"] = "4"
    assert [["spec", "pools", "plain"], ["spec", "pools", "plain", "maxReplicas"]] == sorted(
        list(error.absolute_path) for error in validator.iter_errors(document)
    )
