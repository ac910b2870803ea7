"""A `twinpool serve` of the demo's own: started, followed until it is ready, stopped as by Ctrl-C."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO

from deployments.ports import free_ports

READY = "ready after"  # how `serve` begins the line that says so
LINES_KEPT = 20  # of its words, for an error

Say = Callable[[str], None]


class NotStartedError(Exception):
    """The service ended before it was ready; the message has its last words."""


def serve_command(engine: str, port: int) -> list[str]:
    """The service on a port, with nothing of a former one and nothing left behind."""
    command = [sys.executable, "-m", "app.cli", "serve", "--engine", engine]
    return [*command, "--port", str(port), "--state-dir", "none"]


def free_port() -> int:
    """A port of the loopback address that nothing listens on."""
    return free_ports(1)[0]


@contextmanager
def running(command: Sequence[str], say: Say) -> Iterator[None]:
    """Start `command`, pass its words on to `say` until it is ready, and stop it at the end, whatever ends.

    Raises NotStartedError.
    """
    # In a session of its own a Ctrl-C at the terminal reaches only the demo, which ends first.
    child = subprocess.Popen(  # noqa: S603  # our own command
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        assert child.stderr is not None
        _follow(child, child.stderr, say)
        # Unread, its words would fill the pipe and stop it.
        threading.Thread(target=_drop, args=(child.stderr,), daemon=True).start()
        yield
    finally:
        _stop(child, say)


def _follow(child: subprocess.Popen[str], words: IO[str], say: Say) -> None:
    kept: deque[str] = deque(maxlen=LINES_KEPT)
    for line in words:
        kept.append(line.rstrip())
        say(kept[-1])
        if line.startswith(READY):
            return
    raise NotStartedError(f"it ended with {child.wait()}: {_reason(kept)}")


def _reason(lines: Sequence[str]) -> str:
    errors = [line for line in lines if line.startswith("error:")]
    return (errors or list(lines) or ["it said nothing"])[-1]


def _drop(words: IO[str]) -> None:
    for _ in words:
        pass


def _stop(child: subprocess.Popen[str], say: Say) -> None:
    """Ctrl-C, as often as the user says it; `serve` ends at once at the third."""
    if child.poll() is not None:
        return
    say("stopping the demo's own service")
    child.send_signal(signal.SIGINT)
    while child.poll() is None:
        try:
            child.wait()
        except KeyboardInterrupt:
            child.send_signal(signal.SIGINT)
