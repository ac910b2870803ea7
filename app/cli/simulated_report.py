"""How the commands that simulate end: files in a folder, words and a table, and the exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

import typer
from rich.console import Console
from rich.table import Table

from app.bench.store import (
    HTML,
    MARKDOWN,
    MEASUREMENT,
    PLOTS,
    SCORES,
    StoreError,
    prepare_folder,
    write_plots,
    write_text,
)
from app.cli.output import FINDING, OK, fail, print_json, printable, table

if TYPE_CHECKING:
    from app.simulation.report.match import Match
    from app.simulation.report.subject import Subject

WIDEST: Final = 300  # columns of a table


def make_folder(out: Path | None) -> None:
    """Make the folder before anything is simulated; ends the command where it cannot be written."""
    if out is None:
        return
    try:
        prepare_folder(out, (SCORES, HTML, MARKDOWN), spared=(MEASUREMENT,))
    except StoreError as error:
        fail(str(error), "choose another folder for the report")


def end(subject: Subject, out: Path | None, wanted_json: bool) -> NoReturn:
    """Write the files, show what was found, and end the command by whether the objectives were kept."""
    from app.simulation.report.advice import advice  # noqa: PLC0415
    from app.simulation.report.answer import details, lead  # noqa: PLC0415
    from app.simulation.report.document import as_json  # noqa: PLC0415
    from app.simulation.report.judged import misses  # noqa: PLC0415

    files = {} if out is None else _written(subject, out)
    if wanted_json:
        print_json(as_json(subject, series=False) | {"files": files})
    else:
        console = Console(highlight=False)
        for sentence in (*lead(subject), *details(subject)):
            console.print(printable(sentence), markup=False)
        console.print()
        print_scores(subject)
        console.print()
        if subject.match is not None:
            _print_match(subject.match, console)
        found = advice(subject, subject.asked)
        for line in (*(f"to do: {one}" for one in found), *(f"note: {one}" for one in subject.notes)):
            console.print(printable(line), markup=False)
        for path in files.values():
            console.print(printable(path), markup=False, soft_wrap=True)
    raise typer.Exit(FINDING if misses(subject, subject.asked) else OK)


def print_scores(subject: Subject) -> None:
    """Print the table of policies and tiers, and what its columns are."""
    from app.simulation.report import table as report  # noqa: PLC0415
    from app.simulation.report.rows import TOKENS_WORDS, rate_words  # noqa: PLC0415

    print_wide(report.table(subject))
    print(f"tokens/s: {TOKENS_WORDS}")
    if words := rate_words(subject):
        print(words)


def _print_match(found: Match, console: Console) -> None:
    from app.simulation.report.rows import MATCH_HEAD, match_rows  # noqa: PLC0415

    for sentence in found.sentences:
        console.print(printable(sentence), markup=False)
    console.print()
    print_wide(table(MATCH_HEAD, match_rows(found)))
    console.print()


def print_wide(found: Table) -> None:
    """Print a table at its full width: a narrow window wraps lines, which is easier to read than cells."""
    console = Console(highlight=False)
    wanted = console.measure(found, options=console.options.update(width=WIDEST)).maximum
    Console(highlight=False, width=max(console.width, wanted)).print(found)


def _written(subject: Subject, out: Path) -> dict[str, str]:
    from app.simulation.report.document import as_json  # noqa: PLC0415
    from app.simulation.report.page import html, markdown, svg_files  # noqa: PLC0415
    from app.simulation.report.plots import FILES  # noqa: PLC0415

    texts = {
        SCORES: json.dumps(as_json(subject), indent=1, allow_nan=False) + "\n",
        HTML: html(subject),
        MARKDOWN: markdown(subject, PLOTS),
    }
    try:
        write_plots(out, svg_files(subject), FILES)
        for name, text in texts.items():
            write_text(out / name, text)
    except StoreError as error:
        fail(str(error), "choose another folder for the report")
    return {
        "scores": str(out / SCORES),
        "report": str(out / HTML),
        "markdown": str(out / MARKDOWN),
    }
