"""What an overlay ships for others to fill in: no finding, and a note with the file to edit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from app.k8s.documents import Document, at, entries, mapping, pairs
from app.k8s.origins import origin
from app.k8s.sources import Kustomization, Tree
from autoscaling.policy_problem import Path, field_name

ZEROS = "0" * 40  # of a commit; a SHA-256 has more
REPOSITORY = "organisation/name"
GATEWAY = "gateway"  # name and namespace of what components/gateway refers to
_HOST = re.compile(r"(\w+://)?([\w-]+\.)*example(\.[\w-]+)*(:\d+)?([/@].*)?")
_NAMED = re.compile(r"[\w-]\.example\b|\bexample\.[\w-]")


def placeholders(documents: list[Document], found: Tree | None) -> list[str]:
    """A note for each, with file, line and field where these are known."""
    notes = {
        f"{_place(found, document, path)}: {value} is a placeholder: {mend}": None
        for document in documents
        for path, value, mend in _of(document, found)
    }
    return list(notes)


def _of(document: Document, found: Tree | None) -> Iterator[tuple[Path, str, str]]:
    own = "put in yours before you apply this"
    if document.kind == "ConfigMap":
        for key, value in mapping(document.data.get("data")).items():
            if ZEROS in str(value):
                yield ("data", key), "a row of zeros", "put in what it stands for before you apply this"
            elif value == REPOSITORY:
                yield ("data", key), REPOSITORY, own
        return
    for path, text in _texts(document.data, ()):
        if path[-1] == "image" and text.endswith("sha256:" + "0" * 64):
            yield path, text, "put in the name and the digest of your image before you apply this"
        elif "\n" not in text and _HOST.fullmatch(text) and _NAMED.search(text):
            yield path, text, f"{own}{_by_patch(document, path, found)}"
    if document.kind == "HTTPRoute":
        for index, parent in pairs(at(document.data, "spec", "parentRefs")):
            path = ("spec", "parentRefs", index, "name")
            if (parent.get("name"), parent.get("namespace")) == (GATEWAY, GATEWAY) and (
                found is None or _component_of(document, path, found) is not None
            ):
                mend = f"name your Gateway before you apply this{_by_patch(document, path, found)}"
                yield path, f"{GATEWAY}/{GATEWAY}", mend


def _texts(data: Any, path: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(data, str) and path:
        yield path, data
    elif isinstance(data, dict):
        for key, value in data.items():
            yield from _texts(value, (*path, str(key)))
    else:
        for index, value in enumerate(entries(data)):
            yield from _texts(value, (*path, index))


def _by_patch(document: Document, path: Path, found: Tree | None) -> str:
    """A component belongs to every overlay that takes it, so its file is not the one to edit."""
    if found is None or _component_of(document, path, found) is None:
        return ""
    return f", by a patch in {found.kustomizations[-1].file}"


def _component_of(document: Document, path: Path, found: Tree) -> Kustomization | None:
    place = origin(found, document, path)
    folder = None if place is None else PurePosixPath(place[0]).parent
    for kustomization in found.kustomizations:
        if (
            folder == PurePosixPath(kustomization.file).parent
            and kustomization.data.get("kind") == "Component"
        ):
            return kustomization
    return None


def _place(found: Tree | None, document: Document, path: Path) -> str:
    plain = f"{document.label}: {field_name(path)}"
    if found is None:
        return plain
    if document.kind == "ConfigMap":
        return _generated(found, document, str(path[-1])) or plain
    place = origin(found, document, path)
    return plain if place is None else f"{place[0]}:{place[1]}: {field_name(place[2])}"


def _generated(found: Tree, document: Document, key: str) -> str | None:
    """The file and line of a generator that holds an entry of a ConfigMap."""
    for kustomization in found.kustomizations:
        folder = PurePosixPath(kustomization.file).parent
        for _, generator in pairs(kustomization.data.get("configMapGenerator")):
            name = str(generator.get("name"))
            if document.name != name and not document.name.startswith(f"{name}-"):
                continue
            for entry in entries(generator.get("files")):
                shown, _, file = str(entry).rpartition("=")
                if (shown or PurePosixPath(file).name) == key:
                    return f"{folder / file}: data.{key}"
            for entry in entries(generator.get("envs")):
                text = found.texts.get(str(folder / str(entry)), "")
                for number, line in enumerate(text.splitlines(), 1):
                    if line.startswith(f"{key}="):
                        return f"{folder / str(entry)}:{number}: {key}"
    return None
