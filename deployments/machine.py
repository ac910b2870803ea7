"""What preflight needs to know about a machine, and the one function that looks.

Standard library only, and no syntax newer than Python 3.8: it runs before anything is installed.
What cannot be found out is None.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import platform
import shutil
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from deployments.machine_proc import available_memory, cpu_flags, port_owner

LOOPBACK = "127.0.0.1"
OLDEST_PYTHON = (3, 11)
NEWEST_PYTHON = (3, 13)  # the locks were resolved up to here


@dataclass(frozen=True)
class Place:
    """A folder that will be written: whether that works, and the room on its file system."""

    path: str
    writable: bool
    free_bytes: int
    device: int


@dataclass(frozen=True)
class Port:
    """A listen address: free, or taken by `owner` as far as that can be seen."""

    host: str
    number: int
    free: bool
    owner: str = ""
    reason: str = ""


@dataclass(frozen=True)
class Facts:
    """What the checks need to know; `None` is unknown, and what is unknown never fails a check."""

    system: str
    machine: str
    python: tuple[int, int]
    other_pythons: tuple[str, ...]
    has_venv: bool
    glibc: tuple[int, int] | None
    has_libnuma: bool | None
    cpu_flags: frozenset[str] | None
    cpus: int
    memory_bytes: int | None
    memory_limit: str  # who limits the memory: `machine` or `container`
    shm_bytes: int | None
    venv: Place
    cache: Place
    temporary: Place
    model_cached: bool
    port: Port | None


def gather(
    *, venv: Path | None = None, port: int | None = None, host: str = LOOPBACK, root: Path = Path("/")
) -> Facts:
    """Look at this machine; `root` is where /proc and /sys are found."""
    memory, limit = available_memory(root)
    cache = cache_folder()
    return Facts(
        system=platform.system(),
        machine={"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine()),
        python=(sys.version_info[0], sys.version_info[1]),
        other_pythons=_other_pythons(),
        has_venv=_has_venv(),
        glibc=_glibc(),
        has_libnuma=_has_library("libnuma.so.1") if sys.platform == "linux" else None,
        cpu_flags=cpu_flags(root),
        cpus=_cpus(),
        memory_bytes=memory,
        memory_limit=limit,
        shm_bytes=_shm_bytes(),
        venv=place(venv if venv is not None else Path(sys.prefix)),
        cache=place(cache),
        temporary=place(Path(tempfile.gettempdir())),
        model_cached=any(cache.glob("models/*/manifest.json")),
        port=None if port is None else look_at_port(host, port, root),
    )


def cache_folder() -> Path:
    """Where twinpool keeps the embedded model: TWINPOOL_CACHE, or the user's cache folder."""
    chosen = os.environ.get("TWINPOOL_CACHE", "").strip()
    if chosen:
        return Path(chosen).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "twinpool"
    base = os.environ.get("XDG_CACHE_HOME", "").strip()
    return (Path(base) if base else Path.home() / ".cache") / "twinpool"


def place(path: Path) -> Place:
    """Describe a folder that may not exist yet, from its nearest existing parent."""
    path = Path(os.path.abspath(str(path)))  # noqa: PTH100 - a link stays a link in messages
    nearest = path
    while not nearest.exists() and nearest != nearest.parent:
        nearest = nearest.parent
    usable = nearest.is_dir() and os.access(str(nearest), os.W_OK | os.X_OK)
    try:
        return Place(str(path), usable, shutil.disk_usage(str(nearest)).free, nearest.stat().st_dev)
    except OSError:
        return Place(str(path), False, 0, -1)


def look_at_port(host: str, number: int, root: Path = Path("/")) -> Port:
    """Try to listen there, and say who already does."""
    if not 1 <= number <= 65535:
        return Port(host, number, False, reason="a port lies between 1 and 65535")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with contextlib.closing(socket.socket(family, socket.SOCK_STREAM)) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, number))
            probe.listen(1)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return Port(host, number, False, owner=port_owner(number, root))
            return Port(host, number, False, reason=error.strerror or str(error))
    return Port(host, number, True)


def _cpus() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _shm_bytes() -> int | None:
    try:
        return shutil.disk_usage("/dev/shm").total  # noqa: S108 - measured, not written
    except OSError:
        return None


def _glibc() -> tuple[int, int] | None:
    name, version = platform.libc_ver()
    parts = version.split(".")
    if name != "glibc" or len(parts) < 2 or not (parts[0].isdigit() and parts[1].isdigit()):
        return None
    return int(parts[0]), int(parts[1])


def _has_library(name: str) -> bool:
    try:
        ctypes.CDLL(name)
    except OSError:
        return False
    return True


def _has_venv() -> bool:
    try:
        import ensurepip  # noqa: F401, PLC0415 - absent in some distributions' Python
        import venv  # noqa: F401, PLC0415
    except ImportError:
        return False
    return True


def _other_pythons() -> tuple[str, ...]:
    """Supported Pythons on the PATH that run; version switchers leave names there that do not."""
    if OLDEST_PYTHON <= sys.version_info[:2] <= NEWEST_PYTHON:
        return ()
    minors = range(NEWEST_PYTHON[1], OLDEST_PYTHON[1] - 1, -1)
    return tuple(name for name in (f"python3.{minor}" for minor in minors) if _runs(name))


def _runs(python: str) -> bool:
    try:
        command = [python, "-c", "import ensurepip"]
        done = subprocess.run(  # noqa: S603 - a fixed name, no shell
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
