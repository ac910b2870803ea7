"""A mistyped timings.yaml is found in its own file, also where kustomize then renders nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.app.canned import run
from tests.app.k8s.manifests import Copy, needs_kubectl
from tests.app.k8s.mistakes import PROD

TIMINGS = f"{PROD}/settings/timings.yaml"


@needs_kubectl
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "apiVersion: twinpool.dev/v1alpha1",
            "apiVersion: twinpool.dev/v1",
            ":6: apiVersion: is 'twinpool.dev/v1': twinpool.dev/v1alpha1 is meant?",
        ),
        ("kind: Timings", "kind: Timing", ":7: kind: is 'Timing': Timings is meant?"),
        ("name: timings", "name: times", ":9: metadata.name: is 'times': timings is meant?"),
        (
            "rayDrainSeconds:",
            "rayDrainSecond:",
            ":16: spec.rayDrainSecond: there is no such field: rayDrainSeconds is meant?",
        ),
        ("  podGraceSeconds: 480\n", "", ":12: spec.podGraceSeconds: is missing"),
        ("spec:\n", "specs:\n", ":12: specs: there is no such field: spec is meant?"),
    ],
)
def test_a_mistyped_file_of_times(old: str, new: str, said: str, tmp_path: Path) -> None:
    """File, line, field, and what is meant; exit code 1, and no word about components/wiring's own file."""
    copy = Copy(tmp_path)
    copy.edit(TIMINGS, old, new)

    done = run("k8s", "lint", str(copy.root / PROD))

    assert 1 == done.exit_code, done.output
    assert f"{copy.root / TIMINGS}{said}" in done.stdout
    assert "components/wiring/kustomization.yaml" not in done.stdout
