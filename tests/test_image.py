"""The Dockerfile's own steps, in a scratch root where no image can be built.

Left out are the steps that fetch packages: `apt-get`, the locks from an index, the embedded model.  What
they would bring is lent by the environment of the tests.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FETCHES = ("apt-get", "groupadd", "--requirement", "--index-url", "deployments.embedded_model", "vllm==")
OTHER_USER = 65534  # nobody


def stage(name: str) -> str:
    """The lines of one stage, continuations joined."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    lines = text.partition(f" AS {name}\n")[2].partition("\nFROM ")[0]
    lines = re.sub(r"^\s*#.*\n", "", lines, flags=re.MULTILINE)
    return re.sub(r"\\\n\s*", " ", lines)


def steps(name: str) -> list[str]:
    """The commands of its RUN lines."""
    return re.findall(r"^RUN (.*)$", stage(name), re.MULTILINE)


def copies(name: str) -> list[str]:
    """What its COPY lines take out of the checkout."""
    taken = re.findall(r"^COPY (?!--from)(.*)$", stage(name), re.MULTILINE)
    return [part for line in taken for part in line.split()[:-1]]


def ignored() -> list[str]:
    """What .dockerignore lets through."""
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    return [line[1:] for line in lines if line.startswith("!")]


@pytest.mark.parametrize("name", ["wheel", "common"])
def test_what_is_copied_is_there_and_not_ignored(name: str) -> None:
    """A path that .dockerignore holds back would end the build."""
    for path in copies(name):
        assert (ROOT / path).exists()
        assert path.partition("/")[0] in ignored()


@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_a_target_ends_as_a_user_without_rights(target: str) -> None:
    """By number, so that Kubernetes can tell it from root, and after the last step that installs."""
    last = re.findall(r"^(RUN|USER) ?(.*)$", stage(target), re.MULTILINE)[-1]

    assert ("USER", "1000:1000") == last


@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_twinpool_is_installed_without_resolving_and_then_checked(target: str) -> None:
    """pip chooses no version behind the locks' back, and what it finds broken ends the build."""
    found = steps(target)
    wheel = next(number for number, step in enumerate(found) if "/*.whl" in step)

    assert "--no-deps --no-index" in found[wheel]
    assert "pip check" in found[wheel + 1]


def test_what_kuberay_needs_is_in_the_image() -> None:
    """Its start command is run by bash, its probes use wget."""
    installed = next(step for step in steps("common") if "apt-get install" in step).split()

    assert {"bash", "wget", "ca-certificates"} <= set(installed)


@pytest.mark.long
def test_the_steps_of_the_cpu_target_make_a_command_that_works(tmp_path: Path) -> None:
    """Wheel, installation, check and proof by the Dockerfile's own commands; another user can run it."""
    source, wheels, prefix = tmp_path / "source", tmp_path / "wheels", tmp_path / "prefix"
    source.mkdir()
    for path in {*copies("wheel"), *copies("common")}:
        origin, target = ROOT / path, source / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if origin.is_dir():
            shutil.copytree(
                origin, target, ignore=shutil.ignore_patterns("__pycache__", "results"), dirs_exist_ok=True
            )
        else:
            shutil.copy(origin, target)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(prefix)], check=True)
    site = next(prefix.glob("lib/python*/site-packages"))
    (site / "lent.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    environment = {
        "PATH": f"{prefix}/bin:{os.environ['PATH']}",
        "SOURCE": str(source),
        "WHEELS": str(wheels),
        "HOME": str(tmp_path),
        "TMPDIR": str(tmp_path),
    }

    run = [
        step for name in ("wheel", "cpu") for step in steps(name) if not any(word in step for word in FETCHES)
    ]
    assert 4 == len(run)
    for step in run:
        command = step.replace("/tmp/check", str(tmp_path / "check"))
        done = subprocess.run(
            ["sh", "-ec", command], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert 0 == done.returncode, f"{step}\n{done.stdout}{done.stderr}"

    installed = site / "app"
    assert (installed / "main.py").is_file(), "the wheel is installed, not the checkout linked"
    for file in [*installed.rglob("*"), *(site / "autoscaling").rglob("*")]:
        assert file.stat().st_mode & 0o044 == 0o044, f"{file} cannot be read by others"
    _run_as_another_user(prefix, environment["PATH"], tmp_path)


def _run_as_another_user(prefix: Path, path: str, folder: Path) -> None:
    """The installed command, by a user who owns none of it."""
    interpreter = (prefix / "bin" / "python").resolve()
    if os.getuid() != 0 or not all(parent.stat().st_mode & 0o001 for parent in interpreter.parents):
        pytest.skip(f"the last step is not tried: no other user can be, or may run {interpreter}")
    for parent in (folder, *folder.parents):
        if "pytest" in parent.name:
            parent.chmod(0o755)
    done = subprocess.run(
        [f"{prefix}/bin/twinpool", "--version"],
        user=OTHER_USER,
        env={"PATH": path, "HOME": "/nonexistent"},
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    assert 0 == done.returncode, done.stderr
    assert "twinpool 0.1.0" in done.stdout
