"""CustomResourceDefinitions as strict JSON schemas: what the API server would prune is an error here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from app.k8s.documents import Document, at, entries, mapping

Key = tuple[str, str]  # apiVersion and kind
_DROPPED = {"description", "default", "example", "nullable"}
_NUMBERS = {"int32", "int64", "double", "float"}


class NoSchema(Exception):  # noqa: N818  # an outcome with a place
    """A definition that says nothing to check by."""


def schemas_of(document: Document) -> Iterator[tuple[Key, dict[str, Any]]]:
    """Key and schema of each version of a definition; nothing for any other object.

    Raises NoSchema.
    """
    if document.kind != "CustomResourceDefinition":
        return
    group, kind = (at(document.data, "spec", *path) for path in (("group",), ("names", "kind")))
    versions = [mapping(version) for version in entries(at(document.data, "spec", "versions"))]
    if not (isinstance(group, str) and isinstance(kind, str) and versions):
        raise NoSchema(f"{document.label} lacks spec.group, spec.names.kind or spec.versions")
    for version in versions:
        schema = at(version, "schema", "openAPIV3Schema")
        if not isinstance(schema, dict):
            raise NoSchema(f"{document.label} has no schema for its version {version.get('name')}")
        found = _strict(schema)
        found["properties"] = {**mapping(found.get("properties")), "metadata": {"type": "object"}}
        yield (f"{group}/{version.get('name')}", kind), found


def _strict(schema: Any) -> Any:
    if not isinstance(schema, dict):
        return schema
    found: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _DROPPED or key.startswith("x-kubernetes") or (key == "format" and value in _NUMBERS):
            continue
        match key, value:
            case "properties", dict():
                found[key] = {name: _strict(part) for name, part in value.items()}
            case "pattern", _ if not _compiles(value):
                continue  # of Go, and none of Python
            case "items" | "not" | "additionalProperties", _:
                found[key] = _strict(value)
            case "allOf" | "anyOf" | "oneOf", list():
                found[key] = [_strict(part) for part in value]
            case _:
                found[key] = value
    properties = mapping(schema.get("properties"))
    if isinstance(found.get("required"), list):
        # The API server fills in defaults before it looks.
        found["required"] = [
            name for name in found["required"] if "default" not in mapping(properties.get(str(name)))
        ]
    if schema.get("x-kubernetes-int-or-string"):
        found.pop("type", None)
        found.setdefault("anyOf", [{"type": "integer"}, {"type": "string"}])
    if schema.get("nullable") and "type" in found:
        found["type"] = [found["type"], "null"]
    open_to_all = schema.get("x-kubernetes-preserve-unknown-fields")
    if found.get("type") == "object" and properties and not open_to_all:
        found.setdefault("additionalProperties", False)
    return found


def _compiles(pattern: Any) -> bool:
    try:
        re.compile(str(pattern))
    except re.error:
        return False
    return True
