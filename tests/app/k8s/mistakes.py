"""What a test of the lint does wrong, and what has to be said of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from app.k8s.rules import Rule
from tests.app.k8s.manifests import Copy, Edit

BASE, PROD = "base/rayservice.yaml", "overlays/prod"
SERVE, POLICY = f"{PROD}/settings/serve.yaml", f"{PROD}/settings/policy.yaml"
WORKER = "spec.rayClusterConfig.workerGroupSpecs[0]"
DEPLOYMENT = "applications[0].deployments"


@dataclass(frozen=True, slots=True)
class Mistake:
    """What is done wrong in the overlay prod, and what has to be said of it."""

    name: str
    edit: Edit
    rule: Rule
    file: str
    field: str
    words: str


def change(file: str, old: str, new: str) -> Edit:
    def edit(copy: Copy) -> None:
        copy.edit(file, old, new)

    return edit


def add_patch(text: str) -> Edit:
    """A patch of the RayService beside the overlay's kustomization."""

    def edit(copy: Copy) -> None:
        copy.write(f"{PROD}/extra.yaml", text)
        copy.edit(
            f"{PROD}/kustomization.yaml",
            "images:\n",
            "patches:\n  - path: extra.yaml\n    target: {kind: RayService, name: twinpool}\nimages:\n",
        )

    return edit


def add_component(name: str) -> Edit:
    """A component of the overlay prod, before the wiring."""
    return change(
        f"{PROD}/kustomization.yaml",
        "  - ../../components/wiring\n",
        f"  - ../../components/{name}\n  - ../../components/wiring\n",
    )


def found_in_its_place(mistake: Mistake, folder: Path) -> None:
    """One of the findings has the rule, the file, the field and the words; each has a line of that file."""
    copy = Copy(folder)
    mistake.edit(copy)

    found = copy.findings("prod")

    place = (mistake.rule, mistake.file, mistake.field)
    wanted = [item for item in found if (item.rule, item.file, item.field) == place]
    assert wanted, found
    assert any(mistake.words in item.message for item in wanted), wanted
    assert all(item.line > 0 for item in wanted)
