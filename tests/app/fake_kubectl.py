"""A `kubectl` with a cluster of one ConfigMap in a folder, for tests; it answers in the real one's words.

config_map.json   the object; what a patch changes
mount/            the volume of a pod, swapped as the kubelet does it, unless `kubelet_stopped` is there
calls.jsonl       what it was asked, one list of arguments a line
fails.json        verb -> what it says on standard error, and fails
lost.json         what it says, and fails, after it has written a patch
meddle.json       data that somebody else writes just before the next patch
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.deployments.kubelet import ConfigMapMount  # noqa: E402

CLUSTER = Path(os.environ["FAKE_CLUSTER"])
OBJECT, CALLS = CLUSTER / "config_map.json", CLUSTER / "calls.jsonl"
CONFLICT = (
    'Error from server (Conflict): Operation cannot be fulfilled on configmaps "{name}": the object has been '
    "modified; please apply your changes to the latest version and try again"
)


def option(arguments: list[str], name: str) -> str | None:
    found = [given.partition("=")[2] for given in arguments if given.startswith(f"--{name}=")]
    return found[0] if found else None


def fail(words: str) -> NoReturn:
    print(words, file=sys.stderr)
    raise SystemExit(1)


def stored() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(OBJECT.read_text(encoding="utf-8"))
    return found


def store(found: dict[str, Any], data: dict[str, str]) -> None:
    found["data"] = found.get("data", {}) | data
    found["metadata"]["resourceVersion"] = str(int(found["metadata"]["resourceVersion"]) + 1)
    OBJECT.write_text(json.dumps(found), encoding="utf-8")
    if not (CLUSTER / "kubelet_stopped").exists():
        ConfigMapMount(CLUSTER / "mount").publish(found["data"])


def main(arguments: list[str]) -> None:
    with CALLS.open("a", encoding="utf-8") as calls:
        calls.write(json.dumps(arguments) + "\n")
    verb = arguments[0]
    fails = CLUSTER / "fails.json"
    if fails.exists() and verb in (words := json.loads(fails.read_text(encoding="utf-8"))):
        fail(words[verb])
    if arguments[:2] == ["config", "current-context"]:
        print("test-cluster")
        return
    assert arguments[1] == "configmap"
    found, name, namespace = stored(), arguments[2], option(arguments, "namespace")
    if (name, namespace) != (found["metadata"]["name"], found["metadata"]["namespace"]):
        fail(f'Error from server (NotFound): configmaps "{name}" not found')
    if verb == "get":
        assert option(arguments, "output") == "json"
        print(json.dumps(found))
        return
    assert verb == "patch"
    assert option(arguments, "type") == "merge"
    meddle = CLUSTER / "meddle.json"
    if meddle.exists():
        store(found, json.loads(meddle.read_text(encoding="utf-8")))
        meddle.unlink()
    file = option(arguments, "patch-file")
    assert file is not None
    patch = json.loads(Path(file).read_text(encoding="utf-8"))
    assert {"metadata", "data"} == set(patch)
    if patch["metadata"]["resourceVersion"] != found["metadata"]["resourceVersion"]:
        fail(CONFLICT.format(name=name))
    if option(arguments, "dry-run") is None:
        store(found, patch["data"])
        lost = CLUSTER / "lost.json"
        if lost.exists():
            fail(json.loads(lost.read_text(encoding="utf-8")))
    print(f"configmap/{name} patched")


main(sys.argv[1:])
