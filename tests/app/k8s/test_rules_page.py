"""The page of rules says what the lint does."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from app.k8s.rules import RULES, Rule
from tests.by_path import module_at

DOCS = Path(__file__).parents[3] / "docs"
SOURCES = sorted((DOCS.parent / "app" / "k8s").glob("*.py"))


@pytest.fixture
def generator() -> ModuleType:
    return module_at("docs/generate_manifest_rules.py")


def test_the_page_is_what_the_rules_say(generator: ModuleType) -> None:
    """When it differs: python docs/generate_manifest_rules.py."""
    assert generator.page() == (DOCS / "manifest-rules.md").read_text(encoding="utf-8")


def test_every_rule_has_its_reason_and_is_used() -> None:
    """No rule without words, none that nothing checks, and every sentence ends."""
    code = "".join(file.read_text(encoding="utf-8") for file in SOURCES if file.name != "rules.py")
    unused = [rule.name for rule in Rule if f"Rule.{rule.name}" not in code and rule is not Rule.YAML]

    assert set(RULES) == set(Rule)
    assert [] == unused
    assert all(reason.wants.endswith(".") and reason.why.endswith(".") for reason in RULES.values())
