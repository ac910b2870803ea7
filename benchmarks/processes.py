"""The processes of a benchmark: each has its log, and neither they nor what they start outlive the run."""

from __future__ import annotations

import contextlib
import ctypes
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import psutil

from benchmarks.errors import BenchError

MARK_ENV = "TWINPOOL_BENCH_PROCESS"  # inherited by every descendant
LOG_LINES = 15
PR_SET_PDEATHSIG = 1


class Child:
    """One process of the run; `stop` ends it with everything it has started."""

    def __init__(self, name: str, command: Sequence[str], folder: Path) -> None:
        self.name = name
        self._mark = secrets.token_hex(8)
        self._log = folder / f"{name}.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=child_environment() | {MARK_ENV: self._mark},
                start_new_session=True,  # Ctrl-C is for us; we stop our children in order
                preexec_fn=_end_with_parent,  # noqa: PLW1509  # we start children from one thread
            )

    def wait_ready(self, ready: Callable[[], bool], limit_s: float) -> None:
        """Poll until `ready()`; raises BenchError with the end of the log."""
        deadline = time.monotonic() + limit_s
        while not ready():
            status = self._process.poll()
            if status is not None:
                raise BenchError(f"{self.name} ended with status {status} at its start:\n{self.log_end()}")
            if time.monotonic() > deadline:
                raise BenchError(f"{self.name} was not ready after {limit_s:.0f} s:\n{self.log_end()}")
            time.sleep(0.1)

    def log_end(self) -> str:
        """The last lines that it wrote."""
        text = self._log.read_text(encoding="utf-8", errors="replace")
        return "\n".join(f"  {line}" for line in text.splitlines()[-LOG_LINES:])

    def stop(self, limit_s: float = 10.0) -> None:
        """Ask it to end, wait, then kill what is left of it and its descendants; never raises."""
        family = self._family()
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(limit_s)
        _end(family | self._family())
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5.0)

    def _family(self) -> set[psutil.Process]:
        """Children of children, and who was adopted by init: found by the mark, unless it renamed itself."""
        found: set[psutil.Process] = set()
        with contextlib.suppress(psutil.Error):
            found.update(psutil.Process(self._process.pid).children(recursive=True))
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                if process.environ().get(MARK_ENV) == self._mark:
                    found.add(process)
        return {process for process in found if process.pid != self._process.pid} | self._self()

    def _self(self) -> set[psutil.Process]:
        with contextlib.suppress(psutil.Error):
            if self._process.poll() is None:
                return {psutil.Process(self._process.pid)}
        return set()


def run_to_end(name: str, command: Sequence[str], limit_s: float) -> str:
    """Run a command and return its stdout; raises BenchError when it fails or takes too long."""
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=child_environment(),
        start_new_session=True,
        preexec_fn=_end_with_parent,  # noqa: PLW1509
    ) as process:
        try:
            out, err = process.communicate(timeout=limit_s)
        except BaseException as error:
            process.kill()
            process.wait()
            if isinstance(error, subprocess.TimeoutExpired):
                raise BenchError(f"{name} was not done after {limit_s:.0f} s") from error
            raise
    if process.returncode != 0:
        last = "\n".join(err.strip().splitlines()[-LOG_LINES:])
        raise BenchError(f"{name} ended with status {process.returncode}: {last}")
    return out


def module(name: str, *arguments: str) -> list[str]:
    """The command for one of our own modules."""
    return [sys.executable, "-m", name, *arguments]


def child_environment() -> dict[str, str]:
    """Our environment, in which the loopback address is reached without a proxy."""
    return {**os.environ, "NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost"}


def _end(processes: Iterable[psutil.Process]) -> None:
    """Give what is left two seconds to end by itself, then kill it."""
    _, alive = psutil.wait_procs(list(processes), timeout=2.0)
    for process in alive:
        with contextlib.suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(alive, timeout=5.0)


_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


def _end_with_parent() -> None:
    """In the child before exec: the kernel ends it when we are killed and can stop nothing ourselves."""
    if _libc is not None:
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
