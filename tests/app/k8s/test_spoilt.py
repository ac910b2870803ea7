"""The lint ends with findings, and never with a traceback, whatever a manifest holds."""

from __future__ import annotations

import copy
import random
import traceback
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.k8s.documents import read
from app.k8s.lint import lint
from tests.app.k8s.manifests import Copy, needs_kubectl, plain_schemas

# libyaml where it is there.
DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
WRONG: list[Any] = [None, [], {}, "x", "", 7, -1, 0.5, True, [None], ["x"], {"x": None}, [[]], "a: [b"]


def places(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place below the root."""
    found = [path] if path else []
    entries = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in entries:
        found += places(value, (*path, key))
    return found


def put(data: Any, path: tuple[Any, ...], value: Any) -> None:
    for part in path[:-1]:
        data = data[part]
    data[path[-1]] = value


def spoil(folder: Path, times: int, seed: int) -> list[str]:
    """Put a wrong value anywhere in the render of prod, also inside its Serve config."""
    chance, failed = random.Random(seed), []
    whole = list(yaml.load_all(Copy(folder).render("prod"), Loader=LOADER))
    service = next(number for number, item in enumerate(whole) if item["kind"] == "RayService")
    serve = yaml.safe_load(whole[service]["spec"]["serveConfigV2"])
    for _ in range(times):
        objects, config = copy.deepcopy(whole), copy.deepcopy(serve)
        inside = chance.random() < 0.4
        number = service if chance.random() < 0.6 else chance.randrange(len(objects))
        target = config if inside else objects[number]
        path, value = chance.choice(places(target)), chance.choice(WRONG)
        put(target, path, value)
        if inside:
            objects[service]["spec"]["serveConfigV2"] = yaml.safe_dump(config)
        text = yaml.dump_all(objects, Dumper=DUMPER)
        try:
            lint(read(text, "spoilt"), None, plain_schemas(), "spoilt")
        except Exception:
            last = traceback.format_exc().splitlines()[-8:]
            failed.append("\n".join([f"{path} = {value!r}", *last]))
    return failed


@pytest.mark.long
@needs_kubectl
def test_a_wrong_value_anywhere_is_no_traceback(tmp_path: Path) -> None:
    """Twenty places, the same in every run."""
    assert [] == spoil(tmp_path, 20, 1)


@needs_kubectl
@pytest.mark.long
def test_many_wrong_values_are_no_traceback(tmp_path: Path) -> None:
    """Four hundred places."""
    assert [] == spoil(tmp_path, 400, 2)
