"""A program as a process group of its own, so that what it starts ends with it."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress

CLOSING_S = 1.0  # for pipes that a process outside of the group may hold


def run(command: Sequence[str], limit_s: float) -> subprocess.CompletedProcess[bytes]:
    """What a program prints, without any input.

    At the limit (TimeoutExpired) and at Ctrl-C (KeyboardInterrupt) its whole group is ended; raises OSError
    where it does not start.
    """
    with subprocess.Popen(  # noqa: S603  # no shell; the programs are the user's own
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        try:
            output, errors = process.communicate(timeout=limit_s)
        except BaseException:
            _end(process)
            raise
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        process.communicate(timeout=CLOSING_S)
