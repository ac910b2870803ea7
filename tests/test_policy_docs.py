"""The page on the policy file says what the models and the clock say."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from autoscaling.instants import rfc3339
from autoscaling.policy_fields import fields
from autoscaling.policy_file import read_policy
from autoscaling.policy_in_force import PRECEDENCE
from autoscaling.schedules import active, next_change
from tests.autoscaling.good_policy import TREE
from tests.by_path import module_at

DOCS = Path(__file__).parents[1] / "docs"
PAGE = (DOCS / "policy.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    return module_at("docs/generate_policy_page.py")


def whole(block: str) -> str:
    """A block as a whole policy: a part of one goes to the end of the good policy's spec."""
    if "kind:" in block:
        return block
    assert block.startswith("spec:\n")
    return yaml.safe_dump(TREE, sort_keys=False) + block.removeprefix("spec:\n")


def test_the_tables_are_what_the_models_say(generator: ModuleType) -> None:
    """When they differ: python docs/generate_policy_page.py."""
    assert generator.page(PAGE) == PAGE


def test_every_field_has_one_row() -> None:
    """In the tables, by its whole path, and each row has seven cells."""
    rows = [line for line in PAGE.splitlines() if re.match(r"\| `(apiVersion|kind|metadata|spec)", line)]
    listed = [row.split(" | ")[0].strip("| `") for row in rows if row.count(" | ") == 6]

    assert sorted(field.path for field in fields()) == sorted(listed)


@pytest.mark.parametrize("block", BLOCKS)
def test_every_example_is_a_policy(block: str) -> None:
    """Whole, or put into one; without problems."""
    found = read_policy(whole(block))

    assert found.problems == ()
    assert found.policy is not None


def test_the_worked_nights_are_right() -> None:
    """Each row of the table says when the schedule above it opens and closes."""
    (block,) = [block for block in BLOCKS if "saturday-night" in block]
    policy = read_policy(whole(block)).policy
    assert policy is not None
    nights = re.findall(r"\| (20\d\d-\d\d-\d\d)[^|]*\| (\S+Z) \| (\S+Z) \| (\d+) \|", PAGE)
    assert len(nights) == 4
    for night, opens, closes, hours in nights:
        noon = datetime.fromisoformat(f"{night}T12:00:00Z").timestamp()
        start = next_change(policy.spec.schedules, noon)
        assert start is not None
        end = next_change(policy.spec.schedules, start)
        assert end is not None

        assert (opens, closes) == (rfc3339(start), rfc3339(end))
        assert int(hours) * 3600 == end - start
        assert active(policy.spec.schedules, start) == policy.spec.schedules


def test_the_precedence_is_the_one_that_acts() -> None:
    """As status prints it."""
    assert f"\n{PRECEDENCE}\n" in PAGE


def test_one_sentence_per_line() -> None:
    """Above the tables no line holds the end of one sentence and the begin of the next."""
    words = PAGE.partition("<!-- fields")[0]
    text = [line for line in words.splitlines() if line and not line.startswith(("|", "#", "```", " "))]

    assert [line for line in text if re.search(r"[a-z`)]\. [A-Z`]", line)] == []
