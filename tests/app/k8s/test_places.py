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
