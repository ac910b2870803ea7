"""Findings that have no field still name the file and line that is to be mended."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.k8s.rules import Rule
from tests.app.k8s.manifests import Copy, needs_kubectl
from tests.app.k8s.mistakes import SERVE


@needs_kubectl
@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("  port: 8000\n", "  port: 8000\n  port: 8000\n", "the key port stands twice"),
        ("  port: 8000\n", "  port: 8000\n  port: [\n", ""),
    ],
)
def test_a_broken_serve_config_is_found_in_its_own_file(
    old: str, new: str, words: str, tmp_path: Path
) -> None:
    """The overlay's serve.yaml with the line of the mistake, and not the RayService that takes the text."""
    copy = Copy(tmp_path)
    copy.edit(SERVE, old, new)

    (found,) = (finding for finding in copy.findings("prod") if finding.rule is Rule.SERVE_SCHEMA)

    assert (SERVE, "") == (found.file, found.field)
    assert found.line > 6
    assert words in found.message


@needs_kubectl
@pytest.mark.parametrize("digest", ["sha256:abc123", "0" * 64])
def test_a_digest_that_is_none_is_said_to_be_none(digest: str, tmp_path: Path) -> None:
    """At the overlay's own entry, with the form that a digest has."""
    copy = Copy(tmp_path)
    copy.edit("overlays/prod/kustomization.yaml", "sha256:" + "0" * 64, f'"{digest}"')

    found = [item for item in copy.findings("prod") if item.rule is Rule.IMAGE_DIGEST]

    assert {"overlays/prod/kustomization.yaml"} == {item.file for item in found}
    assert all(f"@{digest}: a digest is sha256: and 64 hex digits" in item.message for item in found)


@needs_kubectl
def test_what_stands_in_a_shared_file_is_mended_in_the_overlay(tmp_path: Path) -> None:
    """A misnamed image leaves those of the base as they are: the overlay's `images` is pointed to."""
    copy = Copy(tmp_path)
    copy.edit("overlays/prod/kustomization.yaml", "  - name: twinpool\n", "  - name: twinpol\n")
    copy.edit("base/rayservice.yaml", "  runAsNonRoot: true", "  runAsNonRoot: false")

    found = copy.findings("prod")

    images = [item for item in found if item.rule is Rule.IMAGE_DIGEST]
    assert images
    assert all("set it under `images` in" in item.message for item in images)
    others = [item for item in found if item.rule is Rule.SECURITY]
    assert others
    assert all(
        f"(patch it in {copy.root}/overlays/prod/kustomization.yaml, this file is shared" in item.message
        for item in others
    )
