"""What is said of an overlay that kustomize refuses: the last cause, what mends it, and its own words."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.cli.k8s_refusal import refusal
from tests.app.canned import run
from tests.app.k8s.manifests import Copy, needs_kubectl

FRAME = 'E1201 02:49:02.104501   24533 run.go:72] "command failed" err='
KUSTOMIZATION = "k8s/overlays/t/kustomization.yaml"
LOST = "lstat /x/settings/policy.yaml: no such file or directory"
TWICE = "may not add resource with an already registered id: Service.v1.[noGrp]/twinpool-redis.[noNs]'"


@pytest.mark.parametrize(
    ("said", "cause", "mend"),
    [
        (
            f"recursed accumulation of path '/x/settings': file sources: [policy.yaml]: {LOST}",
            "there is no /x/settings/policy.yaml",
            "put it there, or mend its name in /x/settings/kustomization.yaml",
        ),
        (
            "accumulating resources: expected kind != 'Component' for path '/x/components/a'",
            "/x/components/a is a component and stands under `resources`",
            f"move it to `components` in {KUSTOMIZATION}",
        ),
        (
            f"accumulation err='merging resources from 'r.yaml': {TWICE}: must build at directory: 'r.yaml'",
            "Service twinpool-redis comes from two places",
            "components/redis-single brings its own: drop redis.yaml from the overlay's `resources`",
        ),
        (
            'invalid Kustomization: json: unknown field \\"imagez\\"',
            "kustomize has no field imagez: images is meant?",
            f"mend it in {KUSTOMIZATION}",
        ),
        (
            "testing value /spec/x failed: test failed",
            "the `op: test` of a patch finds something else at /spec/x",
            "see what it aims at: without that patch, `twinpool k8s render` shows what is there",
        ),
        (
            "nothing selected by ConfigMap.[noVer].[noGrp]/serve-config.[noNs]:data.[serve.yaml]",
            "a replacement finds no ConfigMap serve-config",
            "list what brings it under the overlay's `resources`, such as settings; "
            f"{KUSTOMIZATION} wants it",
        ),
        (
            "accumulating resources: accumulation err='accumulating resources from 'quota.yaml': "
            "missing metadata.name in object': must build at directory: 'quota.yaml': file is not directory",
            "quota.yaml: missing metadata.name in object",
            f"mend what is named; kustomize was at {KUSTOMIZATION}",
        ),
    ],
)
def test_the_cause_is_short_and_the_mend_fits(said: str, cause: str, mend: str) -> None:
    """Without the frame of kubectl's log, which stays out of the whole as well."""
    found = refusal(f'# Warning: old\n{FRAME}"{said}"\n', Path("k8s/overlays/t"))

    assert (cause, mend) == (found.cause, found.mend)
    assert said.replace("\\", "") == found.whole


def test_words_on_several_lines_and_of_kustomize_itself() -> None:
    """The other form of the frame, and none at all."""
    text = "trouble with path: `\n\tpath: a\n\t`"
    framed = refusal(f"{FRAME}<\n\t{text}\n >\n", Path("t"))
    bare = refusal(f"Error: {text}\n", Path("t"))

    assert "trouble with path: ` path: a `" == framed.whole == bare.whole == framed.cause


@needs_kubectl
def test_both_commands_say_it_and_end_alike(tmp_path: Path) -> None:
    """Exit code 1 of render and of lint: the manifests are wrong, and kustomize's own words stand beside."""
    copy = Copy(tmp_path)
    copy.edit(
        "overlays/prod/kustomization.yaml",
        "  - ../../components/wiring\n",
        "  - ../../components/redis-single\n  - ../../components/wiring\n",
    )
    overlay = str(copy.root / "overlays" / "prod")

    rendered, linted = run("k8s", "render", overlay), run("k8s", "lint", overlay)

    assert (1, 1) == (rendered.exit_code, linted.exit_code)
    assert "error: " in rendered.stderr
    for said in (rendered.stderr, linted.stdout):
        assert "twinpool-redis comes from two places" in said
        assert "drop redis.yaml from the overlay's `resources`" in said
        assert "kustomize: accumulating components" in said
        assert "run.go" not in said


def test_a_folder_that_is_no_overlay(tmp_path: Path) -> None:
    """Exit code 2 of both, as for a folder that is not there, with the overlays that are below."""
    copy = Copy(tmp_path)
    below = f"name one of {copy.root}/overlays/dev-cpu, {copy.root}/overlays/prod"

    for folder in (tmp_path, copy.root, copy.root / "overlays"):
        rendered, linted = run("k8s", "render", str(folder)), run("k8s", "lint", str(folder))
        assert (2, 2) == (rendered.exit_code, linted.exit_code)
        assert f"{folder}: there is no kustomization.yaml here" in rendered.stderr
        assert below in rendered.stderr
        assert below in linted.stdout
    assert (
        "give it one, as k8s/overlays/prod has it" in run("k8s", "lint", str(copy.root / "operator")).stdout
    )
