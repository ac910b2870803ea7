"""JSON that stands as a text inside YAML: where its parts are, and on which line of the file."""

from __future__ import annotations

import json
from itertools import accumulate
from typing import Any

import yaml

from autoscaling.policy_problem import Path

_BLANK = " \t\r\n"
_Offsets = dict[Path, int]


def offsets(text: str) -> dict[Path, int]:
    """Where each key and item of a JSON text begins; the text must be whole."""
    found: _Offsets = {(): 0}
    _value(text, 0, (), found)
    return found


def nearest(places: dict[Path, int], path: Path) -> int:
    """The offset of a place, or of the nearest one above it that is there."""
    return next(places[path[:size]] for size in range(len(path), -1, -1) if path[:size] in places)


def line_inside(text: str, path: Path, inner: str, offset: int) -> int:
    """The line in a YAML text of one character of `inner`, which stands as a text at `path`; from 1.

    Folding changes blanks only, so the characters that are none are counted.
    """
    node = _node(yaml.compose(text, Loader=yaml.SafeLoader), path)
    if node is None:
        return 1
    first = node.start_mark.line
    if node.style == '"':  # escapes change the count
        return first + 1
    lines = text.splitlines()
    last = node.end_mark.line
    if node.style in ("|", ">"):
        first += 1
    else:
        lines[first] = lines[first][node.start_mark.column :].removeprefix("'")
    counts = accumulate(_solid(line.replace("''", "'")) for line in lines[first : last + 1])
    wanted = _solid(inner[: offset + 1])
    return next((first + number for number, count in enumerate(counts, 1) if count >= wanted), first + 1)


def _solid(text: str) -> int:
    return sum(character not in _BLANK for character in text)


def _node(node: Any, path: Path) -> yaml.ScalarNode | None:
    for part in path:
        if isinstance(node, yaml.MappingNode):
            node = next((value for key, value in node.value if key.value == part), None)
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
        else:
            return None
    return node if isinstance(node, yaml.ScalarNode) else None


def _after(text: str, at: int) -> int:
    while at < len(text) and text[at] in _BLANK:
        at += 1
    return at


def _value(text: str, at: int, path: Path, found: _Offsets) -> int:
    """Note the parts of the value at `at`; where it ends."""
    at = _after(text, at)
    if text[at] not in "{[":
        return json.JSONDecoder().raw_decode(text, at)[1]
    is_object, index = text[at] == "{", 0
    at = _after(text, at + 1)
    while text[at] not in "}]":
        part: str | int = index
        start = at
        if is_object:
            part, at = json.JSONDecoder().raw_decode(text, at)
            at = _after(text, at) + 1  # the colon
        found[*path, part] = start
        at = _after(text, _value(text, at, (*path, part), found))
        if text[at] == ",":
            at = _after(text, at + 1)
        index += 1
    return at + 1
