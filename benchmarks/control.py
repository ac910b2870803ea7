"""`make bench-control`: reports that one controller takes, what its decisions cost, and what it gathers.

Exit status: 0 all targets hold, 1 a target is missed or the run is void, 2 the machine does not fit.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil
from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.command import run
from benchmarks.control_child import Found, run_part
from benchmarks.control_fleet import FLEET
from benchmarks.control_report import HEAD, TARGETS, Growth, Loaded, Ticks, figures, page, rate_rows
from benchmarks.errors import UnfitError
from benchmarks.path import Progress
from benchmarks.results import Written, write_results
from benchmarks.showing import show_figures

MEMORY_NEEDED = 3 << 30  # Ray with four processes of ours, with room
GROWTH_TICKS = 100_000
TICKS, LIVE = "benchmarks.control_ticks", "benchmarks.control_live"


@dataclass(frozen=True, slots=True)
class Plan:
    """How much of everything, and how long it is expected to take, in seconds."""

    ticks: int
    count_s: float  # per offered rate
    growth_replicas: int
    ticks_s: float
    live_s: float
    growth_s: float


# Memory that is not given back shows at any number of replicas; a tick over fewer is quicker.
FULL = Plan(10_000, 15.0, FLEET, ticks_s=45.0, live_s=90.0, growth_s=400.0)
QUICK = Plan(2000, 6.0, FLEET // 10, ticks_s=10.0, live_s=60.0, growth_s=110.0)
LATE = 5.0  # times the expected, and the run is void


def measure(plan: Plan, folder: Path, progress: Progress) -> tuple[Ticks, list[Loaded], Growth]:
    """The three parts, one after the other; raises BenchError."""

    def heard(text: str) -> None:
        progress.step(f"  {text}")

    def part(name: str, kind: type[Found], expected_s: float, *command: str) -> Found:
        return run_part(name, command, kind, folder, 60.0 + LATE * expected_s, heard)

    progress.step(f"{plan.ticks:,} ticks over {FLEET:,} replicas, each timed", plan.ticks_s)
    ticks = part("ticks", Ticks, plan.ticks_s, TICKS, "time", "--ticks", str(plan.ticks))
    progress.step(f"reports of {FLEET:,} replicas on Ray Serve", plan.live_s)
    rates = part("live", list[Loaded], plan.live_s, LIVE, "--count-s", str(plan.count_s))
    progress.step(f"memory over {GROWTH_TICKS:,} ticks, {plan.growth_replicas:,} replicas", plan.growth_s)
    size = ("--ticks", str(GROWTH_TICKS), "--replicas", str(plan.growth_replicas))
    growth = part("growth", Growth, plan.growth_s, TICKS, "growth", *size)
    return ticks, rates, growth


def check_machine(say: Callable[[str], None]) -> None:
    """Refuse a machine that would swap; warn of one that is busy.  Raises UnfitError."""
    free = psutil.virtual_memory().available
    if free < MEMORY_NEEDED:
        raise UnfitError(
            f"{free / 2**30:.1f} GiB of memory are free and {MEMORY_NEEDED / 2**30:.0f} are needed: "
            "end other programs first"
        )
    busy = psutil.cpu_percent(interval=1.0)
    if busy > 25:
        say(f"other programs use {busy:.0f} % of the CPU: end them for figures that can be compared")


def show(console: Console, rates: list[Loaded], found: dict[str, float], written: Written) -> None:
    """Print the tables."""
    table = Table(title="Reports taken while four snapshots a second are fetched", box=box.SIMPLE)
    for title in HEAD:
        table.add_column(title, justify="right")
    for row in rate_rows(rates):
        table.add_row(*row)
    console.print(table)
    show_figures(console, found, found, TARGETS, written)


def bench(plan: Plan, console: Console) -> int:
    """Measure, write, show; returns the exit status.  Raises BenchError."""
    check_machine(lambda text: console.print(text, markup=False, highlight=False, soft_wrap=True))
    progress = Progress(console, plan.ticks_s + plan.live_s + plan.growth_s)
    with TemporaryDirectory(prefix="twinpool-bench-") as folder:
        ticks, rates, growth = measure(plan, Path(folder), progress)
    found = figures(ticks, rates, growth)
    written = write_results("control", found, TARGETS, text=page(ticks, rates, growth))
    show(console, rates, found, written)
    return written.exit_code


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.control", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer ticks, and memory over 100 replicas")
    asked: Any = parser.parse_args()
    return run(lambda console: bench(QUICK if asked.quick else FULL, console))


if __name__ == "__main__":
    sys.exit(main())
