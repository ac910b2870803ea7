"""What every benchmark prints at its end: tables, figures beside their targets, where they were written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.results import Target, Verdict, Written, number

COLOURS = {Verdict.HOLDS: "green", Verdict.MISSED: "red", Verdict.NOT_MEASURED: "yellow"}


def show_table(console: Console, title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print one table; the first column is names, the others are numbers."""
    table = Table(title=title, box=box.SIMPLE)
    for index, name in enumerate(head):
        table.add_column(name, justify="right" if index else "left")
    for row in rows:
        table.add_row(*row)
    console.print(table)


def show_figures(
    console: Console,
    names: Iterable[str],
    found: Mapping[str, float],
    targets: Mapping[str, Target],
    written: Written,
) -> None:
    """Print these figures, a verdict on those that have a target, and where the results are."""
    for name in names:
        words, style = f"{name} {number(found.get(name))}", ""
        if name in targets:
            (sign, bound), verdict = targets[name], written.verdicts[name]
            words, style = f"{words}, target {sign} {number(bound)}: {verdict.value}", COLOURS[verdict]
        console.print(words, style=style, highlight=False, soft_wrap=True)
    console.print(f"written: {written.json} and {written.markdown.name}", highlight=False, soft_wrap=True)
