"""The kustomize files behind an overlay: which were read, what they patch, and where a field was set.

Reads through a port; kustomize itself is not rebuilt here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path as File
from typing import Any

from app.k8s.documents import Document, Unreadable, entries, line_of, mapping, read, value_and_lines
from autoscaling.policy_problem import Path

NAMES = ("kustomization.yaml", "kustomization.yml", "Kustomization")
# As kustomize tells them: a URL, a repository of git, or a reference in one.
_REMOTE = re.compile(r"://|^git::|^[\w.-]+@[\w.-]+:|^(github\.com|gitlab\.com|bitbucket\.org)[/:]|[?&]ref=")
Read = Callable[[File], str | None]  # the text of a file; None when there is none


@dataclass(frozen=True, slots=True)
class Patch:
    """One patch of a kustomization, of either form."""

    file: str
    target: Mapping[str, Any]  # kind and name, where the kustomization says them
    data: Any  # a list of operations, or an object that is merged
    lines: Mapping[Path, int]
    inside: Path = ()  # where it stands in `file`, for one that is written into the kustomization


@dataclass(frozen=True, slots=True)
class Kustomization:
    """One kustomization file."""

    file: str
    data: Mapping[str, Any]
    lines: Mapping[Path, int]


@dataclass(slots=True)
class Tree:
    """Everything that an overlay is made of, in the order in which kustomize takes it."""

    kustomizations: list[Kustomization] = field(default_factory=list)
    objects: list[Document] = field(default_factory=list)
    patches: list[Patch] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)  # files of generators
    broken: list[tuple[str, int, str]] = field(default_factory=list)  # file, line, message
    remote: list[tuple[str, int, str]] = field(default_factory=list)  # file, line, what it names


def tree(overlay: File, read_file: Read) -> Tree:
    """Follow a kustomization folder; what cannot be read stands in `broken`."""
    found = Tree()
    _folder(overlay, read_file, found, set())
    return found


def _folder(folder: File, read_file: Read, found: Tree, seen: set[File]) -> None:
    real = File(os.path.realpath(folder))  # a link may lead round in a circle under ever new names
    if real in seen:  # kustomize itself refuses a circle
        return
    seen.add(real)
    for name in NAMES:
        text = read_file(folder / name)
        if text is not None:
            break
    else:
        lost = folder.is_symlink() and not folder.exists()
        words = "this link leads nowhere, or in a circle" if lost else f"there is no {NAMES[0]} here"
        found.broken.append((str(folder), 1, words))
        return
    file = folder / name
    try:
        data, lines = value_and_lines(text)
    except Unreadable as error:
        found.broken.append((str(file), error.line, error.message))
        return
    data = mapping(data)
    for path in _named(folder, file, data, lines, found):
        text = read_file(path)
        if text is None:
            _folder(path, read_file, found, seen)
        else:
            _objects(path, text, found)
    found.kustomizations.append(Kustomization(str(file), data, lines))
    _texts(folder, data, read_file, found)
    _patches(folder, file, data, lines, read_file, found)


def _named(
    folder: File, file: File, data: Mapping[str, Any], lines: Mapping[Path, int], found: Tree
) -> Iterator[File]:
    """The files and folders that a kustomization takes; what is elsewhere stands in `remote`."""
    for key in ("resources", "components"):
        for index, entry in enumerate(entries(data.get(key))):
            line = line_of(lines, (key, index))
            if not isinstance(entry, str) or not entry.strip():
                words = f"{key}[{index}] is {entry!r}: name a file or a folder, or take it out"
                found.broken.append((str(file), line, words))
            elif _REMOTE.search(entry):
                found.remote.append((str(file), line, entry))
            else:
                yield _below(folder, entry)


def _objects(path: File, text: str, found: Tree) -> None:
    try:
        found.objects.extend(read(text, str(path)))
    except Unreadable as error:
        found.broken.append((str(path), error.line, error.message))


def _texts(folder: File, data: Mapping[str, Any], read_file: Read, found: Tree) -> None:
    for generator in entries(data.get("configMapGenerator")):
        for entry in entries(mapping(generator).get("files")):
            path = _below(folder, str(entry).rpartition("=")[2])
            text = read_file(path)
            if text is not None:
                found.texts[str(path)] = text


def _patches(
    folder: File,
    file: File,
    data: Mapping[str, Any],
    lines: Mapping[Path, int],
    read_file: Read,
    found: Tree,
) -> None:
    for key in ("patches", "patchesJson6902", "patchesStrategicMerge"):
        for index, entry in enumerate(entries(data.get(key))):
            said = {"path": entry} if isinstance(entry, str) else mapping(entry)
            where = file
            inside: Path = (key, index, "patch")
            text = said.get("patch")
            if "path" in said:
                where, inside = _below(folder, str(said["path"])), ()
                text = read_file(where)
            if text is None:
                continue
            try:
                patch, own = value_and_lines(str(text))
            except Unreadable as error:
                found.broken.append((str(where), error.line, error.message))
                continue
            if inside:
                own = {(): line_of(lines, inside)}
            found.patches.append(Patch(str(where), mapping(said.get("target")), patch, own, inside))


def _below(folder: File, entry: str) -> File:
    """`folder / entry` without its dots: `a/b/../c` and `a/c` are one file in a finding."""
    return File(os.path.normpath(folder / entry))


def pointer_parts(pointer: str) -> tuple[str, ...]:
    """The parts of a JSON pointer."""
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:])


def groups_of(patch: Patch) -> Iterator[tuple[int, int]]:
    """Of each operation on a worker group: its place in the patch, and the group's number."""
    for index, operation in enumerate(entries(patch.data)):
        parts = pointer_parts(str(mapping(operation).get("path", "")))
        if len(parts) > 3 and parts[2] == "workerGroupSpecs" and parts[3].isdigit():
            yield index, int(parts[3])
