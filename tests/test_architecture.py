"""What a start may import: our own packages and no others of their names, no engine, at first nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pytest

ROOT = Path(__file__).parents[1]
HEAVY = {"vllm", "torch", "transformers"}
FROM_HERE = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"


def python(code: str, folder: Path, *options: str) -> str:
    """The output of a fresh interpreter that sees neither the working folder nor PYTHONPATH."""
    done = subprocess.run(
        [sys.executable, "-I", *options, "-c", code],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def ours(package: str) -> set[Path]:
    """Where `package` may come from: this checkout, or what is installed as twinpool, editable or not."""
    twinpool = metadata.distribution("twinpool")
    source = json.loads(twinpool.read_text("direct_url.json") or "{}").get("url", "")
    checkouts = [ROOT, Path(url2pathname(urlsplit(source).path))]
    return {
        *(Path(str(file.locate())).resolve() for file in twinpool.files or []),
        *((checkout / package / "__init__.py").resolve() for checkout in checkouts),
    }


@pytest.mark.parametrize("package", ["app", "deployments", "autoscaling"])
def test_our_packages_are_ours(package: str, tmp_path: Path) -> None:
    """The names are generic: no installed distribution of the same name stands before ours."""
    found = python(f"import {package}; print({package}.__file__)", tmp_path)

    assert Path(found.strip()).resolve() in ours(package)


@pytest.mark.parametrize("module", ["app.main", "app.ingress", "deployments.controller", "app.cli.main"])
def test_only_a_replica_pays_for_an_engine(module: str, tmp_path: Path) -> None:
    """Command, ingress and controller start in seconds, since nothing they import brings torch along."""
    code = f"{FROM_HERE}import json, {module}; print(json.dumps(list(sys.modules)))"
    loaded = json.loads(python(code, tmp_path))

    assert module in loaded
    assert {name.partition(".")[0] for name in loaded} & HEAVY == set()


def test_the_command_starts_without_what_only_a_report_needs(tmp_path: Path) -> None:
    """Every command pays for what the module of one imports: statistics and plots would double its start."""
    code = f"{FROM_HERE}import json, app.cli.main; print(json.dumps(list(sys.modules)))"
    loaded = json.loads(python(code, tmp_path))

    assert set() == {name.partition(".")[0] for name in loaded} & {"numpy", "scipy", "matplotlib", "jinja2"}


def test_preflight_starts_without_any_package(tmp_path: Path) -> None:
    """Without site-packages it runs to its end: make starts it before anything is installed."""
    arguments = ["preflight", "install", "--engine", "simulated", "--have", "base", "--venv", str(tmp_path)]
    run = "import runpy; runpy.run_module('deployments.preflight', run_name='__main__')"
    code = f"{FROM_HERE}sys.argv = {arguments!r}\n{run}"

    assert python(code, tmp_path, "-S") == "nothing to fetch\n"
