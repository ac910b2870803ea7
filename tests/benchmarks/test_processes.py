"""No process of a benchmark is left behind."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import psutil
import pytest

from benchmarks.errors import BenchError
from benchmarks.processes import Child, run_to_end


@pytest.mark.long
def test_stop_ends_what_the_child_has_left_to_init(tmp_path: Path) -> None:
    """A descendant in a session of its own, whose parent is gone and which ignores SIGTERM."""
    pid_file = tmp_path / "pid"
    stubborn = f"trap '' TERM; echo $$ > {pid_file}.new; mv {pid_file}.new {pid_file}; sleep 60 & wait"
    child = Child("some", ["sh", "-c", '(setsid sh -c "$0" &); exec sleep 60', stubborn], tmp_path)
    try:
        child.wait_ready(pid_file.exists, 10.0)
        left = psutil.Process(int(pid_file.read_text()))
        assert left.is_running()
    finally:
        child.stop(2.0)
    assert not left.is_running()
    assert not [
        p for p in psutil.process_iter(["cmdline"]) if str(pid_file) in " ".join(p.info["cmdline"] or [])
    ]


def test_a_child_that_ends_at_its_start_says_why(tmp_path: Path) -> None:
    """The end of its log is in the message."""
    child = Child("some", ["sh", "-c", "echo no such model; exit 3"], tmp_path)
    with pytest.raises(BenchError, match="some ended with status 3 at its start:\n  no such model"):
        child.wait_ready(lambda: False, 10.0)


def test_a_command_that_fails_or_hangs_voids_the_run() -> None:
    """With its last words, or with the limit."""
    with pytest.raises(BenchError, match="some ended with status 3: no"):
        run_to_end("some", ["sh", "-c", "echo no >&2; exit 3"], 10.0)
    began = time.monotonic()
    with pytest.raises(BenchError, match="some was not done after 0 s"):
        run_to_end("some", ["sleep", "30"], 0.2)
    assert time.monotonic() - began < 5
    assert run_to_end("some", [sys.executable, "-c", "print(1)"], 10.0) == "1\n"
