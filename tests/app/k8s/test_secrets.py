"""A Secret with data is found however it comes among the objects."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.k8s.rules import Rule
from tests.app.k8s.manifests import Copy, needs_kubectl
from tests.app.k8s.mistakes import PROD

KUSTOMIZATION = f"{PROD}/kustomization.yaml"
BARE = "apiVersion: v1\nkind: Secret\nmetadata: {name: token}\n"
LISTED = (
    "apiVersion: v1\nkind: List\nitems:\n"
    "- apiVersion: v1\n  kind: Secret\n  metadata: {name: token}\n  stringData: {token: hunter2}\n"
)


def resource(copy: Copy, text: str) -> None:
    copy.write(f"{PROD}/secret.yaml", text)
    copy.edit(KUSTOMIZATION, "  - quota.yaml\n", "  - quota.yaml\n  - secret.yaml\n")


def listed(copy: Copy) -> None:
    resource(copy, LISTED)


def patched(copy: Copy) -> None:
    resource(copy, BARE)
    copy.write(f"{PROD}/token.yaml", f"{BARE}stringData: {{token: hunter2}}\n")
    copy.edit(KUSTOMIZATION, "images:\n", "patches:\n  - path: token.yaml\nimages:\n")


def made(copy: Copy) -> None:
    copy.write(
        f"{PROD}/make.yaml",
        "apiVersion: builtin\nkind: SecretGenerator\nmetadata: {name: token}\nliterals: [token=hunter2]\n",
    )
    copy.edit(KUSTOMIZATION, "images:\n", "generators: [make.yaml]\nimages:\n")


@needs_kubectl
@pytest.mark.parametrize("edit", [listed, patched, made])
def test_a_secret_is_found_in_the_render(edit: object, tmp_path: Path) -> None:
    """In a List, by a patch, by a generator of its own: what is in Git is known to everybody."""
    copy = Copy(tmp_path)
    assert callable(edit)
    edit(copy)

    assert [Rule.SECRET_DATA] == [finding.rule for finding in copy.findings("prod")]


@needs_kubectl
def test_a_secret_of_a_patch_is_found_in_the_patch(tmp_path: Path) -> None:
    """The file and line that set it, where that can be told."""
    copy = Copy(tmp_path)
    patched(copy)

    (found,) = copy.findings("prod")

    assert (f"{PROD}/token.yaml", 4, "stringData") == (found.file, found.line, found.field)
