"""`make bench-route`: what deciding on one request costs the ingress, from its body to its seat.

Exit status: 0 all targets hold, 1 a target is missed or the run is void, 2 the machine does not fit.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psutil
from rich.console import Console

from benchmarks.command import run
from benchmarks.path import Progress
from benchmarks.results import Written, write_results
from benchmarks.route_fleet import LARGE, SETTINGS
from benchmarks.route_prompts import Body, bodies, taking_turns
from benchmarks.route_report import HEAD, TARGETS, Timed, figures, page, rows
from benchmarks.route_run import measure
from benchmarks.showing import show_figures, show_table

BODIES = 40  # different ones of each kind
BUSY = 25  # per cent of the CPU that others use, above which p99 is theirs


@dataclass(frozen=True, slots=True)
class Plan:
    """How many requests."""

    each: int  # per setting
    warm_up: int
    parts: int
    large: int


FULL = Plan(each=5000, warm_up=500, parts=4000, large=1000)
QUICK = Plan(each=1000, warm_up=200, parts=500, large=200)
EXPECTED_S = 0.0007  # per request, with the building of a snapshot now and then


def measure_all(
    plan: Plan, made: list[Body], progress: Progress
) -> tuple[list[Timed], list[Timed], list[Timed]]:
    """Every setting, then the parts, then a large fleet; raises BenchError."""

    def taken(count: int) -> Iterator[Body]:
        return taking_turns(made, count)

    timed: list[Timed] = []
    for setting in SETTINGS:
        progress.step(f"{plan.each:,} requests over 8 replicas, {setting.name}", plan.each * EXPECTED_S)
        timed += asyncio.run(measure(setting, taken(plan.each), taken(plan.warm_up)))
    progress.step(f"{plan.parts:,} requests, part by part", plan.parts * EXPECTED_S)
    parts = asyncio.run(measure(SETTINGS[-1], taken(plan.parts), taken(plan.warm_up), parts=True))
    progress.step(f"{plan.large:,} requests over {LARGE.replicas:,} replicas", plan.large * 10 * EXPECTED_S)
    large = asyncio.run(measure(LARGE, taken(plan.large), taken(plan.warm_up // 10)))
    return timed, parts, large


def show(console: Console, timed: list[Timed], found: dict[str, float], written: Written) -> None:
    """Print the tables."""
    show_table(console, "Own decision code per request", HEAD, rows(timed))
    show_figures(console, found, found, TARGETS, written)


def bench(plan: Plan, console: Console) -> int:
    """Measure, write, show; returns the exit status.  Raises BenchError."""
    busy = psutil.cpu_percent(interval=1.0)
    if busy > BUSY:
        console.print(
            f"other programs use {busy:.0f} % of the CPU: end them for figures that can be compared",
            highlight=False,
            soft_wrap=True,
        )
    requests = len(SETTINGS) * plan.each + plan.parts + 10 * plan.large
    progress = Progress(console, requests * EXPECTED_S)
    timed, parts, large = measure_all(plan, bodies(BODIES), progress)
    found = figures(timed, parts, large)
    written = write_results("route", found, TARGETS, text=page(timed, large))
    show(console, timed, found, written)
    return written.exit_code


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.route", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a fifth of the requests")
    asked: Any = parser.parse_args()
    return run(lambda console: bench(QUICK if asked.quick else FULL, console))


if __name__ == "__main__":
    sys.exit(main())
