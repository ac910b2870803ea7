"""A CustomResourceDefinition as a strict JSON schema: what the API server would prune is an error here."""

from __future__ import annotations

from typing import Any

from app.k8s.documents import at, entries, mapping

VERSION = "v1"
_DROPPED = {"description", "default", "example", "nullable"}
_NUMBERS = {"int32", "int64", "double", "float"}


def schema_of(definition: Any) -> tuple[str, dict[str, Any]]:
    """Kind and schema of a definition's v1; an empty kind for anything else."""
    for version in entries(at(definition, "spec", "versions")):
        if mapping(version).get("name") == VERSION:
            schema = _strict(at(version, "schema", "openAPIV3Schema"))
            schema["properties"]["metadata"] = {"type": "object"}
            return str(at(definition, "spec", "names", "kind")), schema
    return "", {}


def _strict(schema: Any) -> Any:
    if not isinstance(schema, dict):
        return schema
    found: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _DROPPED or key.startswith("x-kubernetes") or (key == "format" and value in _NUMBERS):
            continue
        match key:
            case "properties":
                found[key] = {name: _strict(part) for name, part in value.items()}
            case "items" | "not" | "additionalProperties":
                found[key] = _strict(value)
            case "allOf" | "anyOf" | "oneOf":
                found[key] = [_strict(part) for part in value]
            case _:
                found[key] = value
    properties = mapping(schema.get("properties"))
    if "required" in found:
        # The API server fills in defaults before it looks.
        found["required"] = [
            name for name in found["required"] if "default" not in mapping(properties.get(name))
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
