"""What a kustomization names and is not there is found where it is named."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.app.canned import run
from tests.app.k8s.manifests import Copy
from tests.app.k8s.mistakes import PROD

OVERLAY, SETTINGS = f"{PROD}/kustomization.yaml", f"{PROD}/settings/kustomization.yaml"


@pytest.mark.parametrize(
    ("file", "old", "new", "words"),
    [
        (
            OVERLAY,
            "components/gcs-ft-redis",
            "components/gcs-redis",
            ":13: components[0]: there is no folder ../../components/gcs-redis: gcs-ft-redis is meant?",
        ),
        (OVERLAY, "quota.yaml", "quotas.yaml", ":10: resources[2]: there is no file quotas.yaml: quota.yaml"),
        (
            OVERLAY,
            "../../base",
            "../../components",
            ":8: resources[0]: there is no kustomization.yaml in the",
        ),
        (
            OVERLAY,
            "components:",
            "  - ../../components/gateway\ncomponents:",
            ":12: resources[4]: ../../components/gateway is a component: list it under `components`",
        ),
        (
            OVERLAY,
            "components:",
            "components:\n  - settings",
            ":13: components[0]: settings is no component: list it under `resources`",
        ),
        (
            SETTINGS,
            "[serve.yaml]",
            "[serv.yaml]",
            ":18: configMapGenerator[1].files[0]: there is no file serv.yaml: serve.yaml is meant?",
        ),
        (
            SETTINGS,
            "[model.env]",
            "[mode.env]",
            ":25: configMapGenerator[2].envs[0]: there is no file mode.env: model.env is meant?",
        ),
        (
            OVERLAY,
            "images:",
            "patches:\n  - path: nope.yaml\nimages:",
            ":19: patches[0].path: there is no file nope.yaml",
        ),
    ],
)
def test_what_leads_to_nothing_is_found_where_it_is_named(
    file: str, old: str, new: str, words: str, tmp_path: Path
) -> None:
    """One finding with the file, the line and the entry, and the near name; exit code 1."""
    copy = Copy(tmp_path)
    copy.edit(file, old, new)

    done = run("k8s", "lint", str(copy.root / PROD))

    found = [line for line in done.stdout.splitlines() if not line.startswith("note: ")]
    assert 1 == done.exit_code
    assert 1 == len(found), found
    assert f"{copy.root}/{file}{words}" in found[0]
    assert "note: nothing was rendered" in done.stdout


def test_an_overlay_that_was_moved_is_one_finding(tmp_path: Path) -> None:
    """It is said once that it lies in the wrong place, and not for each of its entries."""
    copy = Copy(tmp_path)
    away = tmp_path / "a" / "away"
    shutil.copytree(copy.root / PROD, away)

    done = run("k8s", "lint", str(away))

    found = [line for line in done.stdout.splitlines() if "[yaml]" in line]
    assert 1 == len(found), found
    assert (
        f"{away}/kustomization.yaml:8: resources[0]: there is no ../../base, nor what the 4 other" in found[0]
    )
    assert "an overlay lies in k8s/overlays of the checkout" in found[0]


def test_a_file_that_is_no_text_is_there(tmp_path: Path) -> None:
    """A binary file of a generator is not called missing."""
    copy = Copy(tmp_path)
    (copy.root / PROD / "settings" / "SHA256SUMS").write_bytes(b"\xff\xfe\x00")

    assert "there is no file" not in run("k8s", "lint", str(copy.root / PROD)).stdout
