"""Times that nest: what follows from L and D is said at once, in the file that has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.k8s.rules import Rule
from tests.app.k8s.manifests import Copy, needs_kubectl
from tests.app.k8s.mistakes import BASE, PROD

TIMINGS = f"{PROD}/settings/timings.yaml"


def said(copy: Copy) -> dict[str, str]:
    """The findings in timings.yaml by field."""
    return {
        one.field.removeprefix("spec."): one.message
        for one in copy.findings("prod")
        if (one.rule, one.file) == (Rule.TIMINGS, TIMINGS)
    }


@needs_kubectl
def test_a_longer_l_is_followed_to_its_end(tmp_path: Path) -> None:
    """Every time that has to grow with L is named in one run, with the seconds that it needs."""
    copy = Copy(tmp_path)
    copy.edit(TIMINGS, 'longestGenerationSeconds: "300"', 'longestGenerationSeconds: "900"')

    found = said(copy)

    assert {
        "haproxyHardStopSeconds",
        "rayDrainSeconds",
        "podGraceSeconds",
        "clusterDeletionDelaySeconds",
    } == set(found)
    assert "at least L + 60 = 960" in found["haproxyHardStopSeconds"]
    assert "at least L + D + 30 = 1050" in found["rayDrainSeconds"]
    assert "at least Ray's drain + 30 = 1080" in found["podGraceSeconds"]
    assert "at least the pods' grace of 1080" in found["clusterDeletionDelaySeconds"]


@needs_kubectl
def test_no_grace_beside_no_drain(tmp_path: Path) -> None:
    """Neither hides the other."""
    copy = Copy(tmp_path)
    copy.edit(BASE, "{name: RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S", "{name: RAY_NO_DRAIN")
    copy.edit(TIMINGS, "podGraceSeconds: 480", "podGraceSeconds: 0")
    text = (copy.root / "components/wiring/kustomization.yaml").read_text(encoding="utf-8")
    copy.write(
        "components/wiring/kustomization.yaml",
        text.replace("name=RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S", "name=RAY_NO_DRAIN"),
    )

    found = [(one.field, one.message) for one in copy.findings("prod") if one.rule is Rule.TIMINGS]

    assert any("DRAIN_TIMEOUT_S is not set" in message for _, message in found), found
    assert ("spec.podGraceSeconds", "is 0: at least Ray's drain + 30 = 480") in found


@needs_kubectl
@pytest.mark.parametrize("text", ["15m", "", "900.5"])
def test_seconds_are_asked_for(text: str, tmp_path: Path) -> None:
    """What is no number of seconds is shown, with one that is."""
    copy = Copy(tmp_path)
    copy.edit(TIMINGS, 'longestGenerationSeconds: "300"', f'longestGenerationSeconds: "{text}"')

    assert {"longestGenerationSeconds": f"is {text!r}: write seconds, such as 900"} == said(copy)
