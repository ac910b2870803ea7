"""How every benchmark's command ends: its exit status, and the words of each way to fail."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from types import FrameType

from rich.console import Console

from benchmarks.errors import BenchError, UnfitError

SIGNALS = (signal.SIGTERM, signal.SIGINT)


def run(bench: Callable[[Console], int]) -> int:
    """Run a benchmark; 1 when the run is void, 2 when this machine is unfit, 130 when interrupted."""
    console = Console()
    for name in SIGNALS:
        signal.signal(name, _interrupt)
    try:
        return bench(console)
    except UnfitError as error:
        console.print(f"cannot measure here: {error}", style="red", markup=False, soft_wrap=True)
        return 2
    except BenchError as error:
        console.print(f"the run is void: {error}", style="red", markup=False, soft_wrap=True)
        return 1
    except KeyboardInterrupt:
        console.print("interrupted; everything that was started has been stopped")
        return 130


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    """The first Ctrl-C begins the clean-up, further ones must not end it early."""
    for name in SIGNALS:
        signal.signal(name, signal.SIG_IGN)
    sys.stderr.write("stopping what was started ...\n")
    raise KeyboardInterrupt
