"""Processes by identity, their ends, and the record that finds orphans; with real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from deployments.process_tree import (
    EngineRecord,
    ProcessMark,
    descendants,
    engine_processes,
    is_alive,
    kill,
    orphans,
    wait_gone,
)

SLEEP = "import time; time.sleep(600)"
# A parent that starts one child and prints its pid.
PARENT = f"""
import subprocess, sys, time
print(subprocess.Popen([sys.executable, "-c", "{SLEEP}"]).pid, flush=True)
time.sleep(600)
"""

Spawn = Callable[[str], subprocess.Popen[str]]


@pytest.fixture(autouse=True)
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TWINPOOL_NODE_DIR", str(tmp_path))
    return tmp_path


@pytest.fixture
def spawn() -> Iterator[Spawn]:
    running: list[subprocess.Popen[str]] = []

    def start(program: str) -> subprocess.Popen[str]:
        process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
        running.append(process)
        return process

    yield start
    for process in running:
        kill(descendants(process.pid))
        process.kill()
        process.communicate()


def mark_of(pid: int) -> ProcessMark:
    found = ProcessMark.of(pid)
    assert found is not None
    return found


def gone_mark(spawn: Spawn) -> ProcessMark:
    process = spawn("")
    mark = mark_of(process.pid)
    process.wait()
    return mark


def record_files(node: Path) -> list[Path]:
    return sorted((node / "engines").iterdir())


def test_a_mark_survives_its_text() -> None:
    """A mark travels as text, through the environment and the record."""
    mark = mark_of(os.getpid())
    assert ProcessMark.parse(str(mark)) == mark
    assert is_alive(ProcessMark.parse(str(mark)))
    assert str(ProcessMark(17, 3.1)) == "17:3.10"


@pytest.mark.parametrize("text", ["", "17", "17:", ":3.10", "x:3.10", "17:y", "0:1.00", "-1:1.00"])
def test_a_broken_mark_is_refused(text: str) -> None:
    """What is no mark of a process is a ValueError, and never a signal to a group of processes."""
    with pytest.raises(ValueError):  # noqa: PT011  # several texts of Python's own
        ProcessMark.parse(text)


def test_a_process_that_is_not_there_has_no_mark(spawn: Spawn) -> None:
    """None once it has ended and was reaped."""
    assert ProcessMark.of(gone_mark(spawn).pid) is None


def test_alive_until_killed(spawn: Spawn) -> None:
    """Alive while it runs; a zombie, ended and not reaped, is gone."""
    process = spawn(SLEEP)
    mark = mark_of(process.pid)
    assert is_alive(mark)
    kill([mark])
    assert wait_gone([mark], 5.0) == ()
    assert psutil.Process(process.pid).status() == psutil.STATUS_ZOMBIE
    assert not is_alive(mark)
    process.wait()
    assert not is_alive(mark)


@pytest.mark.parametrize("offset_s", [-3600.0, -0.01, 0.01, 0.5])
def test_a_reused_pid_is_another_process(spawn: Spawn, offset_s: float) -> None:
    """The pid with another start time is a stranger: neither alive nor killed."""
    process = spawn(SLEEP)
    mark = mark_of(process.pid)
    stranger = ProcessMark(mark.pid, mark.started + offset_s)
    assert not is_alive(stranger)
    kill([stranger])
    assert wait_gone([stranger], 0.0) == ()
    assert is_alive(mark)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the system knows no other start time")
def test_a_step_of_the_wall_clock_changes_no_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the clock is corrected the time of boot moves with it: the processes are the same."""
    mark = mark_of(os.getpid())
    before = psutil.Process(os.getpid()).create_time()
    real = psutil._psplatform.boot_time
    monkeypatch.setattr(psutil._psplatform, "boot_time", lambda: real() + 7)
    assert psutil.Process(os.getpid()).create_time() == before + 7
    assert is_alive(mark)
    assert ProcessMark.of(os.getpid()) == mark


def test_a_stopped_process_is_killed(spawn: Spawn) -> None:
    """SIGSTOP does not protect a hung engine."""
    process = spawn(SLEEP)
    mark = mark_of(process.pid)
    os.kill(process.pid, signal.SIGSTOP)
    assert is_alive(mark)
    kill([mark])
    assert wait_gone([mark], 5.0) == ()


def test_waiting_names_who_is_left(spawn: Spawn) -> None:
    """After the time allowed the living are returned, and only they."""
    mark, gone = mark_of(spawn(SLEEP).pid), gone_mark(spawn)
    began = time.monotonic()
    assert wait_gone([mark, gone], 0.2) == (mark,)
    assert 0.2 <= time.monotonic() - began < 2.0


def test_descendants(spawn: Spawn) -> None:
    """All below a process, at any depth; none below one that is gone."""
    parent = spawn(PARENT)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    assert [mark.pid for mark in descendants(parent.pid)] == [child]
    assert {parent.pid, child} <= {mark.pid for mark in descendants(os.getpid())}
    assert descendants(gone_mark(spawn).pid) == ()


def test_the_resource_tracker_is_no_engine_process(spawn: Spawn) -> None:
    """Python's resource tracker stays: it cleans up behind a killed engine."""
    parent = spawn(f"import multiprocessing.resource_tracker as t; t.ensure_running(){PARENT}")
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    assert len(descendants(parent.pid)) == 2
    assert [mark.pid for mark in engine_processes(parent.pid)] == [child]


def test_zombies_are_no_engine_processes(spawn: Spawn) -> None:
    """An engine process that has ended is none, reaped or not."""
    process = spawn("")
    process_mark = mark_of(process.pid)
    assert wait_gone([process_mark], 5.0) == ()
    assert process.pid not in {mark.pid for mark in engine_processes(os.getpid())}


def test_an_orphan_is_found_and_then_forgotten(spawn: Spawn, node: Path) -> None:
    """The engine of a dead replica is an orphan until it has ended; then its record goes, too."""
    engine = mark_of(spawn(SLEEP).pid)
    EngineRecord("app#plain#1").write(gone_mark(spawn), [engine, gone_mark(spawn)])
    assert orphans() == (engine,)
    assert len(record_files(node)) == 1
    kill([engine])
    wait_gone([engine], 5.0)
    assert orphans() == ()
    assert record_files(node) == []


def test_the_engine_of_a_living_replica_is_no_orphan(spawn: Spawn, node: Path) -> None:
    """A neighbour's engine is left alone, and so is its record, also once the engine has ended."""
    engine = mark_of(spawn(SLEEP).pid)
    record = EngineRecord("r/1")
    record.write(mark_of(os.getpid()), [engine])
    assert orphans() == ()
    kill([engine])
    wait_gone([engine], 5.0)
    assert orphans() == ()
    assert [path.name for path in record_files(node)] == [f"{os.getpid()}-r_1.json"]
    record.remove()
    record.remove()
    assert record_files(node) == []


def test_a_replica_that_reuses_a_pid_does_not_hide_an_orphan(spawn: Spawn) -> None:
    """The owner's pid alone proves nothing: with another start time it is another process."""
    engine, me = mark_of(spawn(SLEEP).pid), mark_of(os.getpid())
    EngineRecord("r").write(ProcessMark(me.pid, me.started - 60), [engine])
    assert orphans() == (engine,)


def test_the_newest_record_of_a_replica_counts(spawn: Spawn) -> None:
    """A replica writes its record again; it is one record."""
    engine, owner = mark_of(spawn(SLEEP).pid), gone_mark(spawn)
    EngineRecord("r").write(owner, [])
    EngineRecord("r").write(owner, [engine])
    assert orphans() == (engine,)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "17",
        "{}",
        json.dumps({"owner": "x", "engine": []}),
        json.dumps({"owner": 17, "engine": []}),
        json.dumps({"owner": "-1:1.00", "engine": []}),
        json.dumps({"owner": "1:1.00", "engine": None}),
        json.dumps({"owner": "1:1.00", "engine": [3]}),
        json.dumps({"owner": "1:1.00", "engine": ["-5:1.00"]}),
    ],
)
def test_a_broken_record_is_ignored(spawn: Spawn, node: Path, text: str) -> None:
    """A record that cannot be read kills nobody and hides no other record."""
    engine = mark_of(spawn(SLEEP).pid)
    EngineRecord("r").write(gone_mark(spawn), [engine])
    (node / "engines" / "0.json").write_text(text)
    (node / "engines" / "1.json").write_bytes(b"\xff\xfe")
    assert orphans() == (engine,)


def test_a_half_written_record_is_not_seen(spawn: Spawn, node: Path) -> None:
    """A record appears whole: what is being written has another name."""
    EngineRecord("r").write(gone_mark(spawn), [])
    (path,) = record_files(node)
    path.with_suffix(".tmp").write_text("{")
    assert orphans() == ()
