"""Objects out of YAML, paths into them, and what a rule has found there; no IO."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import yaml

from app.k8s.rules import Rule
from autoscaling.policy_problem import Path, Problem

# libyaml where it is there: a rendered overlay has two thousand lines.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NO_OBJECT = "an object is a mapping with apiVersion, kind and metadata"


@dataclass(frozen=True, slots=True)
class Document:
    """One object: where it was read, and what it says."""

    data: Mapping[str, Any]
    file: str  # as the reader called it
    place: int = 0  # its number in that file, from 0
    lines: Mapping[Path, int] = field(default_factory=dict, hash=False, compare=False)

    @property
    def kind(self) -> str:
        """Its kind; empty when it has none."""
        return str(self.data.get("kind") or "")

    @property
    def name(self) -> str:
        """Its name; empty when it has none."""
        return str(mapping(self.data.get("metadata")).get("name") or "")

    @property
    def label(self) -> str:
        """How people call it."""
        return f"{self.kind}/{self.name}"


@dataclass(frozen=True, slots=True)
class Found:
    """A finding of one rule in one object, before its source file is looked up.

    `inner` leads on inside a Serve config that stands at `path` as a text, and `problem` is one of a text
    that stands there, a policy or a Serve config, with its line in that text.
    """

    rule: Rule
    document: Document
    path: Path
    message: str
    inner: Path = ()
    problem: Problem | None = None


class Unreadable(Exception):  # noqa: N818  # an outcome with a place
    """A text that is no YAML; `line` counts from 1."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(f"line {line}: {message}")
        self.line = line
        self.message = message


def read(text: str, file: str) -> list[Document]:
    """Every object of a text of one or more YAML documents; raises Unreadable."""
    found = []
    with _located():
        for place, node in enumerate(yaml.compose_all(text, Loader=_LOADER)):
            data, lines = _value(node)
            if data is None:
                continue
            if not isinstance(data, dict):
                raise Unreadable(lines[()], _NO_OBJECT)
            found += _items(Document(data, file, place, lines))
    return found


def _items(document: Document) -> list[Document]:
    """The objects of a List, as `kubectl get -o yaml` prints them; of any other object itself."""
    items = document.data.get("items")
    if not (document.kind.endswith("List") and isinstance(items, list)):
        return [document]
    if document.kind != "List" and not all("kind" in mapping(item) for item in items):
        return [document]
    lines: list[dict[Path, int]] = [{} for _ in items]
    for path, line in document.lines.items():
        if len(path) > 1 and path[0] == "items" and isinstance(path[1], int):
            lines[path[1]][path[2:]] = line
    found: list[Document] = []
    for item, own in zip(items, lines, strict=True):
        if not isinstance(item, dict):
            raise Unreadable(own[()], _NO_OBJECT)
        found += _items(Document(item, document.file, document.place, own))
    return found


def read_any(text: str) -> Any:
    """One YAML document as plain data, whatever it is; raises Unreadable."""
    return value_and_lines(text)[0]


def value_and_lines(text: str) -> tuple[Any, Mapping[Path, int]]:
    """One YAML document as plain data, with the line of each place in it; raises Unreadable."""
    with _located():
        return _value(yaml.compose(text, Loader=_LOADER))


@contextmanager
def _located() -> Iterator[None]:
    try:
        yield
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise Unreadable(mark.line + 1 if mark else 1, str(error.problem or error.context)) from None
    except (yaml.YAMLError, ValueError) as error:
        raise Unreadable(1, str(error).replace("\n", " ")) from None


def _value(node: yaml.Node | None) -> tuple[Any, dict[Path, int]]:
    lines: dict[Path, int] = {}
    if node is None:
        return None, lines
    _positions(node, (), lines)
    return yaml.constructor.SafeConstructor().construct_document(node), lines


def _positions(
    node: yaml.Node, path: Path, lines: dict[Path, int], above: frozenset[int] = frozenset()
) -> None:
    """The line of each key and entry; raises Unreadable for a key that stands twice, or an alias in a circle.

    `above` are the nodes that hold this one.
    """
    if id(node) in above:
        line = node.start_mark.line + 1
        raise Unreadable(line, "an alias names what it stands in, so the text has no end: write it out")
    above |= {id(node)}
    lines.setdefault(path, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        seen = set()
        for key, value in node.value:
            name = str(key.value)
            if name in seen and name != "<<":
                raise Unreadable(key.start_mark.line + 1, f"the key {name} stands twice")
            seen.add(name)
            lines[*path, name] = key.start_mark.line + 1
            _positions(value, (*path, name), lines, above)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            _positions(value, (*path, index), lines, above)


def line_of(lines: Mapping[Path, int], path: Path) -> int:
    """The line of a place, or of the nearest one above it that the text has."""
    for length in range(len(path), -1, -1):
        if path[:length] in lines:
            return lines[path[:length]]
    return 1


def mapping(value: Any) -> Mapping[str, Any]:
    """`value` where a mapping is expected; an empty one for anything else, which a schema rule reports."""
    return value if isinstance(value, dict) else {}


def entries(value: Any) -> list[Any]:
    """`value` where a list is expected; an empty one for anything else."""
    return value if isinstance(value, list) else []


def at(data: Any, *path: str | int) -> Any:
    """What stands at a path; None where there is nothing."""
    for part in path:
        if isinstance(part, int):
            items = entries(data)
            data = items[part] if part < len(items) else None
        else:
            data = mapping(data).get(part)
    return data


def pairs(value: Any) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The mappings of a list with their places."""
    return ((index, entry) for index, entry in enumerate(entries(value)) if isinstance(entry, dict))


def meant(word: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown word: the one that is meant, where one is near."""
    near = difflib.get_close_matches(word, list(known), 1)
    return f": {near[0]} is meant?" if near else ""
