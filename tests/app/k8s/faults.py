"""One wrong value in the rendered overlay prod, and what the lint says of it."""

from __future__ import annotations

import copy
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from app.k8s.documents import read
from app.k8s.lint import Finding, lint
from app.k8s.rules import Rule
from tests.app.k8s.manifests import Copy, plain_schemas

Path_ = tuple[str | int, ...]
# libyaml where it is there.
DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
SERVICE = "RayService/twinpool"
SERVE = "serveConfigV2"  # in place of an object: the Serve config
GROUPS: Path_ = ("spec", "rayClusterConfig", "workerGroupSpecs")
HEAD: Path_ = ("spec", "rayClusterConfig", "headGroupSpec")
POD: Path_ = ("template", "spec")
CONTAINER: Path_ = (*POD, "containers", 0)
ACCELERATOR, CALLERS = (*GROUPS, 0), (*GROUPS, 1)  # the groups
DEPLOYMENTS: Path_ = ("applications", 0, "deployments")
GONE = object()
ADDED = "+"  # at the end of a path: one more entry of a list


@dataclass(frozen=True, slots=True)
class Fault:
    """A place, the value that is put there, and what has to be said: the rule, the field, some words."""

    name: str
    where: str  # Kind/name, or SERVE
    path: Path_
    value: Any
    rule: Rule
    field: str
    words: str


@cache
def _prod() -> list[Any]:
    with tempfile.TemporaryDirectory() as folder:
        return list(yaml.load_all(Copy(Path(folder)).render("prod"), Loader=LOADER))


def findings(*changes: tuple[str, Path_, Any]) -> list[Finding]:
    """What the lint says of the rendered prod after some changes."""
    objects = copy.deepcopy(_prod())
    by_name = {f"{item['kind']}/{item['metadata']['name']}": item for item in objects}
    service = by_name[SERVICE]["spec"]
    serve = yaml.safe_load(service[SERVE])
    for where, path, value in changes:
        if not path:
            objects = [item for item in objects if item is not by_name[where]] if value is GONE else objects
            objects += [] if value is GONE else [value]
        else:
            put(serve if where == SERVE else by_name[where], path, value)
    service[SERVE] = yaml.safe_dump(serve)
    text = yaml.dump_all(objects, Dumper=DUMPER)
    return list(lint(read(text, "prod"), None, plain_schemas(), "prod").findings)


def put(data: Any, path: Path_, value: Any) -> None:
    """Set one place, add an entry at the end of a list, or take the place out."""
    for part in path[:-1]:
        data = data.setdefault(part, {}) if isinstance(data, dict) else data[part]
    last: Any = path[-1]
    if value is GONE:
        del data[last]
    elif last == ADDED:
        data.append(value)
    else:
        data[last] = value


def is_found(fault: Fault) -> None:
    """One finding has the rule, the end of the field, and the words."""
    found = findings((fault.where, fault.path, fault.value))

    wanted = [item for item in found if item.rule is fault.rule and item.field.endswith(fault.field)]
    assert any(fault.words in item.message for item in wanted), found


def serve_text(path: Path_) -> str:
    """A text in the Serve config of prod."""
    service = next(item for item in _prod() if item["kind"] == "RayService")
    data: Any = yaml.safe_load(service["spec"][SERVE])
    for part in path:
        data = data[part]
    return str(data)
