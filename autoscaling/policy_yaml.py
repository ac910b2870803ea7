"""YAML text to plain data in which every field has its place; what is risky in YAML is refused there.

One document of mappings with text keys, lists and scalars.  Unquoted scalars are null, true, false or
decimal numbers as in YAML 1.2, else text.  No anchors, aliases, tags or duplicate keys.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn

import yaml

from autoscaling.policy_problem import MOST_PROBLEMS, Path, Problem, field_name, shown, shown_key
from autoscaling.policy_yaml_words import unreadable

LARGEST = 100_000  # characters; a policy has a few thousand, and a ConfigMap may have a million
EMPTY = "the file is empty; a policy needs apiVersion, kind, metadata and spec"
DEEPEST = 16  # levels; a policy has 7
MOST_NODES = 5000  # keys, values and list entries; a policy with every list full has fewer

_NULL = {"", "~", "null", "Null", "NULL"}
_BOOL = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INT = re.compile(r"[-+]?(0|[1-9][0-9]{0,30})")
_FLOAT = re.compile(r"[-+]?(\.[0-9]{1,30}|(0|[1-9][0-9]{0,30})(\.[0-9]{0,30})?)([eE][-+]?[0-9]{1,3})?")
_NOT_FINITE = re.compile(r"[-+]?\.inf|\.nan", re.IGNORECASE)
_SEXAGESIMAL = re.compile(r"[-+]?[0-9]+(:[0-5]?[0-9])+(\.[0-9]*)?")


@dataclass(slots=True)
class Document:
    """What a text holds.  Below a path in `broken` stands None instead of what was refused."""

    data: Any = None
    positions: dict[str, tuple[int, int]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    broken: set[Path] = field(default_factory=set)
    whole: bool = False  # read to its end: `data` says what the file says


class _Stop(Exception):  # noqa: N818 - reading ends here; the problem is already noted
    pass


def read_yaml(text: str) -> Document:
    """Read any text; never raises."""
    if len(text) > LARGEST:
        return Document(problems=[Problem(1, 1, "", f"the file has more than {LARGEST} characters")])
    reader = _Reader()
    try:
        reader.read(text)
    except _Stop:
        pass
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        reader.document.problems.append(unreadable(error, text))
    return reader.document


class _Reader:
    def __init__(self) -> None:
        self.document = Document()
        self._nodes = 0

    def read(self, text: str) -> None:
        self._events: Iterator[yaml.Event] = yaml.parse(text, Loader=yaml.SafeLoader)
        events = self._events
        next(events)  # the stream's start
        event = next(events)
        if isinstance(event, yaml.StreamEndEvent):
            self.document.problems.append(Problem(1, 1, "", EMPTY))
            return
        if _begins_with_directive(event, text):
            self._stop(event, (), "a line such as %YAML or %TAG: directives are not used in a policy")
        root = next(events)
        self.document.positions[""] = _at(root)
        self.document.data = self._value(root, ())
        next(events)  # the document's end
        more = next(events)
        if not isinstance(more, yaml.StreamEndEvent):
            self._stop(more, (), "a second document begins here; a policy file has one")
        self.document.whole = True

    def _note(self, event: yaml.Event, path: Path, message: str) -> None:
        self.document.problems.append(Problem(*_at(event), field_name(path), message))
        if len(self.document.problems) >= MOST_PROBLEMS:
            raise _Stop

    def _stop(self, event: yaml.Event, path: Path, message: str) -> NoReturn:
        self._note(event, path, message)
        raise _Stop

    def _refuse(self, event: yaml.Event, path: Path, message: str) -> None:
        self._note(event, path, message)
        self.document.broken.add(path)

    def _value(self, event: yaml.Event, path: Path) -> Any:
        self._nodes += 1
        if self._nodes > MOST_NODES:
            self._stop(event, (), f"the file has more than {MOST_NODES} keys and values; a policy has fewer")
        if isinstance(event, yaml.AliasEvent):
            self._refuse(event, path, f"alias *{shown_key(event.anchor or '')}: write the value out again")
            return None
        assert isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent)
        if event.anchor is not None:
            self._note(event, path, f"anchor &{shown_key(event.anchor)}: anchors are not used in a policy")
        if event.tag is not None:
            self._refuse(event, path, f"tag {shown_key(event.tag)}: tags are not used in a policy")
        if len(path) > DEEPEST:
            self._stop(event, path[:DEEPEST], f"nested more than {DEEPEST} levels deep")
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event, path)
        return self._mapping(path) if isinstance(event, yaml.MappingStartEvent) else self._list(path)

    def _list(self, path: Path) -> list[Any]:
        found: list[Any] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            item = (*path, len(found))
            self.document.positions[field_name(item)] = _at(event)
            found.append(self._value(event, item))
        return found

    def _mapping(self, path: Path) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            problems = len(self.document.problems)
            key = self._value(event, (*path, "?"))
            self.document.broken.discard((*path, "?"))
            value_event = next(self._events)
            if not isinstance(key, str):
                if len(self.document.problems) == problems:
                    self._note(event, path, f"a field's name must be text, given {shown(key)}")
                self._value(value_event, (*path, "?"))
                continue
            inner = (*path, key)
            name = field_name(inner)
            if key in found:
                first, second = self.document.positions[name][0], _at(event)[0]
                where = f"on line {first} and on line {second}" if first != second else f"on line {first}"
                self._note(event, inner, f"is given twice, {where}")
                self._value(value_event, (*path, "?"))
                continue
            self.document.positions[name] = _at(event)
            found[key] = self._value(value_event, inner)
        return found

    def _scalar(self, event: yaml.ScalarEvent, path: Path) -> Any:
        text: str = event.value
        # JSON has no place for one, nor has UTF-8.
        if any("\ud800" <= character <= "\udfff" for character in text):
            self._refuse(event, path, "half of a surrogate pair is no character")
            return None
        if event.style:  # in quotes or a block
            return text
        if text in _NULL:
            return None
        if text in _BOOL:
            return _BOOL[text]
        if _INT.fullmatch(text):
            return int(text)
        if _FLOAT.fullmatch(text):
            number = float(text)
            if number - number == 0:
                return number
            self._refuse(event, path, f"{shown_key(text)} is too large for a number")
        elif _NOT_FINITE.fullmatch(text):
            self._refuse(event, path, f"{text} is not a number that can be obeyed; write a finite one")
        elif _SEXAGESIMAL.fullmatch(text):
            clock = shown_key(text)
            self._refuse(
                event, path, f'write it in quotes, "{clock}": some YAML readers take {clock} for a number'
            )
        else:
            return text
        return None


def _begins_with_directive(event: yaml.Event, text: str) -> bool:
    """Whether the document begins with a line that YAML readers obey, also one that PyYAML passes over."""
    assert event.start_mark is not None
    return text[event.start_mark.index : event.start_mark.index + 1] == "%"


def _at(event: yaml.Event) -> tuple[int, int]:
    assert event.start_mark is not None
    return event.start_mark.line + 1, event.start_mark.column + 1
