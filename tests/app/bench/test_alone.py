"""One measurement at a time, on a machine and in a folder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.bench.alone import BusyError, is_measured_in, this_folder, this_machine
from app.bench.store import new_folder

ROOT = Path(__file__).parents[3]
HOLD = (
    "import sys, time\n"
    "from pathlib import Path\n"
    "from app.bench.alone import this_folder, this_machine\n"
    "folder = Path(sys.argv[1])\n"
    "with this_machine(folder), this_folder(folder, measures=True):\n"
    "    print('held', flush=True)\n"
    "    time.sleep(120)\n"
)


@pytest.fixture(autouse=True)
def _locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of this test, and not of the machine."""
    monkeypatch.setenv("TWINPOOL_NODE_DIR", str(tmp_path / "node"))


@pytest.fixture
def measured(tmp_path: Path) -> Path:
    """A folder."""
    folder = tmp_path / "bench"
    folder.mkdir()
    return folder


@pytest.fixture
def other(measured: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that measures in it."""
    command = [sys.executable, "-c", HOLD, str(measured)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        assert "held\n" == process.stdout.readline()
        yield process
        process.kill()


def test_a_second_measurement_in_a_folder_is_refused(other: subprocess.Popen[str], measured: Path) -> None:
    """The message says who measures there since when, and what to do."""
    with pytest.raises(BusyError) as caught, this_machine(measured):
        pass

    first, second = str(caught.value).split("\n")
    assert first.startswith(f"{measured}: process {other.pid} measures there since 2")
    assert first.endswith(" UTC")
    assert f"mend: wait until it has ended, or `kill {other.pid}`" == second


def test_a_second_measurement_anywhere_is_refused(
    other: subprocess.Popen[str], measured: Path, tmp_path: Path
) -> None:
    """They would take each other's cores."""
    with pytest.raises(BusyError) as caught, this_machine(tmp_path / "elsewhere"):
        pass

    assert f"process {other.pid} measures in {measured} since 2" in str(caught.value)
    assert "two at once would take each other's cores" in str(caught.value)
    assert not (tmp_path / "elsewhere").exists()


def test_nothing_is_written_into_a_folder_that_is_measured_in(
    other: subprocess.Popen[str], measured: Path
) -> None:
    """A former measurement that is concluded from goes elsewhere."""
    words = rf"process {other.pid} measures there since .*\nmend: wait .*, or name another folder with --out"
    with pytest.raises(BusyError, match=words), this_folder(measured, measures=False):
        pass


def test_a_default_folder_is_none_that_is_measured_in(other: subprocess.Popen[str], measured: Path) -> None:
    """Its measurement.json comes only after the second round."""
    assert other.poll() is None
    assert measured.with_name("bench-2") == new_folder(measured)


def test_a_lock_ends_with_its_process(other: subprocess.Popen[str], measured: Path) -> None:
    """However it ends: there is nothing to clear away, and what it has written says nothing any more."""
    os.kill(other.pid, signal.SIGKILL)
    other.wait()

    with this_machine(measured), this_folder(measured, measures=True):
        assert is_measured_in(measured)
    assert not is_measured_in(measured)
    assert measured == new_folder(measured)
    assert [] == list(measured.iterdir())


def test_two_that_only_conclude_share_a_folder(measured: Path) -> None:
    """One that measures is refused beside them."""
    with (
        this_folder(measured, measures=False),
        this_folder(measured, measures=False),
        pytest.raises(BusyError, match="another `twinpool bench` is at work there"),
        this_folder(measured, measures=True),
    ):
        pass


def test_a_folder_for_locks_that_cannot_be_made_is_named(
    measured: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the variable that names another."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("TWINPOOL_NODE_DIR", str(tmp_path / "file"))
    words = r"cannot be locked: .*\nmend: set TWINPOOL_NODE_DIR to a folder"
    with pytest.raises(BusyError, match=words), this_machine(measured):
        pass
