"""The peer: vllm-router, a Rust router with a Python launcher, in a virtual environment of its own."""

from __future__ import annotations

import sys
import venv
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.errors import BenchError
from benchmarks.processes import run_to_end

PACKAGE = "vllm-router"
VERSION = "0.1.17"
VENV = Path(__file__).parents[1] / ".venv-peer"
INSTALL_LIMIT_S = 300.0


def prepare(say: Callable[[str], None], folder: Path = VENV) -> str:
    """Install it if it is not there; returns its version.  Raises BenchError when that cannot be done."""
    python = folder / "bin" / "python"
    if (found := _installed(python)) == VERSION:
        return found
    say(f"installing {PACKAGE} {VERSION} into {folder.name}, once, about 30 s (130 MB on disk)")
    if folder.exists() and not (folder / "pyvenv.cfg").exists():
        raise BenchError(f"{folder} exists and is no virtual environment: move it away")
    try:
        venv.EnvBuilder(clear=True, with_pip=True).create(folder)
    except (OSError, SystemExit) as error:
        raise BenchError(f"cannot make {folder}: {error}") from error
    options = ("--disable-pip-version-check", "--retries", "1", "--timeout", "15", "--only-binary", ":all:")
    run_to_end(
        "pip", [str(python), "-m", "pip", "install", *options, f"{PACKAGE}=={VERSION}"], INSTALL_LIMIT_S
    )
    found = _installed(python)
    if found is None:
        raise BenchError(f"{PACKAGE} was installed but does not run with Python {sys.version.split()[0]}")
    return found


def command(port: int, metrics_port: int, workers: Sequence[str], folder: Path = VENV) -> list[str]:
    """The router before `workers`: the policy nearest to ours, and no line of log per request."""
    return [
        *(str(folder / "bin" / "python"), "-m", "vllm_router.launch_router"),
        *("--host", "127.0.0.1", "--port", str(port)),
        *("--worker-urls", *workers),
        *("--policy", "power_of_two"),
        *("--worker-startup-check-interval", "1"),
        *("--prometheus-host", "127.0.0.1", "--prometheus-port", str(metrics_port)),
        *("--log-level", "error"),
    ]


def _installed(python: Path) -> str | None:
    if not python.exists():
        return None
    look = f"import importlib.metadata, vllm_router.router\nprint(importlib.metadata.version({PACKAGE!r}))"
    try:
        return run_to_end(PACKAGE, [str(python), "-c", look], 60.0).strip()
    except (BenchError, OSError):
        return None
