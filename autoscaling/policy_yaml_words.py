"""What PyYAML says about broken YAML, in plain words and with its place."""

from __future__ import annotations

import yaml
from yaml.reader import ReaderError

from autoscaling.policy_problem import Problem, shown_key

# The beginning of PyYAML's own words -> ours.
_WORDS = {
    "found character '\\t'": "a tab cannot indent or begin a value; use spaces",
    "mapping values are not allowed here": "a colon where no field can begin; "
    "check the indentation, and put text that holds a colon in quotes",
    "could not find expected ':'": "a field's name without its colon; a line may be cut off",
    "expected <block end>, but found": "this line does not fit the ones above it; check the indentation",
    "expected ',' or '}'": "a brace { is not closed, or a comma is missing",
    "expected ',' or ']'": "a bracket [ is not closed, or a comma is missing",
    "expected the node content, but found": "a value is missing or misplaced here; the file may be cut off",
    "found unexpected end of stream": "a quoted text is not closed; the file may be cut off",
    "found unknown escape character": "an unknown escape in double quotes; use single quotes, or \\\\",
    "sequence entries are not allowed here": "a list item where no list can begin; check the indentation",
    "block sequence entries are not allowed": "a list item where no list can begin; check the indentation",
    "mapping keys are not allowed here": "a field where none can begin; check the indentation",
    "found incompatible YAML document": "a %YAML line: directives are not used in a policy",
    "found duplicate YAML directive": "a %YAML line: directives are not used in a policy",
    "duplicate tag handle": "a %TAG line: directives are not used in a policy",
    "expected '<document start>'": "something stands after the end of the policy; check the indentation",
}


def unreadable(error: Exception, text: str) -> Problem:
    """The problem for what `yaml.parse` raised on a text."""
    if isinstance(error, yaml.MarkedYAMLError):
        return _marked(error)
    if isinstance(error, ReaderError):
        before = text[: error.position]
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        return Problem(line, column, "", f"the character U+{error.character:04X} is not allowed in YAML")
    # PyYAML converts an escape such as \UFFFFFFFF without a check of its own.
    return Problem(1, 1, "", "broken YAML: an escape or a number in it is out of range")


def _marked(error: yaml.MarkedYAMLError) -> Problem:
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)
    said = error.problem or error.context or "it cannot be read"
    words = next((ours for theirs, ours in _WORDS.items() if said.startswith(theirs)), shown_key(said))
    begun = error.context_mark
    if begun is not None and begun.line + 1 != line:
        words += f" (in what begins on line {begun.line + 1})"
    return Problem(line, column, "", f"broken YAML: {words}")
