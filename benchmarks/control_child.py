"""One part of `benchmarks.control` in a process of its own: the lines it says, and the JSON it leaves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from benchmarks.control_report import Growth, Loaded, Ticks
from benchmarks.processes import Child, module

SAYS = "says: "  # begins a line of the log that is passed on
STOP_LIMIT_S = 30.0

Found = TypeVar("Found")


def say(text: str) -> None:
    """In the child: a line for whoever waits."""
    print(f"{SAYS}{text}", flush=True)


def leave(found: Ticks | Growth | Sequence[Loaded], out: Path) -> None:
    """In the child: what was measured, in one step."""
    temporary = out.with_name(out.name + ".tmp")
    temporary.write_bytes(msgspec.json.encode(found))
    temporary.replace(out)


def run_part(
    name: str,
    command: Sequence[str],
    kind: type[Found],
    folder: Path,
    limit_s: float,
    heard: Callable[[str], None],
) -> Found:
    """Run a module of ours with its arguments and return what it leaves; raises BenchError."""
    out, log = folder / f"{name}.json", folder / f"{name}.log"
    child = Child(name, module(*command, "--out", str(out)), folder)
    read = 0

    def ended() -> bool:
        nonlocal read
        whole, _, _ = log.read_text(encoding="utf-8", errors="replace").rpartition("\n")
        for line in said(whole[read:]):
            heard(line)
        read = len(whole)
        return out.exists()

    try:
        child.wait_ready(ended, limit_s)
    finally:
        child.stop(STOP_LIMIT_S)
    return msgspec.json.decode(out.read_bytes(), type=kind)


def said(text: str) -> list[str]:
    """The lines of a piece of a log that are passed on."""
    return [line.removeprefix(SAYS) for line in text.splitlines() if line.startswith(SAYS)]
