"""What the user asks of a running `serve` by signal."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psutil

IMPATIENT = 3  # the third stop signal ends everything at once


@dataclass(frozen=True, slots=True)
class Signals:
    """Events that the handlers set."""

    stop: threading.Event
    reload: threading.Event


@contextlib.contextmanager
def listening() -> Iterator[Signals]:
    """Ctrl-C, SIGTERM and a closed terminal stop; SIGUSR1 reloads the settings file."""
    signals = Signals(threading.Event(), threading.Event())
    seen = 0

    def stop(_number: int, _frame: Any) -> None:
        nonlocal seen
        seen += 1
        if seen >= IMPATIENT:
            end_children()
            os._exit(130)
        signals.stop.set()

    def reload(_number: int, _frame: Any) -> None:
        signals.reload.set()

    handlers = {signal.SIGINT: stop, signal.SIGTERM: stop, signal.SIGHUP: stop, signal.SIGUSR1: reload}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def adopt_orphans() -> None:
    """Have processes whose parent dies become ours, so that `end_children` sees them; Linux only."""
    if sys.platform == "linux":
        set_child_subreaper = 36  # PR_SET_CHILD_SUBREAPER, linux/prctl.h
        ctypes.CDLL(None).prctl(set_child_subreaper, 1, 0, 0, 0)


def end_children(grace_s: float = 5.0) -> None:
    """Nothing of ours may outlive us: what Ray's shutdown left is killed."""
    left = psutil.Process().children(recursive=True)
    _, alive = psutil.wait_procs(left, timeout=grace_s)
    for process in alive:
        with contextlib.suppress(psutil.Error):
            process.kill()
    if alive:
        print(f"ended {len(alive)} processes that outlived the shutdown", file=sys.stderr)
