"""What a report is made of, before it is HTML or Markdown: sections of sentences, lists, tables and plots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Text:
    """Sentences that belong together."""

    kind: ClassVar[str] = "text"
    sentences: tuple[str, ...]
    lead: bool = False  # the answer itself


@dataclass(frozen=True, slots=True)
class Caution:
    """Sentences that a reader must not miss."""

    kind: ClassVar[str] = "warning"
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading inside a section."""

    kind: ClassVar[str] = "heading"
    text: str


@dataclass(frozen=True, slots=True)
class Points:
    """A list; each point is one or more sentences."""

    kind: ClassVar[str] = "points"
    points: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Code:
    """Text to copy as it is."""

    kind: ClassVar[str] = "code"
    text: str


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text under a head; the first column names the row."""

    kind: ClassVar[str] = "table"
    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: frozenset[int] = frozenset({0})  # columns of words; the others hold numbers
    good: frozenset[tuple[int, int]] = frozenset()  # (row, column) of cells that speak for drafting
    bad: frozenset[tuple[int, int]] = frozenset()
    folded: bool = False  # long, and closed until the reader opens it


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot by its name in `plots`, and in words what it shows."""

    kind: ClassVar[str] = "plot"
    name: str
    caption: str


Block = Text | Caution | Heading | Points | Code | Table | Plot


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the report."""

    key: str  # of its anchor
    title: str
    blocks: Sequence[Block]
    acceptance: bool = field(default=True)  # whether it rests on how drafts were accepted
