"""The model: both pools find it where it lies, and serve it by one name."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.k8s.rules import Rule
from tests.app.k8s.manifests import Copy, needs_kubectl
from tests.app.k8s.mistakes import PROD, SERVE

PLACE = "applications[0].deployments[{}].ray_actor_options.runtime_env.env_vars.TWINPOOL_POOL"


@needs_kubectl
@pytest.mark.parametrize(
    ("old", "new", "rule", "pool", "words"),
    [
        (
            '"model": "/models/model"',
            '"model": "/models/other"',
            Rule.MODEL_FOLDER,
            2,
            "engine.model is /models/other, and the pods of accelerator check /models/model",
        ),
        (
            '"model": "/models/model"',
            '"model": "organisation/name"',
            Rule.MODEL_FOLDER,
            2,
            "engine.model is organisation/name, and the pods of accelerator check /models/model",
        ),
        (
            '"method": "ngram"',
            '"model": "organisation/draft"',
            Rule.MODEL_FOLDER,
            2,
            "engine.speculative_config.model is organisation/draft, an id of the hub, and HF_HUB_OFFLINE",
        ),
        (
            '"served_name": "model"',
            '"served_name": "other"',
            Rule.ONE_MODEL,
            3,
            "engine.served_name is model, that of speculative is other",
        ),
    ],
)
def test_a_model_that_cannot_be_served(
    old: str, new: str, rule: Rule, pool: int, words: str, tmp_path: Path
) -> None:
    """Another folder than the one that is checked, an id of the hub where it is forbidden, two names."""
    copy = Copy(tmp_path)
    copy.edit(SERVE, old, new)

    (found,) = copy.findings("prod")

    assert (rule, SERVE, PLACE.format(pool)) == (found.rule, found.file, found.field)
    assert words in found.message


@needs_kubectl
def test_another_folder_is_named_by_the_environment_file(tmp_path: Path) -> None:
    """MODEL_FOLDER alone changed: both pools look elsewhere, and the file is named."""
    copy = Copy(tmp_path)
    copy.edit(f"{PROD}/settings/model.env", "MODEL_FOLDER=model", "MODEL_FOLDER=second")

    found = copy.findings("prod")

    assert [PLACE.format(2), PLACE.format(3)] == [finding.field for finding in found]
    assert all("check /models/second (MODEL_FOLDER in settings/model.env)" in one.message for one in found)


@needs_kubectl
def test_two_lengths_are_noted(tmp_path: Path) -> None:
    """They are allowed, and no finding; what it means for callers is said."""
    copy = Copy(tmp_path)
    copy.edit(SERVE, '"max_model_len": 16384', '"max_model_len": 8192')

    report = copy.report("prod")

    assert () == report.findings
    assert any("max_model_len is 8192 in speculative and 16384 in plain" in note for note in report.notes)
