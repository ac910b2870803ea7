"""Processes by identity (pid and start time), so that a reused pid is never mistaken or killed."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import psutil

from deployments.node_dir import node_dir


@dataclass(frozen=True, slots=True)
class ProcessMark:
    """A process that can be recognised later, by its pid and its start time."""

    pid: int
    started: float  # seconds since boot, to the kernel's 10 ms

    def __str__(self) -> str:
        return f"{self.pid}:{self.started:.2f}"

    @classmethod
    def parse(cls, text: str) -> ProcessMark:
        """Inverse of str(); raises ValueError."""
        pid, _, started = text.partition(":")
        if int(pid) <= 0:
            raise ValueError(f"no process has pid {pid}")
        return cls(int(pid), float(started))

    @classmethod
    def of(cls, pid: int) -> ProcessMark | None:
        """The mark of a running process, None when there is none."""
        try:
            return cls(pid, round(_started(psutil.Process(pid)), 2))
        except psutil.Error:
            return None


def is_alive(mark: ProcessMark) -> bool:
    """True while exactly this process runs; a zombie counts as gone."""
    try:
        process = psutil.Process(mark.pid)
        same = abs(_started(process) - mark.started) < 0.005  # marks are rounded to 10 ms, as ticks are
        return same and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _started(process: psutil.Process) -> float:
    """Start time of a process that no later step of the wall clock can change, where the system has one.

    psutil's `create_time` moves with the wall clock: one correction would make every mark a stranger's.
    """
    if sys.platform != "linux":
        return process.create_time()
    try:
        stat = Path(f"/proc/{process.pid}/stat").read_bytes()
    except OSError as error:
        raise psutil.NoSuchProcess(process.pid) from error
    # Field 22 of proc(5), counted behind the name, which may hold anything but is in brackets.
    ticks = int(stat.rpartition(b")")[2].split()[19])
    return float(ticks / os.sysconf("SC_CLK_TCK"))


def descendants(pid: int) -> tuple[ProcessMark, ...]:
    """All processes below `pid`, children first; empty when it is gone."""
    try:
        below = psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return ()
    marks = (ProcessMark.of(child.pid) for child in below)
    return tuple(mark for mark in marks if mark is not None)


def engine_processes(pid: int) -> tuple[ProcessMark, ...]:
    """Living descendants of `pid` that do engine work.

    Python's resource tracker is left out: it ends with its owner, and then removes what shared
    memory a killed engine has left behind.
    """
    return tuple(mark for mark in descendants(pid) if is_alive(mark) and not _is_resource_tracker(mark.pid))


def _is_resource_tracker(pid: int) -> bool:
    try:
        return any("multiprocessing.resource_tracker" in word for word in psutil.Process(pid).cmdline())
    except psutil.Error:
        return False


def kill(marks: Iterable[ProcessMark]) -> None:
    """SIGKILL each process that still is the one it was; a stopped one dies too."""
    for mark in marks:
        if is_alive(mark):
            with contextlib.suppress(psutil.Error):
                psutil.Process(mark.pid).kill()


def wait_gone(marks: Iterable[ProcessMark], timeout_s: float) -> tuple[ProcessMark, ...]:
    """Block until the processes are gone; returns those that still live at the end."""
    deadline = time.monotonic() + timeout_s
    left = tuple(marks)
    while left := tuple(mark for mark in left if is_alive(mark)):
        if time.monotonic() > deadline:
            break
        time.sleep(0.05)
    return left


class EngineRecord:
    """A file per replica naming its engine processes, so that a successor can find orphans."""

    def __init__(self, replica_id: str) -> None:
        self._path = node_dir("engines") / f"{os.getpid()}-{replica_id.replace('/', '_')}.json"

    def write(self, owner: ProcessMark, engine: Iterable[ProcessMark]) -> None:
        """Remember that `owner` runs these engine processes."""
        body = json.dumps({"owner": str(owner), "engine": [str(mark) for mark in engine]})
        partial = self._path.with_suffix(".tmp")
        partial.write_text(body)
        partial.replace(self._path)

    def remove(self) -> None:
        """Forget, after the engine has ended."""
        self._path.unlink(missing_ok=True)


def orphans() -> tuple[ProcessMark, ...]:
    """Engine processes on this node whose replica is dead; forgets records of ended ones."""
    found: list[ProcessMark] = []
    for path in node_dir("engines").glob("*.json"):
        alive = _orphans_of(path)
        if alive is None:
            continue
        if not alive:
            path.unlink(missing_ok=True)
        found += alive
    return tuple(found)


def _orphans_of(path: Path) -> list[ProcessMark] | None:
    """Living engine processes of a dead owner; None while the owner lives or the file is unreadable."""
    try:
        record = json.loads(path.read_text())
        owner = ProcessMark.parse(record["owner"])
        engine = [ProcessMark.parse(text) for text in record["engine"]]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    if is_alive(owner):
        return None
    return [mark for mark in engine if is_alive(mark)]
