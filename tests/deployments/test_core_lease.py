"""Core leases between real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from deployments.core_lease import CoreLease, NoCoreError, lease_cores

CORES = frozenset({2, 3})
# Leases, says what it got, and holds it until it is killed or its input ends.
HOLD = """
import sys
from deployments.core_lease import lease_cores
lease = lease_cores(int(sys.argv[1]), frozenset({2, 3}))
print(*lease.cores, lease.oversubscribed, flush=True)
sys.stdin.read()
"""

Start = Callable[[int], tuple[subprocess.Popen[str], str]]


@pytest.fixture(autouse=True)
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TWINPOOL_NODE_DIR", str(tmp_path))
    return tmp_path


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a process that leases cores; it and what it said."""
    running: list[subprocess.Popen[str]] = []

    def make(count: int) -> tuple[subprocess.Popen[str], str]:
        process = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(count)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        running.append(process)
        assert process.stdout is not None
        return process, process.stdout.readline().strip()

    yield make
    for process in running:
        process.kill()
        process.communicate()


def lease(count: int) -> CoreLease:
    return lease_cores(count, CORES)


def said(found: CoreLease) -> tuple[tuple[int, ...], bool]:
    return found.cores, found.oversubscribed


def test_each_process_gets_its_own_core(start: Start) -> None:
    """While there are free cores nobody shares one."""
    _, first = start(1)
    _, second = start(1)
    assert sorted([first, second]) == ["2 False", "3 False"]


def test_a_killed_process_frees_its_cores(start: Start) -> None:
    """The kernel frees the lease of a process that is killed without a word."""
    process, _ = start(2)
    assert said(lease(1)) == ((2,), True)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert said(lease(2)) == ((2, 3), False)


def test_an_ended_process_frees_its_cores(start: Start) -> None:
    """So does one that ends by itself."""
    process, _ = start(2)
    process.communicate("")
    assert said(lease(2)) == ((2, 3), False)


def test_a_program_started_later_does_not_keep_the_lease(start: Start) -> None:
    """A lease ends with its holder, not with the programs that it ran."""
    held = lease(2)
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, close_fds=False)
    held.release()
    assert start(2)[1] == "2 3 False"
    child.communicate(b"\n")


def test_the_exclusive_layer_comes_first(start: Start) -> None:
    """More replicas than cores share them, one more each at a time, and say so."""
    found = [start(1)[1] for _ in range(3)]
    assert found == ["2 False", "3 False", "2 True"]
    assert said(lease(1)) == ((3,), True)


def test_a_lease_of_two_does_not_take_one_core_twice(start: Start) -> None:
    """The free core and a shared one: different cores, and oversubscribed as a whole."""
    start(1)
    assert start(2)[1] == "2 3 True"


def test_release_frees_at_once(start: Start) -> None:
    """A released core is exclusive again for the next one."""
    held = lease(2)
    assert start(1)[1] == "2 True"
    held.release()
    assert start(1)[1] == "2 False"


def test_none_are_leased_for_zero(node: Path) -> None:
    """A replica without cores of its own leases none and is never oversubscribed."""
    found = lease_cores(0)
    assert (said(found), list(node.iterdir())) == (((), False), [])
    found.release()


def test_more_than_the_machine_has() -> None:
    """The message names the setting, both numbers and the mend."""
    with pytest.raises(ValueError, match=r"cores_per_replica is 3, this machine offers 2: lower it"):
        lease(3)


def test_too_many_replicas() -> None:
    """A core is shared by a bounded number; a lease that fails keeps nothing."""
    held = [lease(1) for _ in range(2 * 64 - 1)]
    with pytest.raises(NoCoreError, match="64 replicas already share each core"):
        lease(2)
    held.append(lease(1))
    with pytest.raises(NoCoreError):
        lease(1)
    for one in held:
        one.release()
    assert said(lease(2)) == ((2, 3), False)


def test_by_default_the_cores_of_this_process() -> None:
    """Without a list, the cores that the process may run on."""
    found = lease_cores(1)
    assert found.cores[0] in os.sched_getaffinity(0)
    found.release()
