"""Every field of the policy file with its type, unit, default, effect and an example, from the models."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from autoscaling.one_line import PATTERN
from autoscaling.policy import CapacityPolicy
from autoscaling.policy_examples import example

Schema = Mapping[str, Any]

TYPES: Mapping[str, str] = {
    "string": "text",
    "integer": "integer",
    "number": "number",
    "boolean": "true or false",
    "object": "mapping",
    "array": "list",
}
# The unit by the end of the name; a longer ending wins over a shorter one.
UNITS: Mapping[str, str] = {
    "Seconds": "s",
    "Replicas": "replicas",
    "Share": "ratio 0..1",
    "Inflight": "sequences",
    "maxWaiting": "sequences",
    "backfill.reserve": "sequences",
    "acceleratorsPerReplica": "accelerators",
    "surgeSlots": "accelerators",
    "budget.min": "accelerators",
    "budget.max": "accelerators",
    "bootstrap.speculative": "replicas",
    "bootstrap.plain": "replicas",
    "overrides[].replicas": "replicas",
    "utilization.above": "ratio",
    "utilization.below": "ratio",
    "policies[].value": "replicas or percent",
    "allowLargeChange": "revision",
}
LIMITS: Mapping[str, str] = {
    "minimum": "≥ {}",
    "exclusiveMinimum": "> {}",
    "maximum": "≤ {}",
    "exclusiveMaximum": "< {}",
    "minLength": "length ≥ {}",
    "maxLength": "length ≤ {}",
    "minItems": "at least {} entries",
    "maxItems": "at most {} entries",
    "pattern": "{}",
}
PATTERNS: Mapping[str, str] = {
    "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$": "lower-case letters, digits, inner hyphens; at most 63",
    "^([01][0-9]|2[0-3]):[0-5][0-9]$": "`HH:MM`, 00:00 to 23:59",
    PATTERN: "one line, not blank, no control characters",
}


@dataclass(frozen=True, slots=True)
class FieldDoc:
    """One field of the file; `[]` in the path stands for each entry of a list."""

    path: str  # spec.pools.plain.minReplicas
    type: str  # in words
    unit: str | None  # None where the value is no quantity
    default: Any  # a JSON value; None: there is none, or nothing
    effect: str
    example: Any  # a JSON value that is valid at this path
    required: bool  # within the mapping that holds it
    bounds: str  # "≥ 0, ≤ 10000"; empty where the type says it all


@cache
def fields() -> tuple[FieldDoc, ...]:
    """Every field, mappings and lists included, in the order of the file."""
    schema = CapacityPolicy.model_json_schema(by_alias=True)
    return tuple(_walk("", schema, schema.get("$defs", {})))


def find(path: str) -> FieldDoc | None:
    """The field that `path` names alone; None when there is none, or when several end in it.

    Takes the whole path, its end (`plain.minReplicas`), list entries with or without `[]`, and
    `min_replicas` for `minReplicas`.
    """
    found = matches(path)
    return found[0] if len(found) == 1 else None


def matches(path: str) -> tuple[FieldDoc, ...]:
    """Every field whose path is or ends in `path`; the whole path wins over ends."""
    wanted = _plain(path)
    if not wanted:
        return ()
    whole = tuple(field for field in fields() if _plain(field.path) in (wanted, ("spec", *wanted)))
    return whole or tuple(field for field in fields() if _plain(field.path)[-len(wanted) :] == wanted)


def close(path: str) -> tuple[str, ...]:
    """Paths that `path` may have been meant to be, the closest first; at most three."""
    wanted = ".".join(_plain(path))
    names: dict[str, str] = {}
    for field in fields():
        parts = _plain(field.path)
        for start in range(len(parts)):
            names.setdefault(".".join(parts[start:]), field.path)
    near = difflib.get_close_matches(wanted, names, n=12, cutoff=0.6)
    return tuple(dict.fromkeys(names[name] for name in near))[:3]


def _plain(path: str) -> tuple[str, ...]:
    """The words of a path without regard to list marks, case and underscores."""
    return tuple(part for part in re.sub(r"\[[^]]*\]|_", "", path).lower().split(".") if part)


def _walk(path: str, schema: Schema, defs: Schema) -> Iterator[FieldDoc]:
    for name, given in schema.get("properties", {}).items():
        child = f"{path}.{name}".lstrip(".")
        value = _value(given, defs)
        yield FieldDoc(
            path=child,
            type=_type(value, defs),
            unit=_unit(child, value),
            default=given.get("default"),
            # Where both are the same the model's own description is left out beside a reference to it.
            effect=given.get("description") or value["description"],
            example=example(child),
            required=name in schema.get("required", ()),
            bounds=_bounds(value),
        )
        yield from _walk(child, value, defs)
        if "items" in value:
            yield from _walk(f"{child}[]", _value(value["items"], defs), defs)


def _value(given: Schema, defs: Schema) -> Schema:
    """The schema of the value itself: null put aside, a reference followed."""
    for choice in given.get("anyOf", ()):
        if choice.get("type") != "null":
            return _value(choice, defs)
    if "$ref" in given:
        return _value(defs[given["$ref"].rpartition("/")[2]], defs)
    return given


def _type(value: Schema, defs: Schema) -> str:
    if "const" in value:
        return f"`{value['const']}`"
    if "enum" in value:
        return ", ".join(f"`{word}`" for word in value["enum"])
    if value.get("format") == "date-time":
        return "time, RFC 3339"
    if value["type"] == "array":
        inner = _value(value["items"], defs)
        return "list of mappings" if inner.get("type") == "object" else f"list of {_type(inner, defs)}"
    if value["type"] == "object" and "additionalProperties" in value and "properties" not in value:
        return "mapping of texts"
    return TYPES[value["type"]]


def _bounds(value: Schema) -> str:
    given = ((text, value[key]) for key, text in LIMITS.items() if key in value)
    return ", ".join(text.format(PATTERNS.get(limit, limit)) for text, limit in given)


def _unit(path: str, value: Schema) -> str | None:
    if value.get("type") not in ("integer", "number"):
        return None
    endings = [ending for ending in UNITS if path.lower().endswith(ending.lower())]
    return UNITS[max(endings, key=len)] if endings else None
