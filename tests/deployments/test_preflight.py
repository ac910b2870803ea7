"""Preflight: what stops an installation or a start, and what the user reads about it."""

from __future__ import annotations

import ast
import os
import socket
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import platformdirs
import pytest

from deployments import machine, machine_proc, preflight
from deployments.machine import Facts, Place, Port
from deployments.preflight import Finding, Plan, check, describe_fetch

GIB = 1 << 30
ROOT = Path(__file__).parents[2]
SERVE_VLLM = Plan(flavour="cpu")
SERVE_SIMULATED = Plan(flavour="base")
INSTALL_TESTS = Plan(flavour="dev", serves=False)

GOOD = Facts(
    system="Linux",
    machine="x86_64",
    python=(3, 11),
    other_pythons=(),
    has_venv=True,
    glibc=(2, 36),
    has_libnuma=True,
    cpu_flags=frozenset({"avx2", "avx512f"}),
    cpus=2,
    memory_bytes=16 * GIB,
    memory_limit="machine",
    shm_bytes=2 * GIB,
    venv=Place("/home/ann/twinpool/.venv", True, 50 * 10**9, 1),
    cache=Place("/home/ann/.cache/twinpool", True, 50 * 10**9, 1),
    temporary=Place("/tmp", True, 50 * 10**9, 1),
    model_cached=False,
    port=Port("127.0.0.1", 8000, True),
)


def failures(facts: Facts, plan: Plan) -> list[Finding]:
    return [finding for finding in check(facts, plan) if not finding.ok]


@pytest.mark.parametrize("plan", [SERVE_VLLM, SERVE_SIMULATED, INSTALL_TESTS])
def test_a_good_machine_is_shown_nothing(plan: Plan) -> None:
    """Every check is silent when all is well."""
    lines = [line for finding in check(GOOD, plan) for line in finding.lines()]

    assert lines == []


@pytest.mark.parametrize(
    ("change", "message", "mend"),
    [
        (
            {"system": "Darwin", "machine": "aarch64", "glibc": None, "has_libnuma": None, "cpu_flags": None},
            "vLLM for CPU needs Linux on x86_64 or aarch64, this is Darwin on aarch64 (ENGINE=vllm)",
            "serve the simulated engine instead: make serve ENGINE=simulated",
        ),
        (
            {"machine": "riscv64", "cpu_flags": None},
            "vLLM for CPU needs Linux on x86_64 or aarch64, this is Linux on riscv64 (ENGINE=vllm)",
            "serve the simulated engine instead: make serve ENGINE=simulated",
        ),
        (
            {"python": (3, 9), "other_pythons": ("python3.12", "python3.11")},
            "Python 3.11 or newer is needed, this is 3.9 (PYTHON)",
            "name the one that is here: make serve PYTHON=python3.12",
        ),
        (
            {"python": (3, 9)},
            "Python 3.11 or newer is needed, this is 3.9 (PYTHON)",
            "install one and name it: make serve PYTHON=python3.13",
        ),
        (
            {"python": (3, 14)},
            "Python up to 3.13 is supported, this is 3.14 (PYTHON)",
            "install one and name it: make serve PYTHON=python3.13",
        ),
        (
            {"has_venv": False},
            "this Python cannot make virtual environments: ensurepip is missing (PYTHON)",
            "install it, on Debian and Ubuntu: sudo apt install python3.11-venv",
        ),
        (
            {"glibc": (2, 28)},
            "vLLM for CPU needs glibc 2.31 or newer, this is 2.28 (ENGINE=vllm)",
            "use a newer distribution, or serve the simulated engine instead: make serve ENGINE=simulated",
        ),
        (
            {"has_libnuma": False},
            "vLLM for CPU needs the system library libnuma.so.1 (ENGINE=vllm)",
            "sudo apt install libnuma1, or sudo dnf install numactl-libs; "
            "or serve the simulated engine instead: make serve ENGINE=simulated",
        ),
        (
            {"cpu_flags": frozenset({"sse4_2", "avx"})},
            "vLLM for CPU needs a processor with AVX2, this one has none (ENGINE=vllm)",
            "serve the simulated engine instead: make serve ENGINE=simulated",
        ),
        (
            {"memory_bytes": 6 * GIB},
            "6.0 GiB of memory free on this machine, about 7.5 GiB needed (ENGINE=vllm)",
            "close what uses memory, or serve the simulated engine instead: make serve ENGINE=simulated",
        ),
        (
            {"memory_bytes": 2 * GIB, "memory_limit": "container"},
            "2.0 GiB of memory free in this container, about 7.5 GiB needed (ENGINE=vllm)",
            "close what uses memory, or serve the simulated engine instead: make serve ENGINE=simulated",
        ),
        (
            {"venv": Place("/srv/twinpool/.venv", False, 50 * 10**9, 1)},
            "/srv/twinpool/.venv cannot be written (VENV)",
            "change its owner, or choose another folder: VENV=PATH",
        ),
        (
            {"cache": Place("/root/.cache/twinpool", False, 50 * 10**9, 1)},
            "/root/.cache/twinpool cannot be written (TWINPOOL_CACHE)",
            "change its owner, or choose another folder: TWINPOOL_CACHE=PATH",
        ),
        (
            {"port": Port("127.0.0.1", 8000, False, owner="process 4711 (jupyter)")},
            "port 8000 on 127.0.0.1 is taken by process 4711 (jupyter) (PORT)",
            "stop what runs there (another `twinpool serve`: Ctrl-C in its terminal), "
            "or choose another port: make serve PORT=8001",
        ),
        (
            {"port": Port("127.0.0.1", 8000, False)},
            "port 8000 on 127.0.0.1 is taken (PORT)",
            "stop what runs there (another `twinpool serve`: Ctrl-C in its terminal), "
            "or choose another port: make serve PORT=8001",
        ),
        (
            {"port": Port("127.0.0.1", 80, False, reason="Permission denied")},
            "127.0.0.1:80 cannot be used: Permission denied (PORT)",
            "choose another: make serve PORT=8001",
        ),
    ],
)
def test_a_defect_is_one_error_that_names_the_setting_and_one_mend(
    change: dict[str, Any], message: str, mend: str
) -> None:
    """Each failed check is two lines: what and which setting, then what to do."""
    found = failures(replace(GOOD, **change), SERVE_VLLM)

    assert [[f"error: {message}", f"mend: {mend}"]] == [finding.lines() for finding in found]


@pytest.mark.parametrize(
    ("change", "lines"),
    [
        (
            {"shm_bytes": 64 << 20},
            [
                "note: shared memory (--shm-size) has 64 MiB; Ray will use slower files instead",
                "mend: in a container: docker run --shm-size=512m",
            ],
        ),
        (
            {"cpus": 1},
            [
                "note: 1 CPU core for 2 engines: they share it, and speed says little",
                "mend: use a machine with 2 cores or more for figures",
            ],
        ),
        (
            {"cpu_flags": frozenset({"avx2"})},
            [
                "note: this processor has AVX2 and no AVX-512: "
                "vLLM works and is slower than the published figures",
                "mend: for figures take a processor with AVX-512",
            ],
        ),
    ],
)
def test_what_only_slows_down_is_a_note(change: dict[str, Any], lines: list[str]) -> None:
    """Advice does not stop anything."""
    findings = check(replace(GOOD, **change), SERVE_VLLM)

    assert lines == [line for finding in findings for line in finding.lines()]
    assert all(finding.ok for finding in findings)


def test_the_simulated_engine_runs_where_vllm_cannot() -> None:
    """A Mac, an old processor, little memory and no libnuma do not stop ENGINE=simulated."""
    facts = replace(
        GOOD,
        system="Darwin",
        machine="aarch64",
        glibc=None,
        has_libnuma=False,
        cpu_flags=frozenset(),
        memory_bytes=3 * GIB,
        shm_bytes=None,
    )

    assert failures(facts, SERVE_SIMULATED) == []


def test_installing_needs_neither_memory_nor_a_port() -> None:
    """What only serving needs does not stop an installation."""
    facts = replace(GOOD, memory_bytes=1 * GIB, cpus=1, port=None)

    assert failures(facts, INSTALL_TESTS) == []


def test_the_unknown_never_fails() -> None:
    """Facts that could not be found out are None, and None passes."""
    facts = replace(GOOD, glibc=None, has_libnuma=None, cpu_flags=None, memory_bytes=None, shm_bytes=None)

    assert failures(facts, SERVE_VLLM) == []


@pytest.mark.parametrize(
    ("venv_gb", "tmp_gb", "cache_gb", "same_disk", "settings"),
    [
        (5.8, 5.8, 5.8, True, []),
        (5.5, 5.5, 5.5, True, ["VENV"]),  # 4.17 + 1.05 + 0.46 on one disk
        (4.3, 1.1, 0.5, False, []),
        (4.1, 1.1, 0.5, False, ["VENV"]),
        (4.3, 0.9, 0.5, False, ["TMPDIR"]),
        (4.3, 1.1, 0.4, False, ["TWINPOOL_CACHE"]),
        (0.1, 0.1, 0.1, False, ["VENV", "TMPDIR", "TWINPOOL_CACHE"]),
    ],
)
def test_folders_on_one_disk_share_its_room(
    venv_gb: float, tmp_gb: float, cache_gb: float, same_disk: bool, settings: list[str]
) -> None:
    """Each disk needs room for the sum of what lands on it."""
    facts = replace(
        GOOD,
        venv=Place("/v", True, int(venv_gb * 10**9), 1),
        temporary=Place("/t", True, int(tmp_gb * 10**9), 1 if same_disk else 2),
        cache=Place("/c", True, int(cache_gb * 10**9), 1 if same_disk else 3),
    )

    assert settings == [
        finding.mend.rpartition(": ")[2].partition("=")[0] for finding in failures(facts, SERVE_VLLM)
    ]


def test_what_is_prepared_needs_no_room() -> None:
    """After the first time neither disk nor a writable environment is asked for."""
    full = Place("/v", False, 0, 1)
    facts = replace(GOOD, venv=full, temporary=full, has_venv=False, model_cached=True)

    assert failures(facts, replace(SERVE_VLLM, prepared=True)) == []


@pytest.mark.parametrize(
    ("plan", "model_cached", "lines"),
    [
        (replace(SERVE_VLLM, prepared=True), True, ["nothing to fetch"]),
        (replace(SERVE_SIMULATED, prepared=True), False, ["nothing to fetch"]),
        (
            replace(INSTALL_TESTS, have="cpu"),
            True,
            [
                "to fetch: 23 packages into /home/ann/twinpool/.venv: about 50 MB to download, "
                "0.2 GB on disk, about 1 min on a fast network"
            ],
        ),
        (
            SERVE_VLLM,
            False,
            [
                "to fetch: 188 packages into /home/ann/twinpool/.venv: about 1050 MB to download, "
                "4.2 GB on disk, about 3 min on a fast network",
                "to fetch: the embedded model into /home/ann/.cache/twinpool: about 93 MB to download, "
                "0.5 GB on disk while it is converted, about 1 min",
                "while serving: about 7.5 GiB of memory",
            ],
        ),
        (
            SERVE_SIMULATED,
            False,
            [
                "to fetch: 98 packages into /home/ann/twinpool/.venv: about 210 MB to download, "
                "0.8 GB on disk, about 1 min on a fast network",
                "while serving: about 1.8 GiB of memory",
            ],
        ),
    ],
)
def test_the_cost_is_named_before_anything_is_fetched(
    plan: Plan, model_cached: bool, lines: list[str]
) -> None:
    """Packages, download, disk, time and memory are said beforehand, or that nothing is fetched."""
    assert lines == describe_fetch(replace(GOOD, model_cached=model_cached), plan)


def pins(name: str) -> list[str]:
    lines = (ROOT / "locks" / name).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if not line.startswith("#")]


@pytest.mark.parametrize(
    ("flavour", "files"),
    [
        ("base", ["build.txt", "base.txt"]),
        ("cpu", ["build.txt", "cpu.txt", "torch.txt"]),
        ("dev", ["build.txt", "cpu.txt", "torch.txt", "dev.txt"]),
    ],
)
def test_the_package_counts_are_those_of_the_locks(flavour: str, files: list[str]) -> None:
    """`build.txt` and `cpu.txt` share packages, which are counted once."""
    names = {pin.partition("==")[0] for file in files for pin in pins(file)}

    assert preflight.FETCH[flavour].packages == len(names)


# --- looking at the machine


BEFORE_INSTALLATION = ["machine", "machine_proc", "preflight", "preflight_checks", "preflight_plan"]


@pytest.mark.parametrize("module", BEFORE_INSTALLATION)
def test_preflight_runs_on_an_old_python_without_packages(module: str) -> None:
    """Python 3.8 can parse it, and it imports nothing but the standard library and itself."""
    text = (ROOT / "deployments" / f"{module}.py").read_text(encoding="utf-8")
    tree = ast.parse(text, feature_version=(3, 8))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}

    others = {name for name in imported if name.partition(".")[0] not in sys.stdlib_module_names}
    assert others <= {f"deployments.{name}" for name in BEFORE_INSTALLATION}


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


MEMINFO = {"proc/meminfo": "MemTotal: 9000 kB\nMemAvailable: 8000 kB\n"}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, (None, "machine")),
        (MEMINFO, (8_192_000, "machine")),
        (
            {
                **MEMINFO,
                "proc/self/cgroup": "0::/box/inner\n",
                "sys/fs/cgroup/box/inner/memory.max": "max\n",
                "sys/fs/cgroup/box/inner/memory.current": "1000\n",
                "sys/fs/cgroup/box/memory.max": "5000000\n",
                "sys/fs/cgroup/box/memory.current": "2000000\n",
                "sys/fs/cgroup/box/memory.stat": "anon 1\ninactive_file 500000\n",
            },
            (3_500_000, "container"),
        ),
        (
            {
                **MEMINFO,
                "proc/self/cgroup": "4:memory:/docker/abc\n1:cpu:/docker/abc\n",
                # Inside a container the group's own path does not exist; its limit is at the top.
                "sys/fs/cgroup/memory/memory.limit_in_bytes": "4000000\n",
                "sys/fs/cgroup/memory/memory.usage_in_bytes": "1000000\n",
            },
            (3_000_000, "container"),
        ),
        (
            {
                **MEMINFO,
                "proc/self/cgroup": "4:memory:/\n",
                "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
                "sys/fs/cgroup/memory/memory.usage_in_bytes": "1000000\n",
            },
            (8_192_000, "machine"),
        ),
    ],
)
def test_a_control_group_can_be_tighter_than_the_machine(
    tmp_path: Path, files: dict[str, str], expected: tuple[int | None, str]
) -> None:
    """The smallest room over all enclosing groups counts, file cache being reclaimable."""
    assert expected == machine_proc.available_memory(write(tmp_path, files))


def test_a_taken_port_names_the_process() -> None:
    """The listener is found through /proc; here it is this very process."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        number = listener.getsockname()[1]
        seen = machine.look_at_port("127.0.0.1", number)

    assert not seen.free
    if sys.platform == "linux":
        assert seen.owner.startswith(f"process {os.getpid()} (")


def test_a_free_port_is_free() -> None:
    """A port that nobody listens on can be taken."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        number = listener.getsockname()[1]

    assert Port("127.0.0.1", number, True) == machine.look_at_port("127.0.0.1", number)


@pytest.mark.parametrize("number", [0, -1, 65536])
def test_an_impossible_port_says_so(number: int) -> None:
    """Numbers outside 1..65535 are refused before any socket is opened."""
    assert machine.look_at_port("127.0.0.1", number).reason == "a port lies between 1 and 65535"


@pytest.mark.parametrize(
    "environment",
    [{}, {"XDG_CACHE_HOME": "/somewhere/else"}, {"TWINPOOL_CACHE": "/elsewhere"}, {"TWINPOOL_CACHE": "  "}],
)
def test_preflight_looks_at_the_folder_that_the_model_uses(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The standard-library copy of the rule agrees with platformdirs."""
    for name in ("XDG_CACHE_HOME", "TWINPOOL_CACHE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    chosen = environment.get("TWINPOOL_CACHE", "").strip()

    assert Path(chosen or platformdirs.user_cache_dir("twinpool")) == machine.cache_folder()


def test_a_folder_that_is_missing_is_judged_by_its_parent(tmp_path: Path) -> None:
    """A file in the way makes it unusable, a missing folder does not."""
    (tmp_path / "file").write_text("", encoding="utf-8")

    assert machine.place(tmp_path / "a" / "b").writable
    assert not machine.place(tmp_path / "file" / "b").writable


# --- command line


def test_a_taken_port_ends_the_script_with_2(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Errors go to stderr and nothing is announced as fetched."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        code = preflight.main(
            ["install", "--engine", "simulated", "--port", port, "--venv", str(tmp_path), "--have", "base"]
        )
    shown = capsys.readouterr()

    assert code == 2
    assert f"error: port {port} on 127.0.0.1 is taken" in shown.err
    assert "fetch" not in shown.out


def test_a_prepared_environment_passes_with_0(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Nothing is fetched and the exit code is 0."""
    code = preflight.main(["install", "--engine", "simulated", "--venv", str(tmp_path), "--have", "base"])

    assert (code, capsys.readouterr().out) == (0, "nothing to fetch\n")
