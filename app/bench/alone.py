"""One measurement at a time: one lock for each user of a machine, and one for each folder.

The kernel frees them when the process ends, however it ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import psutil

from deployments.node_dir import node_dir

LOCK: Final = "measuring.lock"
WAIT: Final = "mend: wait until it has ended"


class BusyError(Exception):
    """Another measurement goes on; the message says which one and what to do."""


@contextmanager
def this_machine(folder: Path) -> Iterator[None]:
    """Let no other measurement of this user begin while one goes on in `folder`; raises BusyError."""
    try:
        path = node_dir("bench") / LOCK
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise BusyError(
            f"{error.filename}: cannot be locked: {error.strerror}\n"
            "mend: set TWINPOOL_NODE_DIR to a folder that you may write to"
        ) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BusyError(_at_work(folder, WAIT)) from None
        since = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        facts = {"pid": os.getpid(), "since": since, "folder": str(folder.absolute())}
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(facts).encode(), 0)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def this_folder(folder: Path, *, measures: bool) -> Iterator[None]:
    """Keep a folder for one measurement, or share it with others that only conclude; raises BusyError.

    A file system that knows no such locks refuses nothing.
    """
    descriptor = _lock(folder, fcntl.LOCK_EX if measures else fcntl.LOCK_SH)
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def is_measured_in(folder: Path) -> bool:
    """Whether a measurement goes on in a folder at this moment."""
    try:
        with this_folder(folder, measures=False):
            return False
    except BusyError:
        return True


def _lock(folder: Path, kind: int) -> int | None:
    """A descriptor that holds the folder's lock while it is open, None where there are no locks.

    Raises BusyError while somebody else holds it.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise BusyError(_at_work(folder, f"{WAIT}, or name another folder with --out")) from None
    except OSError:  # some network file systems
        os.close(descriptor)
        return None
    return descriptor


def _at_work(folder: Path, mend: str) -> str:
    """Who is there, by what the measurement that goes on has written of itself."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        facts = json.loads((node_dir("bench") / LOCK).read_text(encoding="utf-8"))
        pid, since, there = int(facts["pid"]), str(facts["since"]), Path(facts["folder"])
        # What one that was killed has written may still be there while somebody else holds the folder.
        if pid != os.getpid() and psutil.pid_exists(pid):
            if there == folder.absolute():
                return f"{folder}: process {pid} measures there since {since}\n{mend}, or `kill {pid}`"
            return (
                f"process {pid} measures in {there} since {since}: two at once would take each other's "
                f"cores, and neither could be relied upon\n{mend}, or `kill {pid}`"
            )
    return f"{folder}: another `twinpool bench` is at work there\n{mend}"
