"""An engine process ends with its replica; real processes, without vLLM."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from importlib.metadata import entry_points

import pytest

from deployments import vllm_plugin
from deployments.process_tree import ProcessMark

SLEEP = "import time; time.sleep(600)"
# Registers twice, as vLLM may, says how many threads watch, and goes on working.
ENGINE = """
import threading, time
from deployments.vllm_plugin import register
register()
register()
print(sum(t.name == "twinpool-parent-watch" for t in threading.enumerate()), flush=True)
time.sleep(600)
"""
# The same in a fork of a process that already watches.
FORKED = """
import os, threading, time
from deployments.vllm_plugin import register
register()
if os.fork():
    time.sleep(600)
register()
print(sum(t.name == "twinpool-parent-watch" for t in threading.enumerate()), flush=True)
time.sleep(600)
"""

Spawn = Callable[[str, str | None], subprocess.Popen[str]]


@pytest.fixture
def spawn() -> Iterator[Spawn]:
    running: list[subprocess.Popen[str]] = []

    def start(program: str, replica: str | None = None) -> subprocess.Popen[str]:
        env = {key: value for key, value in os.environ.items() if key != vllm_plugin.PARENT_ENV}
        if replica is not None:
            env[vllm_plugin.PARENT_ENV] = replica
        process = subprocess.Popen(
            [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=env
        )
        running.append(process)
        return process

    yield start
    for process in running:
        process.kill()
        process.communicate()


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_an_engine_ends_within_3_s_of_its_replica(spawn: Spawn) -> None:
    """A replica killed without a word takes its engine along, and the watch is one thread."""
    replica = spawn(SLEEP, None)
    engine = spawn(ENGINE, str(ProcessMark.of(replica.pid)))
    assert line(engine) == "1"
    with pytest.raises(subprocess.TimeoutExpired):
        engine.wait(1.2)
    os.kill(replica.pid, signal.SIGKILL)
    assert engine.wait(3.0) == -signal.SIGKILL


def test_an_engine_of_a_replica_that_is_gone_ends_at_once(spawn: Spawn) -> None:
    """Also where the replica died before its engine came up."""
    replica = spawn("", None)
    mark = ProcessMark.of(replica.pid)
    replica.wait()
    assert spawn(ENGINE, str(mark)).wait(10.0) == -signal.SIGKILL


def test_a_forked_worker_watches_too(spawn: Spawn) -> None:
    """A fork inherits no thread: it starts its own, and ends with the replica."""
    replica = spawn(SLEEP, None)
    parent = spawn(FORKED, str(ProcessMark.of(replica.pid)))
    assert line(parent) == "1"
    os.kill(replica.pid, signal.SIGKILL)
    assert parent.wait(3.0) == -signal.SIGKILL
    assert parent.stdout is not None
    assert parent.stdout.read() == ""  # the end of the last process that holds the pipe


def test_without_a_replica_nothing_watches(spawn: Spawn) -> None:
    """An engine started by anyone else is left alone."""
    assert line(spawn(ENGINE, None)) == "0"


def test_the_replica_does_not_watch_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plugins are loaded in the replica, too; there is nothing to watch."""
    monkeypatch.setenv(vllm_plugin.PARENT_ENV, str(ProcessMark.of(os.getpid())))
    vllm_plugin.register()
    assert "twinpool-parent-watch" not in {thread.name for thread in threading.enumerate()}


def test_vllm_finds_it() -> None:
    """The installed distribution announces the plugin under the group that vLLM reads."""
    found = [point.load() for point in entry_points(group="vllm.general_plugins") if point.name == "twinpool"]
    assert found == [vllm_plugin.register]
