"""What is wrong with a policy file, and where: `Problem`, the names of fields and their places."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Path = tuple[str | int, ...]  # keys of mappings and indexes of lists, from the root
Positions = Mapping[str, tuple[int, int]]  # field -> line and column of its key, both from 1
MOST_PROBLEMS = 100  # more are not read by anybody
LONGEST_SHOWN = 60  # characters of a key or value in a message


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One thing to mend; `str` of it is the line that people read."""

    line: int  # from 1
    column: int  # from 1
    field: str  # such as spec.schedules[0].days; empty for the file as a whole
    message: str

    def __str__(self) -> str:
        field = f"{self.field}: " if self.field else ""
        return f"line {self.line}, column {self.column}: {field}{self.message}"


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem whose place is not looked up yet."""

    field: str
    message: str

    def at(self, positions: Positions) -> Problem:
        """The problem, at the field's place or at that of the nearest parent that the file has."""
        return Problem(*place(positions, self.field), self.field, self.message)


def field_name(path: Path) -> str:
    """A path as people write it: ("spec", "schedules", 0, "days") is spec.schedules[0].days."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{shown_key(part)}" if text else shown_key(part)
    return text


def shown_key(key: str) -> str:
    """A key on one line and not too long, whatever it holds."""
    plain = key if key.isprintable() else repr(key)[1:-1]
    return plain if len(plain) <= LONGEST_SHOWN else plain[:LONGEST_SHOWN] + "..."


def place(positions: Positions, field: str) -> tuple[int, int]:
    """Line and column of a field, or of the nearest parent that the file has; (1, 1) without any."""
    while field not in positions and field:
        field = field[: max(field.rfind("."), field.rfind("["), 0)]
    return positions.get(field, (1, 1))


def shown(value: object) -> str:
    """A value of the file in words, on one line and not too long."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return f"the number {_cut(str(value))}"
        case str():
            return f"the text {_cut(repr(value))}"
        case list() | tuple():
            return "a list"
        case _:
            return "a mapping"


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "..."
