"""What the commands share: exit codes, options, and how times and unknown values are shown."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from autoscaling.one_line import UNSEEN

OK, FINDING, CANNOT_TELL = 0, 1, 2  # exit codes: fine; a finding or not ready; usage, or cannot tell
UNKNOWN = "-"
LABEL_WIDTH = 8
# Half of a surrogate pair stands for a byte of a file name that is no text; it cannot be printed.
_UNSEEN = re.compile(rf"[{UNSEEN}\ud800-\udfff]")

Output = Annotated[str, typer.Option("--output", "-o", help="text or json.")]
AsJson = Annotated[bool, typer.Option("--json", help="The same as -o json.")]
Url = Annotated[str | None, typer.Option(help="Service address; TWINPOOL_URL otherwise.")]


def fail(error: str, mend: str, code: int = CANNOT_TELL) -> NoReturn:
    """Say what is wrong and what to do next, and end the command."""
    print(f"error: {printable(error)}\nmend: {printable(mend)}", file=sys.stderr)
    raise typer.Exit(code)


def fail_as_said(where: str, error: Exception) -> NoReturn:
    """End the command by an error whose message ends with what to do, behind its last colon."""
    what, _, mend = str(error).rpartition(": ")
    fail(f"{where}: {what}", mend)


def path_of(text: str) -> Path:
    """Read the name of a file or folder; an empty one, as of a variable without a value, is refused."""
    if not text.strip():
        raise typer.BadParameter("the name is empty: give one, or leave the option out")
    return Path(text)


def wants_json(output: str, as_json: bool) -> bool:
    """Whether JSON is asked for; any other word than text and json ends the command."""
    return choose(output, as_json, ("text", "json")) == "json"


def choose(output: str, as_json: bool, words: tuple[str, ...]) -> str:
    """The form of output, one of `words`; ends the command for another word."""
    if output not in words:
        listed = f"{', '.join(words[:-1])} or {words[-1]}"
        fail(f"-o is {listed}, not {output}", f"write -o {words[0]}, or leave it out")
    return "json" if as_json else output


def printable(text: str, *, lines: bool = False) -> str:
    """Show every character that a terminal would obey as \\x1b or \\u202e.

    With `lines` it is a text of several lines, whose line ends and tabs stay.
    """
    return _UNSEEN.sub(lambda found: found[0] if lines and found[0] in "\n\t" else _escaped(found[0]), text)


def printable_values(found: Any) -> Any:
    """Make each text in a JSON value `printable` on one line, before it is shown to people."""
    match found:
        case str():
            return printable(found)
        case dict():
            return {printable(key): printable_values(value) for key, value in found.items()}
        case list():
            return [printable_values(item) for item in found]
        case _:
            return found


def print_json(found: Any) -> None:
    """Print JSON for programs; a number that JSON does not have is a defect and raises ValueError."""
    print(json.dumps(found, indent=2, allow_nan=False))


def print_table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    """Print a table whose cells are plain text: a reason may hold square brackets."""
    Console().print(table(head, rows))


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> Table:
    """Build a table of plain text without a frame."""
    # Folded, not cut: a reason must be readable, also in a narrow window.
    found = Table(*head, box=None, pad_edge=False)
    for column in found.columns:
        column.overflow = "fold"
    for row in rows:
        found.add_row(*(Text(printable(cell)) for cell in row))
    return found


def labelled(rows: Iterable[tuple[str, Text]]) -> Table:
    """Build lines with a label each, a repeated one written once; words that wrap keep their indent."""
    found = Table.grid(padding=(0, 2, 0, 0))
    found.add_column(no_wrap=True, min_width=LABEL_WIDTH)
    found.add_column(overflow="fold")
    former = ""
    for label, words in rows:
        found.add_row("" if label == former else label, words)
        former = label or former
    return found


def show_time(found: str | None) -> str:
    """Write an RFC 3339 time for people, in UTC to the second; a dash for an unknown one."""
    if found is None:
        return UNKNOWN
    try:
        return f"{datetime.fromisoformat(found).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    except ValueError:
        return found


def show_clock(found: str | None, now: str) -> str:
    """Write a time on the UTC day of `now` as HH:MM:SS, and one of another day as `show_time` does."""
    shown, today = show_time(found), show_time(now)[: len("YYYY-MM-DD")]
    return shown.removeprefix(today).removesuffix("UTC").strip() if shown.startswith(today) else shown


def show(value: float | str | None) -> str:
    """Write a value; a dash for an unknown one."""
    if value is None:
        return UNKNOWN
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def _escaped(character: str) -> str:
    number = ord(character)
    return f"\\x{number:02x}" if number <= 0xFF else f"\\u{number:04x}"
