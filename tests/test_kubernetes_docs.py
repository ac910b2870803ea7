"""The page on Kubernetes: what needs no cluster is run from it, and the rest names what is there."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from app.cli import policy_apply
from app.cli.main import cli

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "kubernetes.md").read_text(encoding="utf-8")
OFFLINE = "without a cluster"
PROD = ROOT / "k8s" / "overlays" / "prod"
RAY_SERVICE = "twinpool"
MADE_BY_KUBERAY = f"{RAY_SERVICE}-serve-svc"
LIMIT_S = 150
# How many words make up a verb of kubectl, where it is more than one.
VERB_WORDS = {
    ("create", "secret"): 3,
    ("create", "rolebinding"): 2,
    ("auth", "can-i"): 2,
    ("rollout", "status"): 2,
}

needs_kubectl = pytest.mark.skipif(
    shutil.which("kubectl") is None, reason="kubectl is not on PATH: nothing can be rendered"
)
needs_manifests = pytest.mark.skipif(
    not PROD.is_dir(), reason="k8s/overlays/prod is not in this checkout: the page's commands are not run"
)


def blocks(language: str) -> list[tuple[str, str]]:
    """Every block of a language, with the heading of level 2 above it."""
    found = []
    for part in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]:
        heading = part.partition("\n")[0]
        found += [(heading, block) for block in re.findall(rf"```{language}\n(.*?)```", part, re.DOTALL)]
    return found


SHELL = blocks("sh")
RUN = [block for heading, block in SHELL if heading.endswith(OFFLINE)]


def checked(block: str) -> str:
    """The block as a script that ends at the first line with another exit code than the one it states."""
    lines: list[str] = []
    command, until = "", None  # the last command, and the word that ends the text below it
    for line in block.splitlines():
        lines.append(line)
        if until is None:
            command = line
            begins = re.search(r"<<'(\w+)'$", line)
            until = None if begins is None else begins[1]
        elif line == until:
            until = None
        if until is None:
            expected = re.search(r"  # exit code (\d+)", command)
            code = 0 if expected is None else int(expected[1])
            said = f'echo "exit code $found: "{shlex.quote(command)} >&2'
            lines.append(f'found=$?; [ "$found" -eq {code} ] || {{ {said}; exit 99; }}')
    return "\n".join(lines)


@needs_kubectl
@needs_manifests
def test_what_needs_no_cluster_runs(tmp_path: Path) -> None:
    """Block after block in a copy of the manifests, each line with the exit code that the page says."""
    shutil.copytree(ROOT / "k8s", tmp_path / "k8s")
    shutil.copy(ROOT / ".gitignore", tmp_path)
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    programs = tmp_path / "bin"
    programs.mkdir()
    twinpool = programs / "twinpool"
    twinpool.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m app.cli.main "$@"\n', encoding="utf-8")
    twinpool.chmod(0o755)
    environment = os.environ | {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "KUBECONFIG": "/dev/null",  # no cluster may be asked
    }
    assert len(RUN) >= 4
    for block in RUN:
        done = subprocess.run(
            ["bash", "-c", checked(block)],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        assert 0 == done.returncode, f"{block}\n{done.stdout}\n{done.stderr}"
    assert (tmp_path / "build" / "mine.yaml").stat().st_size > 0
    changed = set((tmp_path / "build" / "after.yaml").read_text().splitlines()) - set(
        (tmp_path / "build" / "before.yaml").read_text().splitlines()
    )
    assert ["overload: {retryAfterSeconds: 5}"] == [line.partition("#")[0].strip() for line in changed]


def test_every_block_is_a_script() -> None:
    """By bash's own reading."""
    for _, block in SHELL:
        done = subprocess.run(["bash", "-n"], input=block, capture_output=True, text=True, check=False)
        assert (0, "") == (done.returncode, done.stderr), block


def test_commands_of_ours_have_these_options() -> None:
    """Each `twinpool ...` of a block is a command of ours, with options that it has."""
    lines = [line for _, block in SHELL for line in block.splitlines()]
    ours = [line for line in lines if re.search(r"(?:^|=\S+ )twinpool [a-z]", line)]
    called = [line.split("twinpool ", 1)[1] for line in ours]
    assert called
    for line in called:
        words = line.partition(" |")[0].partition("  #")[0].split()
        if words[0] == "k8s" and not PROD.is_dir():
            continue
        command: Any = typer.main.get_command(cli)
        while hasattr(command, "commands"):
            command = command.commands[words.pop(0)]
        known = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("-")} <= known, line


@needs_kubectl
def test_options_of_kubectl_are_its_own() -> None:
    """Each option of a kubectl command is in that command's help, or one of all commands."""
    everywhere = said("options")
    for line in [line for _, block in SHELL for line in block.splitlines() if "kubectl " in line]:
        call = re.split(r"  #| &| >", line.split("kubectl ", 1)[1])[0]
        words = shlex.split(call)
        words = words[: words.index("--")] if "--" in words else words
        options = [word.partition("=")[0] for word in words if word.startswith("--")]
        plain = without_values(words)
        verb = plain[: VERB_WORDS.get((plain[0], plain[1] if len(plain) > 1 else ""), 1)]
        shown = said(*verb, "--help") + everywhere
        unknown = [option for option in options if not re.search(rf"{option}[= :]", shown)]
        assert unknown == [], line


def without_values(words: list[str]) -> list[str]:
    """The words that are neither an option nor the value of `--namespace`."""
    found, skip = [], False
    for word in words:
        if not skip and not word.startswith("-"):
            found.append(word)
        skip = word == "--namespace"
    return found


def said(*arguments: str) -> str:
    done = subprocess.run(["kubectl", *arguments], capture_output=True, text=True, check=True)
    return done.stdout


@needs_manifests
def test_every_path_of_the_manifests_is_there() -> None:
    """A copy is the overlay that it was copied from."""
    found = {path.rstrip("/.") for path in re.findall(r"\bk8s/[\w./-]+", PAGE)}
    named = {re.sub("overlays/(mine|four)", "overlays/prod", path) for path in found}

    assert {path for path in named if not (ROOT / path).exists()} == set()


@needs_manifests
def test_every_name_is_one_of_the_manifests() -> None:
    """Objects, Secrets and Roles of the page, but for what KubeRay makes and second ones of a rotation."""
    known = "\n".join(file.read_text(encoding="utf-8") for file in (ROOT / "k8s").rglob("*.yaml"))
    named = {name.removesuffix("-2") for name in re.findall(r"\btwinpool-[a-z]+(?:-[a-z0-9]+)*", PAGE)}

    assert {name for name in named if name not in known} - {MADE_BY_KUBERAY} == set()


@needs_manifests
def test_the_defaults_of_policy_apply_are_the_manifests() -> None:
    """Namespace and ConfigMap are the names that every overlay has."""
    base = yaml.safe_load((ROOT / "k8s" / "base" / "kustomization.yaml").read_text(encoding="utf-8"))
    settings = yaml.safe_load((PROD / "settings" / "kustomization.yaml").read_text(encoding="utf-8"))

    assert base["namespace"] == policy_apply.NAMESPACE
    assert policy_apply.CONFIG_MAP in [made["name"] for made in settings["configMapGenerator"]]


@needs_kubectl
@needs_manifests
def test_the_patch_of_a_rotation_meets_what_it_tests() -> None:
    """The Secret that it replaces is the one that the overlay names, at that place."""
    (patch,) = [yaml.safe_load(block) for heading, block in blocks("yaml") if heading == "Rotate keys"]
    rendered = yaml.safe_load_all(said("kustomize", str(PROD)))
    (service,) = [found for found in rendered if found["kind"] == "RayService"]

    assert [("test", "twinpool-ray-token"), ("replace", "twinpool-ray-token-2")] == [
        (step["op"], step["value"]) for step in patch
    ]
    for step in patch:
        found = service
        for part in step["path"].strip("/").split("/"):
            found = found[part]
        assert "twinpool-ray-token" == found


def test_what_a_gitops_tool_is_given_is_yaml() -> None:
    """One document each; the pointer that Argo CD ignores is the entry that `policy apply` replaces."""
    documents = [yaml.safe_load(block) for heading, block in blocks("yaml") if heading == "GitOps"]

    assert ["Application", "Kustomization"] == [document["kind"] for document in documents[:2]]
    ignored = {rule["kind"]: rule for rule in documents[0]["spec"]["ignoreDifferences"]}
    assert policy_apply.CONFIG_MAP == ignored["ConfigMap"]["name"]
    assert ["/data/policy.yaml"] == ignored["ConfigMap"]["jsonPointers"]


@needs_manifests
def test_the_entry_that_flux_leaves_alone_is_the_one_of_the_overlays() -> None:
    """It is the entry of `settings` with options: a second one of that name would be refused."""
    (entry,) = [yaml.safe_load(block) for heading, block in blocks("yaml") if heading == "GitOps"][2]
    settings = yaml.safe_load((PROD / "settings" / "kustomization.yaml").read_text(encoding="utf-8"))

    assert {key: entry[key] for key in ("name", "files")} in settings["configMapGenerator"]


def test_one_sentence_per_line() -> None:
    """Outside of tables and blocks."""
    text = re.sub(r"```.*?```", "", PAGE, flags=re.DOTALL)
    lines = [line for line in text.splitlines() if line and not line.startswith(("|", "#", " "))]

    assert [line for line in lines if re.search(r"[a-z`)]\. [A-Z`]", line)] == []
