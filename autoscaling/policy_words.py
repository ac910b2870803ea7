"""The models' errors in plain words: what was given, what is wanted, and the likely slip."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from autoscaling.policy import CapacityPolicy, Day
from autoscaling.policy_problem import Finding, field_name, shown

_WANTED = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing_size": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "string_type": "text",
    "bool_type": "true or false",
    "model_type": "a mapping",
    "dict_type": "a mapping",
    "tuple_type": "a list",
    "datetime_type": "a time with a zone, such as 2026-12-01T18:00:00Z",
}
_FIXED = {
    "missing": "is required but missing",
    "string_too_short": "must not be empty",
    "too_short": "must not be an empty list",
}
_BOUNDS = {
    "greater_than_equal": ("at least", "ge"),
    "greater_than": ("more than", "gt"),
    "less_than_equal": ("at most", "le"),
    "less_than": ("less than", "lt"),
}
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?(ms|s|sec|m|min|h)")
_DAY_RANGE = re.compile(r"([a-z]{3})[a-z]*(?: *(?:-|to|\.\.) *([a-z]{3})[a-z]*)?")
# YAML 1.1 takes these for true and false, and YAML 1.2 does not.
_SPOKEN = {"yes": "true", "on": "true", "true": "true", "no": "false", "off": "false", "false": "false"}
_IN_SECONDS = {"ms": 0.001, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_UNIT_SUFFIX = re.compile(r"(milliseconds|millis|msecs?|ms|seconds|secs?|s|minutes|mins?)$")

OFTEN_MS = ("ttftSeconds", "tpotSeconds")  # latencies are told in milliseconds more often than not
SURELY_MS = 100  # times the bound: a little too long is just too long
SHARES = ("above", "below")
LEAST_PERCENT = 10  # less is a mistyped number rather than a percentage
LEAST_PREFIX = 3  # letters


def finding(error: ErrorDetails) -> Finding | None:
    """One error of `model_validate_json` in words; None for one that only repeats another."""
    given = error["input"]
    if error["type"] == "too_short" and given:  # its items are refused, each in its own place
        return None
    return Finding(field_name(error["loc"]), _message(error, given))


def _message(error: ErrorDetails, given: Any) -> str:
    path, kind, limits = error["loc"], error["type"], error.get("ctx", {})
    key = str(path[-1]) if path else ""
    if kind == "extra_forbidden":
        return f"there is no such field{_meant(key, _fields(path[:-1]))}"
    if kind in _BOUNDS:
        return _outside(kind, key, limits, given)
    if kind in ("enum", "literal_error"):
        close = _close(str(given), re.findall(r"'([^']*)'", limits["expected"]))
        hint = _days(given) if "days" in path else f"; did you mean {close}?" if close else ""
        return f"must be {_one_of(limits['expected'])}, given {shown(given)}{hint}"
    if kind in _WANTED:
        return f"must be {_WANTED[kind]}, given {shown(given)}{_slip(kind, key, given)}"
    if kind == "string_pattern_mismatch":
        return f"must be lower-case letters, digits and hyphens, at most 63 in all, given {shown(given)}"
    if kind == "string_too_long":
        return f"must have at most {limits['max_length']} characters, given {len(given)}"
    if kind == "too_long":
        return f"must have at most {limits['max_length']} entries, given {len(given)}"
    return _FIXED.get(kind) or error["msg"].removeprefix("Value error, ")


def _outside(kind: str, key: str, limits: Mapping[str, Any], given: Any) -> str:
    words, name = _BOUNDS[kind]
    wanted = f"{words} {_plain(limits[name])}, given {_plain(given)}"
    over = kind.startswith("less")
    if over and key.endswith("Seconds"):
        often = key in OFTEN_MS or given >= SURELY_MS * limits[name]
        return f"is in seconds, {wanted}{'; is this milliseconds?' if often else ''}"
    if over and (key.endswith("Share") or key in SHARES) and LEAST_PERCENT <= given <= 100:
        return f"must be {wanted}; it is a share: write {_plain(given / 100)}"
    return f"must be {wanted}"


def _slip(kind: str, key: str, given: object) -> str:
    """What to write instead, when a wrong type has a usual cause."""
    if given is None:
        return "; give a value or leave the field out"
    if isinstance(given, str) and kind.startswith(("int", "float")):
        duration = _DURATION.fullmatch(given.strip())
        if duration is not None:
            seconds = float(duration[1]) * _IN_SECONDS[duration[2]]
            unit = "seconds as a plain number" if key.endswith("Seconds") else "a plain number without a unit"
            return f"; write {unit}" + (f": {_plain(seconds)}" if key.endswith("Seconds") else "")
        number = re.fullmatch(r"[-+]?0*([0-9]{1,20}(\.[0-9]+)?)", given, re.ASCII)
        if number is not None:
            return f"; write {number[1]} without quotes, sign or leading zeros"
    if kind.startswith("int") and isinstance(given, float) and given.is_integer():
        return f"; write {_plain(given)}"
    if key == "days" and isinstance(given, str):
        return _days(given, listed=True)
    if kind == "string_type" and isinstance(given, bool | int | float):
        return "; write it in quotes"
    if kind == "bool_type" and str(given).lower() in _SPOKEN:
        return f"; write {_SPOKEN[str(given).lower()]} without quotes"
    if kind == "model_type" and key == "budget":
        return "; write budget: {max: 8}"
    return ""


def _days(given: object, *, listed: bool = False) -> str:
    """How to write `Monday` or `Mon-Fri`, as one of a list or in place of the list."""
    found = _DAY_RANGE.fullmatch(str(given).strip().lower())
    first, last = (found[1].capitalize(), (found[2] or found[1]).capitalize()) if found else ("", "")
    week = [day.value for day in Day]
    if first not in week or last not in week:
        return f"; write for example [{', '.join(week[:2])}]" if listed else ""
    start = week.index(first)
    count = (week.index(last) - start) % len(week) + 1
    days = ", ".join((week + week)[start : start + count])
    return f"; write [{days}]" if listed else f"; write {days}"


def _meant(key: str, fields: Mapping[str, FieldInfo]) -> str:
    """The field that an unknown key was probably meant to be."""
    if re.search(r"_(sum|total|count|bucket)$", key):
        return "; a counter only ever grows and cannot be a setting or an objective"
    close = _close(key, fields)
    if close is None:
        return f"; known here: {', '.join(fields)}" if fields else ""
    given, wanted = _UNIT_SUFFIX.search(_bare(key)), close.endswith("Seconds")
    unit = " (in seconds)" if wanted and given is not None and given[0].startswith("m") else ""
    return f"; did you mean {close}{unit}?"


def _close(key: str, known: Mapping[str, Any] | list[str]) -> str | None:
    """The known word nearest to a key, whatever its spelling, capitals and unit."""
    bare = {_bare(word): word for word in known}
    stems = {_UNIT_SUFFIX.sub("", word): full for word, full in bare.items()}
    wanted = _bare(key)[:80]  # a longer one resembles nothing
    begun = [word for word in bare if len(wanted) >= LEAST_PREFIX and word.startswith(wanted)]
    if begun:
        return bare[min(begun, key=len)]
    for words, word in ((bare, wanted), (stems, _UNIT_SUFFIX.sub("", wanted))):
        found = get_close_matches(word, words, n=1, cutoff=0.7)
        if found:
            return words[found[0]]
    return None


def _bare(word: str) -> str:
    return re.sub(r"[^a-z0-9]", "", word.lower())


def _fields(path: tuple[int | str, ...]) -> Mapping[str, FieldInfo]:
    """The fields that a mapping of the file may have, by their names there; none for free mappings."""
    model: type[BaseModel] = CapacityPolicy
    for part in path:
        if isinstance(part, str):
            info = next((f for f in model.model_fields.values() if f.alias == part), None)
            inner = None if info is None else _model(info.annotation)
            if inner is None:
                return {}
            model = inner
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _model(annotation: Any) -> type[BaseModel] | None:
    """The model in an annotation such as `Pool`, `Pool | None` or `tuple[Pool, ...]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := _model(part)) is not None), None)


def _one_of(expected: str) -> str:
    """Pydantic's "'a', 'b' or 'c'" without the quotes."""
    return expected.replace("'", "")


def _plain(value: object) -> str:
    """A number as people write it: 600, not 600.0."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)
