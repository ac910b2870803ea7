"""`make bench-workload`: which requests drafts help, and whether the router can tell.

Asks a running service, or reads what an earlier run saved.  Exit status: 0 all targets hold, 1 a target is
missed or the run is void, 2 there is no service to ask.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from benchmarks.command import run
from benchmarks.errors import BenchError
from benchmarks.results import RESULTS, Written, write_results
from benchmarks.showing import show_figures, show_table
from benchmarks.workload_analysis import Answered, joined
from benchmarks.workload_ask import ask_all
from benchmarks.workload_lines import Line, lines_of, read_lines
from benchmarks.workload_prompts import Prompt, find
from benchmarks.workload_report import (
    CLASS_HEAD,
    PREDICTOR_HEAD,
    TARGETS,
    class_rows,
    confusion,
    figures,
    page,
    predictor_rows,
)

URL: Final = "http://127.0.0.1:8000"


@dataclass(frozen=True, slots=True)
class Plan:
    """Where prompts and answers come from, and where results go."""

    url: str
    data: Path | None  # a folder with the data sets
    measured: Path | None  # answers of an earlier run
    save: Path | None  # where to keep the answers
    results: Path


def measure(plan: Plan, prompts: Sequence[Prompt], console: Console) -> list[Line]:
    """The answers, asked or read; raises BenchError."""
    if plan.measured is not None:
        return read_lines(plan.measured)

    def say(text: str) -> None:
        console.print(text, markup=False, highlight=False, soft_wrap=True)

    rows = asyncio.run(ask_all(plan.url, prompts, say))
    texts = [json.dumps(row) for row in rows]
    if plan.save is not None:
        plan.save.write_text("\n".join(texts) + "\n", encoding="utf-8")
    try:
        return lines_of(texts)
    except ValueError as error:
        raise BenchError(f"{plan.url}: {error}") from None


def show(console: Console, answers: Sequence[Answered], found: dict[str, float], written: Written) -> None:
    """Print the tables."""
    head, rows = confusion(answers)
    show_table(console, "Categories of the data, and our classes", head, rows)
    show_table(console, "Tokens per step", CLASS_HEAD, class_rows(answers))
    show_table(console, "What tells where drafts pay", PREDICTOR_HEAD, predictor_rows(answers))
    show_figures(console, TARGETS, found, TARGETS, written)


def bench(plan: Plan, console: Console) -> int:
    """Measure, write, show; returns the exit status.  Raises BenchError."""
    source, prompts = find(plan.data)
    console.print(f"prompts: {len(prompts)} of {source}", highlight=False, soft_wrap=True)
    answers = joined(prompts, measure(plan, prompts, console))
    if not answers:
        raise BenchError("no answer belongs to these prompts: give --data the folder they were asked from")
    found = figures(answers)
    written = write_results("workload", found, TARGETS, text=page(source, answers), folder=plan.results)
    show(console, answers, found, written)
    return written.exit_code


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.workload", description=__doc__)
    url = os.environ.get("TWINPOOL_URL", URL)
    parser.add_argument("--url", default=url, help="the running service (%(default)s)")
    parser.add_argument("--data", type=Path, help="folder with Spec-Bench and HumanEval")
    parser.add_argument("--from", dest="measured", type=Path, help="answers that an earlier run saved")
    parser.add_argument("--save", type=Path, help="where to keep the answers as JSON lines")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the results go (%(default)s)")
    asked: Any = parser.parse_args()
    plan = Plan(asked.url, asked.data, asked.measured, asked.save, asked.results)
    return run(lambda console: bench(plan, console))


if __name__ == "__main__":
    sys.exit(main())
