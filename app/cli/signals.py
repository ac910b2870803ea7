"""What the user asks of a running `serve` by signal."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import psutil

REAP_S = 0.5
IMPATIENT = 3  # the third stop signal ends everything at once


class Signals:
    """Events that the handlers set; `install` puts the handlers in place, again if need be."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        self.reload = threading.Event()
        self._stops = 0

    def install(self) -> dict[int, Any]:
        """Ctrl-C, SIGTERM and a closed terminal stop; SIGUSR1 rereads the settings.  Returns the former."""
        handlers = {
            signal.SIGINT: self._on_stop,
            signal.SIGTERM: self._on_stop,
            signal.SIGHUP: self._on_stop,
            signal.SIGUSR1: self._on_reload,
        }
        return {number: signal.signal(number, handler) for number, handler in handlers.items()}

    def _on_stop(self, _number: int, _frame: Any) -> None:
        self._stops += 1
        if self._stops >= IMPATIENT:
            end_children()
            os._exit(130)
        self.stop.set()

    def _on_reload(self, _number: int, _frame: Any) -> None:
        self.reload.set()


@contextlib.contextmanager
def listening() -> Iterator[Signals]:
    """Handle signals while this lasts."""
    signals = Signals()
    before = signals.install()
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


def reap_adopted() -> None:
    """Keep collecting adopted processes that have ended; call when our own children have been started.

    Our own, Ray's processes, are Ray's to collect.
    """
    own = {child.pid for child in psutil.Process().children()}

    def reap() -> None:
        while True:
            time.sleep(REAP_S)
            for child in psutil.Process().children():
                with contextlib.suppress(psutil.Error, ChildProcessError):
                    if child.pid not in own and child.status() == psutil.STATUS_ZOMBIE:
                        os.waitpid(child.pid, os.WNOHANG)

    threading.Thread(target=reap, name="reaper", daemon=True).start()


def end_children(grace_s: float = 5.0) -> None:
    """Nothing of ours may outlive us: what Ray's shutdown left is killed."""
    left = psutil.Process().children(recursive=True)
    _, alive = psutil.wait_procs(left, timeout=grace_s)
    for process in alive:
        with contextlib.suppress(psutil.Error):
            process.kill()
    if alive:
        print(f"ended {len(alive)} processes that outlived the shutdown", file=sys.stderr)
