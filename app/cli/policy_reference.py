"""`twinpool policy schema|explain|starters`: the policy file's format, its fields, files to begin with."""

from __future__ import annotations

import dataclasses
import json
from typing import Annotated

import typer

from app.cli.output import AsJson, Output, fail, print_json, wants_json
from autoscaling import policy_fields
from autoscaling.policy import json_schema
from autoscaling.policy_fields import FieldDoc
from deployments import starter_policies


def schema() -> None:
    """Print the JSON Schema of the policy file, for editors and reviews."""
    print_json(json_schema())


def explain(
    field: Annotated[
        str,
        typer.Argument(metavar="FIELD", help="Its path or the end of it, such as plain.minReplicas."),
    ],
    output: Output = "text",
    as_json: AsJson = False,
) -> None:
    """Say what a field of the policy file means: type, unit, bounds, default, effect and an example.

    Exit codes: 0 explained, 2 there is no such field.
    """
    wanted_json = wants_json(output, as_json)
    found = policy_fields.matches(field)
    if not found:
        near = policy_fields.close(field)
        meant = f"did you mean {' or '.join(near)}? " if near else ""
        fail(f"the policy file has no field {field}", f"{meant}`twinpool policy schema` has all of them")
    if wanted_json:
        print_json([dataclasses.asdict(item) for item in found])
    else:
        print("\n\n".join(_explained(item) for item in found))


def starters(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="The one to print; without it all are listed.")
    ] = None,
    output: Output = "text",
    as_json: AsJson = False,
) -> None:
    """List the policies to begin with, or print one: `twinpool policy starters NAME > policy.yaml`."""
    wanted_json = wants_json(output, as_json)
    names = list(starter_policies.names())
    if name is not None and name not in names:
        fail(f"there is no starter {name}", f"take one of {', '.join(names)}")
    wanted = names if name is None else [name]
    if wanted_json:
        print_json([{"name": item, "text": starter_policies.text(item)} for item in wanted])
    elif name is None:
        print("\n".join(f"{item}: {_first_words(starter_policies.text(item))}" for item in names))
    else:
        print(starter_policies.text(name), end="")


def _explained(item: FieldDoc) -> str:
    default = "required" if item.required else f"default: {_value(item.default)}"
    lines = [item.path, f"  {item.effect}", f"  type: {item.type}"]
    lines += [f"  unit: {item.unit}"] if item.unit else []
    lines += [f"  bounds: {item.bounds}"] if item.bounds else []
    return "\n".join([*lines, f"  {default}", f"  example: {_value(item.example)}"])


def _value(value: object) -> str:
    return "none" if value is None else json.dumps(value, ensure_ascii=False)


def _first_words(text: str) -> str:
    """Take a starter's first comment that is not for the editor: what it is for."""
    for line in text.splitlines():
        words = line.removeprefix("#").strip()
        if line.startswith("#") and words and not words.startswith("yaml-language-server"):
            return words
    return ""
