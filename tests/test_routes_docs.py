"""The pages on routing say what the code does: the tables of routes, reasons, verdicts, limits."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest

from app.admission.pace import LONGEST_S, WINDOW_S
from app.routing.predict import Source
from app.routing.replicas import BOUND, Pick
from app.routing.verdicts import Verdict
from app.workload.classify import WorkloadClass
from autoscaling.policy_fields import fields
from autoscaling.route_reasons import RouteReason
from autoscaling.types import Tier
from tests.by_path import module_at

DOCS = Path(__file__).parents[1] / "docs"
ROUTES = (DOCS / "routes.md").read_text(encoding="utf-8")
ROUTING = (DOCS / "concepts" / "routing.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    return module_at("docs/generate_routes.py")


def first_cells(page: str) -> set[str]:
    """The words in code marks of the first cell of each table row."""
    rows = [line.split(" | ")[0] for line in page.splitlines() if line.startswith("| `")]
    return {word for row in rows for word in re.findall(r"`([^`]+)`", row)}


def test_the_tables_are_what_the_code_does(generator: ModuleType) -> None:
    """When they differ: python docs/generate_routes.py."""
    assert generator.page(ROUTES) == ROUTES


def test_every_tier_and_class_has_one_column(generator: ModuleType) -> None:
    """Of each table of routes; callers who name no tier are there too."""
    expected = sorted((word, kind) for word in [*Tier, "no tier"] for kind in WorkloadClass)
    for _, rules, later in generator.BASES:
        groups = generator.groups_of(rules, later)
        found = sorted((word, kind) for group in groups for word in group.tiers for kind in group.classes)

        assert expected == found


def test_nobody_waits_while_there_is_room_for_it(generator: ModuleType) -> None:
    """In the stated world, with both pools there: only when both are saturated, or backfill is unmeasured."""
    waiting = {
        (title, situation.name, tier)
        for title, rules, _ in generator.BASES
        for situation in generator.SITUATIONS
        for tier in Tier
        for kind in WorkloadClass
        if situation.plain is not None and generator.outcome(tier, kind, situation, rules).startswith("waits")
    }

    assert {
        *((title, "both saturated", tier) for title, _, _ in generator.BASES for tier in Tier),
        ("Without a profile", "plain pool saturated", Tier.BATCH),
    } == waiting


def test_every_word_is_explained() -> None:
    """A row for each reason, verdict, source of a prediction and choice of a replica."""
    explained = first_cells(ROUTING)
    words = {word.value for kind in (RouteReason, Verdict, Source, Pick) for word in kind}

    assert words - explained == set()


def test_the_policy_fields_exist() -> None:
    """Each field that the page names in code marks is one of the policy's."""
    named = set(re.findall(r"`(spec\.[\w.]+)`", ROUTING))
    known = {field.path for field in fields()}

    assert named
    assert {field for field in named if field not in known} == set()


def test_the_numbers_are_those_of_the_code() -> None:
    """The page states them in words."""
    assert f"{BOUND:g} times the mean" in ROUTING
    assert f"1 to {LONGEST_S}" in ROUTING
    assert f"the last {WINDOW_S:g} s" in ROUTING


@pytest.mark.parametrize("page", [ROUTES.partition("<!--")[0], ROUTING], ids=["routes", "routing"])
def test_one_sentence_per_line(page: str) -> None:
    """No line holds the end of one sentence and the begin of the next."""
    text = [line for line in page.splitlines() if line and not line.startswith(("|", "#", "```", " "))]

    assert [line for line in text if re.search(r"[a-z`)]\. [A-Z`]", line)] == []
