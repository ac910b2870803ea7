"""docs/concepts/workloads.md says what the code does: classes, reasons in their order, priors, features."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

from app.samples import samples
from app.workload.acceptance import DRAFTABLE, PRIORS
from app.workload.classify import RULES, WorkloadClass
from app.workload.features import Features

PAGE = (Path(__file__).parents[3] / "docs" / "concepts" / "workloads.md").read_text(encoding="utf-8")


def section(title: str) -> list[list[str]]:
    """The rows of a section's last table, without its head, cells without backquotes."""
    text = PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]
    rows = [line for line in text.splitlines() if line.startswith("|")]
    body = rows[max(at for at, row in enumerate(rows) if row.startswith("|---")) + 1 :]
    return [[cell.strip().replace("`", "") for cell in row.strip("|").split("|")] for row in body]


def test_the_rules_stand_in_their_order() -> None:
    """Reason and class of each rule."""
    assert [[one.reason, one.kind] for one, _ in RULES] == [row[:2] for row in section("The rules")]


def test_the_priors_are_the_tables() -> None:
    """Every method has a row, every class its column, in the order of the classes."""
    found = {}
    for row in section("The prediction"):
        for method in row[0].removesuffix(" and others").split(", "):
            found[method] = [float(cell) for cell in row[1:]]
    assert {name: [row[kind] for kind in WorkloadClass] for name, row in PRIORS.items()} == found


def test_every_class_is_described() -> None:
    """The first table has them all, and each other word maps to one of them or to none."""
    first = [line.split("`")[1] for line in PAGE.splitlines() if line.startswith("| `")][: len(WorkloadClass)]
    assert list(WorkloadClass) == first
    mapped = {row[1] for row in section("The classes")}
    assert mapped <= {*WorkloadClass, "whatever the text is"}


def test_every_feature_is_described() -> None:
    """The features of a record, each once."""
    named = [name for row in section("What is read") for name in row[0].split(", ")]
    assert sorted(field.name for field in fields(Features)) == sorted(named)


def test_the_words_of_the_samples_are_explained() -> None:
    """Whoever meets a sample's label finds what became of it; the threshold is named."""
    assert {} == {one.workload: one.id for one in samples() if f"`{one.workload}`" not in PAGE}
    assert f"a prediction of {DRAFTABLE} or more" in PAGE
