"""`twinpool k8s render` and `lint`: forms of output, exit codes, and what is said when a tool is missing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.app.canned import run
from tests.app.k8s.manifests import OVERLAYS, ROOT, Copy, needs_kubectl

SECRET = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: token\nstringData:\n  token: hunter2\n"


@pytest.fixture
def at_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if started in the checkout."""
    monkeypatch.chdir(ROOT)


@needs_kubectl
@pytest.mark.usefixtures("at_home")
def test_without_arguments_every_overlay_is_checked() -> None:
    """Exit code 0, one line each, and what was not checked."""
    done = run("k8s", "lint")

    assert 0 == done.exit_code, done.output
    assert [f"k8s/overlays/{name}: ok" for name in OVERLAYS] == [
        line.partition(",")[0] for line in done.stdout.splitlines() if not line.startswith("note: ")
    ]
    assert "note: " in done.stdout


@needs_kubectl
@pytest.mark.usefixtures("at_home")
def test_an_overlay_is_rendered_by_its_name() -> None:
    """The same objects as kubectl prints."""
    done = run("k8s", "render", "prod")

    assert 0 == done.exit_code
    assert "kind: RayService" in done.stdout
    assert done.stdout == run("k8s", "render", "k8s/overlays/prod").stdout


def test_a_folder_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 2, and where to look."""
    monkeypatch.chdir(tmp_path)
    done = run("k8s", "render", "nowhere")

    assert 2 == done.exit_code
    assert "nowhere: no such folder" in done.stderr


@pytest.mark.usefixtures("at_home")
def test_without_a_renderer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither kubectl nor kustomize: exit code 2, and what to install; nothing is called fine."""
    monkeypatch.setenv("PATH", "/nonexistent")
    rendered, linted = run("k8s", "render", "prod"), run("k8s", "lint", "prod")

    assert (2, 2) == (rendered.exit_code, linted.exit_code)
    assert "neither kubectl nor kustomize" in rendered.stderr
    assert "install kubectl" in linted.stdout


@needs_kubectl
def test_what_kustomize_refuses(tmp_path: Path) -> None:
    """Render ends with 1 and kustomize's own words; lint says the same and cannot tell more."""
    copy = Copy(tmp_path)
    copy.edit("overlays/prod/kustomization.yaml", "  - quota.yaml\n", "  - quotas.yaml\n")
    overlay = str(copy.root / "overlays" / "prod")

    rendered, linted = run("k8s", "render", overlay), run("k8s", "lint", overlay)

    assert 1 == rendered.exit_code
    assert "quotas.yaml" in rendered.stderr
    assert 1 == linted.exit_code
    assert "quotas.yaml" in linted.stdout


def test_a_file_that_is_no_overlay(tmp_path: Path) -> None:
    """A rendered file is judged by the rules about single objects, with its own lines."""
    file = tmp_path / "secret.yaml"
    file.write_text(SECRET, encoding="utf-8")

    done = run("k8s", "lint", str(file))

    assert 1 == done.exit_code
    assert f"{file}:5: stringData: Secret token has data" in done.stdout
    assert "[secret-data]" in done.stdout


def test_a_file_that_is_no_yaml(tmp_path: Path) -> None:
    """Its line, and exit code 1."""
    file = tmp_path / "broken.yaml"
    file.write_text("kind: Pod\nkind: Job\n", encoding="utf-8")

    done = run("k8s", "lint", str(file))

    assert 1 == done.exit_code
    assert f"{file}:2: the key kind stands twice [yaml]" in done.stdout


def test_a_kind_that_nobody_knows(tmp_path: Path) -> None:
    """A mistyped kind is a finding and not a thing that was not checked."""
    file = tmp_path / "typo.yaml"
    file.write_text("apiVersion: v1\nkind: ConfigMapp\nmetadata:\n  name: a\n", encoding="utf-8")

    done = run("k8s", "lint", str(file))

    assert 1 == done.exit_code
    assert "[kind]" in done.stdout


def test_an_object_that_stands_twice(tmp_path: Path) -> None:
    """The second would overwrite the first."""
    file = tmp_path / "twice.yaml"
    config_map = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n"
    file.write_text(f"{config_map}---\n{config_map}", encoding="utf-8")

    done = run("k8s", "lint", str(file))

    assert 1 == done.exit_code
    assert f"{file}:9: ConfigMap/a: metadata.name: ConfigMap/a stands twice" in done.stdout


def found_as(form: str, text: str, folder: Path) -> Any:
    file = folder / "secret.yaml"
    file.write_text(text, encoding="utf-8")
    return run("k8s", "lint", "--format", form, str(file))


def test_findings_as_json(tmp_path: Path) -> None:
    """File, line, field, rule and message of each."""
    done = found_as("json", SECRET, tmp_path)

    report = json.loads(done.stdout)[0]
    assert 1 == done.exit_code
    assert not report["ok"]
    assert [("stringData", 5, "secret-data")] == [
        (finding["field"], finding["line"], finding["rule"]) for finding in report["findings"]
    ]


def test_findings_as_annotations(tmp_path: Path) -> None:
    """One workflow command each."""
    done = found_as("github", SECRET, tmp_path)

    assert done.stdout.startswith(f"::error file={tmp_path}/secret.yaml,line=5,col=1::stringData: ")


def test_a_form_that_is_none(tmp_path: Path) -> None:
    """Wrong usage is 2."""
    assert 2 == found_as("xml", SECRET, tmp_path).exit_code


def test_standard_input() -> None:
    """A render comes by a pipe, too."""
    done = subprocess.run(
        [sys.executable, "-m", "app.cli.main", "k8s", "lint", "-"],
        input=SECRET,
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        timeout=120,
    )

    assert 1 == done.returncode, done.stderr
    assert "-:5: stringData" in done.stdout


@pytest.mark.parametrize("text", ["", "---\n", "# nothing\n"])
def test_nothing_is_not_called_good(text: str, tmp_path: Path) -> None:
    """Exit code 2: a render that failed in front of a pipe leaves nothing, which was never checked."""
    empty = tmp_path / "rendered.yaml"
    empty.write_text(text, encoding="utf-8")

    done = run("k8s", "lint", str(empty))

    assert 2 == done.exit_code
    assert f"{empty}: there are no objects: see whether" in done.stdout


def test_a_renderer_that_prints_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for an overlay: exit code 2 where kubectl ends well and without a word."""
    kubectl = tmp_path / "kubectl"
    kubectl.write_text("#!/bin/sh\n", encoding="utf-8")
    kubectl.chmod(0o755)
    copy = Copy(tmp_path / "copy")
    monkeypatch.setenv("PATH", str(tmp_path))

    assert 2 == run("k8s", "lint", str(copy.root / "overlays" / "prod")).exit_code


@needs_kubectl
@pytest.mark.usefixtures("at_home")
@pytest.mark.parametrize("folder", ["k8s/components/gateway", "k8s/overlays/prod/settings"])
def test_what_has_no_service_is_not_called_checked(folder: str) -> None:
    """The line that says ok says that most rules had nothing to check, in both forms for people."""
    text, github = run("k8s", "lint", folder), run("k8s", "lint", "-o", "github", folder)

    assert (0, 0) == (text.exit_code, github.exit_code)
    for done in (text, github):
        assert "and no RayService: most of the" in done.stdout.splitlines()[0]


@pytest.mark.usefixtures("at_home")
@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("settings/policy.yaml", "`twinpool policy validate k8s/overlays/prod/settings/policy.yaml`"),
        ("settings/serve.yaml", "lint the folder k8s/overlays/prod"),
        ("settings/timings.yaml", "lint the folder k8s/overlays/prod"),
        ("kustomization.yaml", "lint the folder k8s/overlays/prod"),
    ],
)
def test_a_source_of_an_overlay_is_no_render(file: str, words: str) -> None:
    """Exit code 2, and what to name instead."""
    done = run("k8s", "lint", f"k8s/overlays/prod/{file}")

    assert 2 == done.exit_code
    assert f"{file}: this is a source of an overlay, no render: {words}" in done.stdout


@pytest.mark.usefixtures("at_home")
def test_the_policy_check_of_what_is_no_policy(tmp_path: Path) -> None:
    """Rendered manifests are called so, and an overlay's policy is named; exit code 2 of both."""
    file = tmp_path / "mine.yaml"
    file.write_text("apiVersion: v1\nkind: Namespace\n---\nkind: RayService\n", encoding="utf-8")

    manifests, folder = run("policy", "validate", str(file)), run("policy", "validate", "k8s/overlays/prod")

    assert (2, 2) == (manifests.exit_code, folder.exit_code)
    assert f"{file}: these look like rendered manifests" in manifests.stdout
    assert "name k8s/overlays/prod/settings/policy.yaml" in folder.stdout
