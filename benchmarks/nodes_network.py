"""A network of our own: every node a namespace on one bridge, so that a node can fall silent for all others.

Needs Linux, root, `ip` (iproute2) and `nsenter` (util-linux).
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil
from filelock import FileLock, Timeout

from benchmarks.errors import BenchError, UnfitError

PREFIX: Final = "twinpool-"  # of the names of namespaces and cables
BRIDGE: Final = "twinpool0"
# Of 198.18.0.0/15, which RFC 2544 sets aside for benchmarks: no real network has it.
SUBNET: Final = "198.18.7"
OUTSIDE: Final = f"{SUBNET}.1"  # of the bridge: clients and the store are here
NAMESPACES: Final = Path("/run/netns")
LOCK: Final = Path("/run/twinpool-nodes.lock")
END_LIMIT_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class Host:
    """One namespace with one address."""

    name: str
    address: str
    link: str  # the bridge's end of its cable

    @property
    def namespace(self) -> str:
        """The namespace's name."""
        return f"{PREFIX}{self.name}"

    def inside(self, command: Sequence[str]) -> list[str]:
        """A command, run there."""
        return ["nsenter", f"--net={NAMESPACES / self.namespace}", "--", *command]


def check_fit() -> None:
    """Raise UnfitError, with what to do, where no namespaces can be made."""
    if sys.platform != "linux":
        raise UnfitError("network namespaces are Linux's: run this there")
    if os.geteuid() != 0:
        raise UnfitError("network namespaces need root: run this as root")
    for program, package in (("ip", "iproute2"), ("nsenter", "util-linux")):
        if shutil.which(program) is None:
            raise UnfitError(f"`{program}` is not there: install {package}")
    probe = f"{PREFIX}probe"
    try:
        _ip("netns", "add", probe)
        _ip("netns", "delete", probe)
    except BenchError as error:
        raise UnfitError(f"no network namespace can be made ({error}): give root CAP_SYS_ADMIN") from error


class Network:
    """The bridge and what is on it; all of it is gone at the end, with the processes inside."""

    def __init__(self) -> None:
        self._lock = FileLock(LOCK)
        self._hosts: dict[str, Host] = {}

    def __enter__(self) -> Network:
        """Raises UnfitError."""
        check_fit()
        try:
            self._lock.acquire(timeout=0)
        except Timeout as error:
            raise UnfitError("another run has these namespaces: wait for its end") from error
        _remove_all()  # of a run that was killed
        _ip("link", "add", BRIDGE, "type", "bridge")
        _ip("address", "add", f"{OUTSIDE}/24", "dev", BRIDGE)
        _ip("link", "set", BRIDGE, "up")
        return self

    def __exit__(self, *_: object) -> None:
        _remove_all()
        self._lock.release()

    def add(self, name: str) -> Host:
        """A host with the next address."""
        number = 10 + len(self._hosts)
        host = Host(name, f"{SUBNET}.{number}", f"{PREFIX}{number}")
        self._hosts[name] = host
        _ip("netns", "add", host.namespace)
        _ip("link", "add", host.link, "type", "veth", "peer", "name", "eth0", "netns", host.namespace)
        _ip("-n", host.namespace, "address", "add", f"{host.address}/24", "dev", "eth0")
        for device in ("lo", "eth0"):
            _ip("-n", host.namespace, "link", "set", device, "up")
        _ip("link", "set", host.link, "up")
        self.hear(host)
        return host

    def silence(self, host: Host) -> None:
        """Drop every packet from and to a host; nobody is told, its own link stays up."""
        _ip("link", "set", host.link, "nomaster")

    def hear(self, host: Host) -> None:
        """Carry its packets again."""
        _ip("link", "set", host.link, "master", BRIDGE)


def find(host: Host, word: str) -> list[psutil.Process]:
    """The living processes of a host whose command line has `word`."""
    found = []
    for pid in _pids(host.namespace):
        try:
            process = psutil.Process(pid)
            if word in " ".join(process.cmdline()) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


def kill(host: Host) -> None:
    """SIGKILL for every process of a host, as when its power fails; sockets that are open get a reset."""
    _kill(host.namespace)


def _pids(namespace: str) -> list[int]:
    return [int(line) for line in _ip("netns", "pids", namespace).split()]


def _kill(namespace: str) -> None:
    deadline = time.monotonic() + END_LIMIT_S
    while found := _pids(namespace):
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise BenchError(f"processes in {namespace} do not end: {found}")
        time.sleep(0.05)


def _remove_all() -> None:
    for path in sorted(NAMESPACES.glob(f"{PREFIX}*")) if NAMESPACES.exists() else ():
        _kill(path.name)
        _ip("netns", "delete", path.name)
    for link in sorted(Path("/sys/class/net").glob(f"{PREFIX}*")):
        # A namespace takes its cables along, but later, when nothing refers to it any more.
        with contextlib.suppress(BenchError):
            _ip("link", "delete", link.name)
    if Path(f"/sys/class/net/{BRIDGE}").exists():
        _ip("link", "delete", BRIDGE)


def _ip(*words: str) -> str:
    """One call of `ip`; returns what it says.  Raises BenchError."""
    done = subprocess.run(["ip", *words], capture_output=True, text=True, timeout=20, check=False)
    if done.returncode != 0:
        raise BenchError(f"ip {' '.join(words)}: {done.stderr.strip() or done.returncode}")
    return done.stdout
