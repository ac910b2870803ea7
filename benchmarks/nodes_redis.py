"""A Redis of our own, outside of all nodes: where a head that dies leaves what it knew."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Final

from benchmarks.errors import BenchError
from benchmarks.nodes_network import OUTSIDE
from benchmarks.nodes_service import wait

PORT: Final = 6379
START_LIMIT_S: Final = 10.0
STOP_LIMIT_S: Final = 10.0


def redis_program() -> str | None:
    """Where `redis-server` is, None where it is not installed."""
    return shutil.which("redis-server")


class Redis:
    """One server on the bridge's own address; `folder` is for its log.  Keeps nothing on disk."""

    address: Final = f"{OUTSIDE}:{PORT}"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Redis:
        """Raises BenchError without the program, or when it does not answer."""
        program = redis_program()
        if program is None:
            raise BenchError("redis-server is not installed")
        options = {"bind": OUTSIDE, "port": str(PORT), "save": "", "protected-mode": "no"}
        command = [program, *(word for key, value in options.items() for word in (f"--{key}", value))]
        with (self._folder / "redis.log").open("wb") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self._folder
            )
        wait(_answers, START_LIMIT_S, "Redis to answer")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None
        self._process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(STOP_LIMIT_S)


def _answers() -> bool:
    with contextlib.suppress(OSError), socket.create_connection((OUTSIDE, PORT), timeout=1.0):
        return True
    return False
