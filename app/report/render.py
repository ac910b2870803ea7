"""A report's sections as one HTML page and as Markdown; what comes from outside makes no markup."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from app.report.blocks import Section

if TYPE_CHECKING:
    from jinja2 import Environment

# What a reader of Markdown would take for markup, in names and in words; an underscore only at a word's edge.
_MARKUP = re.compile(r"[\\`*<>|\[\]~&]|(?<![0-9A-Za-z])_|_(?![0-9A-Za-z])")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_MARKUP_AT_START = re.compile(r"^(\d*)([-+](?= |$)|#|=|[.)](?= |$))")


@dataclass(frozen=True, slots=True)
class Notice:
    """What a reader has to know before anything else: two words, and sentences."""

    title: str
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """A whole report."""

    title: str
    subject: Sequence[str]  # what it is about, in a line of parts
    sections: Sequence[Section]  # the first one is the answer
    words: Sequence[tuple[str, str]]  # terms and their meaning
    notice: Notice | None = None


def html(page: Page, drawn: Mapping[str, str]) -> str:
    """A page that needs nothing else: no script, no font, no picture from elsewhere.

    `drawn` is plot name -> SVG text; a plot that is not in it is left out.
    """
    return _environment().get_template("report.html.j2").render(page=page, drawn=drawn)


def markdown(
    page: Page, title_of: Callable[[str], str], folder: str | None = None, files: Collection[str] = ()
) -> str:
    """The same in Markdown, one sentence per line.

    `folder` holds the SVG files of the plots, of which `files` are there; None leaves the plots out.
    `title_of` gives the title of a plot by its name.
    """
    text = (
        _environment()
        .get_template("report.md.j2")
        .render(page=page, title_of=title_of, folder=folder, files=files)
    )
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def _cell(text: str) -> str:
    """Text inside a line as Markdown shows it, with nothing in it taken for markup."""
    escaped = _MARKUP.sub(lambda found: _ENTITIES.get(found[0], f"\\{found[0]}"), text)
    return " ".join(escaped.split())


def _md(text: str) -> str:
    """The same at the begin of a line."""
    return _MARKUP_AT_START.sub(r"\1\\\2", _cell(text))


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape  # noqa: PLC0415

    made = Environment(
        loader=PackageLoader("app.report", "."),
        autoescape=select_autoescape(("html.j2",), default=False),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(md=_md, cell=_cell)
    return made
