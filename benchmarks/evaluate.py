"""`make evaluate`: many policies on simulated fleets, ours among them; writes docs/evaluation.md.

Compares policies on three loads at three delays over five seeds, tries static splits and wrong beliefs, holds
the fluid model against the event model, and times a day of a thousand replicas.
With --quick it shows that it runs and little more, and leaves docs/evaluation.md alone.
Every run is kept in a file at once: an interrupted evaluation goes on with --resume.
Exit status: 0 all targets hold, 1 a target is missed or the run is void, 2 a figure is missing.
A default policy that another one dominates is a finding and no failure.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import msgspec
import psutil
from rich.console import Console

from app.simulation.contenders import CONTENDERS
from benchmarks.command import run
from benchmarks.errors import BenchError
from benchmarks.evaluate_cells import Plan
from benchmarks.evaluate_figures import TARGETS, Results, figures, results
from benchmarks.evaluate_load import published
from benchmarks.evaluate_page import Plots, page, results_text
from benchmarks.evaluate_plan import DELAY_S, FLEET_HOURS, NO_BACKFILL, OURS, Cell
from benchmarks.evaluate_plot import plot_fleets, plot_loads
from benchmarks.evaluate_progress import Shown
from benchmarks.evaluate_records import Begun, FleetRun, Records
from benchmarks.evaluate_run import run_all
from benchmarks.evaluate_sizes import FULL, QUICK
from benchmarks.evaluate_tables import SHORT_HEAD, short_rows
from benchmarks.evaluate_words import verdicts
from benchmarks.processes import module, run_to_end
from benchmarks.results import RESULTS, package_versions, write_results
from benchmarks.showing import show_figures, show_table

ROOT: Final = Path(__file__).parents[1]
KEPT: Final = Path("build/evaluate.jsonl")
QUICK_FOLDER: Final = Path("build/evaluate-quick")
IMAGES: Final = "images"  # beside the page
FLEET_LIMIT_S: Final = 1800.0
VERSIONS: Final = ("numpy", "scipy")


@dataclass(frozen=True, slots=True)
class Places:
    """Where an evaluation writes."""

    results: Path
    docs: Path  # evaluation.md and its images


def simulate(plan: Plan, records: Records, folder: Path | None, processes: int, console: Console) -> None:
    """Run what is missing, and keep each run at once.  Raises BenchError."""
    missing = records.found.missing(plan.cells())
    if missing:
        _say(console, f"{len(missing)} runs, {processes} side by side")
        with Shown(console, len(missing), "simulations") as shown:
            _run([cell for cell in missing if cell.delay_s == DELAY_S], records, folder, processes, shown)
            rest = [cell for cell in missing if cell.delay_s != DELAY_S]
            for same in filter(None, map(records.found.unmoved, rest)):
                records.simulated(same)
                shown.known()
            _run(records.found.missing(rest), records, folder, processes, shown)
    sizes = [size for size in plan.fleets if size not in records.found.fleets]
    if sizes:
        with Shown(console, len(sizes), "fleets") as shown:
            for size in sizes:  # one after another: each wants a core for itself
                records.timed(_timed(size))
                shown.done(f"{size} replicas")


def write(found: Results, places: Places, console: Console, *, quick: bool) -> int:
    """Write and show the results; returns the exit status."""
    images = places.docs / IMAGES
    plots = Plots(plot_loads(images, found), plot_fleets(images, found.fleets))
    words = {name: CONTENDERS[name].words for name in found.plan.contenders}
    words[OURS + NO_BACKFILL] = f"{OURS}, and batch work never enters the speculative pool"
    places.docs.mkdir(parents=True, exist_ok=True)
    text = page(found, words, plots, IMAGES, quick=quick)
    (places.docs / "evaluation.md").write_text(text, encoding="utf-8")
    values = figures(found)
    written = write_results(
        "evaluate",
        values,
        TARGETS,
        text=results_text(found),
        versions=package_versions(VERSIONS),
        folder=places.results,
        command="evaluate",
    )
    for panel, rows in found.panels.items():
        title = f"{panel.traffic.value.capitalize()}, a started replica serves after {panel.delay_s:g} s"
        show_table(console, title, SHORT_HEAD, short_rows(rows))
    for line in verdicts(found):
        _say(console, line)
    show_figures(console, TARGETS, values, TARGETS, written)
    _say(console, f"written: {places.docs / 'evaluation.md'}")
    return written.exit_code


def evaluate(
    plan: Plan,
    records: Records,
    folder: Path | None,
    processes: int,
    places: Places,
    console: Console,
    *,
    resumed: bool,
    quick: bool,
) -> int:
    """Simulate, write, show; returns the exit status.  Raises BenchError."""
    if folder is not None and not folder.is_dir():
        raise BenchError(f"--data {folder} is no folder: name the one that holds the published traces")
    if resumed:
        records.resume()
    else:
        records.begin()
    try:
        simulate(plan, records, folder, processes, console)
    except (BenchError, KeyboardInterrupt):
        _say(console, f"what was simulated is kept: --resume {records.path} goes on with it")
        raise
    return write(results(plan, records.found), places, console, quick=quick)


def _run(cells: list[Cell], records: Records, folder: Path | None, processes: int, shown: Shown) -> None:
    with closing(run_all(cells, folder, processes)) as runs:
        for done in runs:
            records.load(done.outcome.cell.traffic, done.load_words)
            records.simulated(done.outcome)
            shown.done(done.outcome.cell.words)


def _timed(replicas: int) -> FleetRun:
    command = module("benchmarks.evaluate_fleet", "--replicas", str(replicas), "--hours", f"{FLEET_HOURS:g}")
    out = run_to_end(f"the fleet of {replicas}", command, FLEET_LIMIT_S)
    try:
        return msgspec.json.decode(out, type=FleetRun)
    except msgspec.MsgspecError as error:
        raise BenchError(f"the fleet of {replicas} said {out[:200]!r} and no figures: {error}") from error


def _say(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def plan_of(given: Any) -> Plan:
    """The plan that the command line asks for."""
    plan = QUICK if given.quick else FULL
    minutes = plan.minutes if given.minutes is None else given.minutes
    return replace(plan, minutes=minutes, seeds=plan.seeds[: given.seeds])


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.evaluate",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="fewer policies and seeds, short traces")
    parser.add_argument(
        "--data", type=Path, metavar="FOLDER", help="where published traces lie; see the page"
    )
    parser.add_argument(
        "--minutes", type=float, help=f"of each trace ({FULL.minutes:g}, quick {QUICK.minutes:g})"
    )
    parser.add_argument("--seeds", type=int, help="only so many of them; more can follow with --resume")
    parser.add_argument("--processes", type=int, default=psutil.cpu_count() or 1, help="(%(default)s)")
    parser.add_argument("--save", type=Path, default=KEPT, help="where all runs are kept (%(default)s)")
    parser.add_argument("--resume", type=Path, metavar="FILE", help="go on with the runs that FILE has kept")
    parser.add_argument("--results", type=Path, help=f"where figures go ({RESULTS}, quick {QUICK_FOLDER})")
    parser.add_argument(
        "--docs", type=Path, help=f"where the page goes ({ROOT / 'docs'}, quick {QUICK_FOLDER})"
    )
    given: Any = parser.parse_args()
    if given.minutes is not None and not 0 < given.minutes <= 58:
        parser.error("--minutes must be above 0 and at most 58, the length of the published traces")
    if given.processes < 1 or (given.seeds is not None and given.seeds < 1):
        parser.error("--processes and --seeds must be at least 1")
    places = Places(
        given.results or (QUICK_FOLDER if given.quick else RESULTS),
        given.docs or (QUICK_FOLDER if given.quick else ROOT / "docs"),
    )
    folder = None if given.data is None else given.data.resolve()
    records = Records(given.resume or given.save, Begun(published(folder)))
    return run(
        lambda console: evaluate(
            plan_of(given),
            records,
            folder,
            given.processes,
            places,
            console,
            resumed=given.resume is not None,
            quick=given.quick,
        )
    )


if __name__ == "__main__":
    sys.exit(main())
