"""The kustomize files behind an overlay: which were read, what they patch, and where a field was set.

Reads through a port; kustomize itself is not rebuilt here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path as File
from typing import Any

from app.k8s.documents import Document, Unreadable, entries, line_of, mapping, read, value_and_lines
from app.k8s.named_files import (
    KUSTOMIZATION,
    LIST_KEYS,
    NAMES,
    OUT,
    Broken,
    Look,
    Lost,
    Remote,
    is_remote,
    misplaced,
    not_looked,
    of_file,
    of_lost,
)
from autoscaling.policy_problem import Path

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
    broken: list[Broken] = field(default_factory=list)
    remote: list[Remote] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Reader:
    """The files and folders that are there."""

    read: Read
    look: Look
    seen: set[File] = field(default_factory=set)

    def kustomization(self, folder: File) -> tuple[File, str] | None:
        """The file of a folder, with its text."""
        for name in NAMES:
            text = self.read(folder / name)
            if text is not None:
                return folder / name, text
        return None


def tree(overlay: File, read_file: Read, look: Look = not_looked) -> Tree:
    """Follow a kustomization folder; what cannot be read stands in `broken`."""
    found = Tree()
    reader = _Reader(read_file, look)
    there = reader.kustomization(overlay)
    if there is None:
        found.broken.append(Broken(str(overlay), 1, f"there is no {NAMES[0]} here"))
    else:
        _folder(*there, reader, found)
    return found


def _folder(file: File, text: str, reader: _Reader, found: Tree) -> str:
    """Take a kustomization into `found`; its kind."""
    try:
        data, lines = value_and_lines(text)
    except Unreadable as error:
        found.broken.append(Broken(str(file), error.line, error.message))
        return ""
    data, own = mapping(data), Kustomization(str(file), mapping(data), lines)
    kind = str(data.get("kind") or KUSTOMIZATION)
    real = File(os.path.realpath(file.parent))  # a link may lead round in a circle under ever new names
    if real in reader.seen:  # kustomize itself refuses a circle
        return kind
    reader.seen.add(real)
    _entries(file.parent, own, reader, found)
    found.kustomizations.append(own)
    _texts(file.parent, own, reader, found)
    _patches(file.parent, own, reader, found)
    return kind


def _entries(folder: File, own: Kustomization, reader: _Reader, found: Tree) -> None:
    lost: list[Lost] = []
    leads_out = False
    for place, entry in _named(own, found):
        path = below(folder, entry)
        text, kind = reader.read(path), ""
        there = reader.kustomization(path) if text is None else None
        if text is not None:
            _objects(path, text, found)
        elif there is not None:
            kind = _folder(*there, reader, found)
        else:
            lost.append(Lost(place, entry, path))
            continue
        leads_out = leads_out or entry.startswith(OUT)
        words = misplaced(str(place[0]), entry, kind, is_file=text is not None)
        if words:
            found.broken.append(Broken(own.file, line_of(own.lines, place), words, place))
    found.broken += of_lost(own.file, own.lines, lost, reader.look, moved=not leads_out)


def _named(own: Kustomization, found: Tree) -> Iterator[tuple[Path, str]]:
    """Place and name of each file and folder that it takes; what is elsewhere stands in `remote`."""
    for key in LIST_KEYS:
        for index, entry in enumerate(entries(own.data.get(key))):
            place: Path = (key, index)
            line = line_of(own.lines, place)
            if not isinstance(entry, str) or not entry.strip():
                words = f"is {entry!r}: name a file or a folder, or take it out"
                found.broken.append(Broken(own.file, line, words, place))
            elif is_remote(entry):
                found.remote.append(Remote(own.file, line, entry, place))
            else:
                yield place, entry


def _objects(path: File, text: str, found: Tree) -> None:
    try:
        found.objects.extend(read(text, str(path)))
    except Unreadable as error:
        found.broken.append(Broken(str(path), error.line, error.message))


def _texts(folder: File, own: Kustomization, reader: _Reader, found: Tree) -> None:
    for number, generator in enumerate(entries(own.data.get("configMapGenerator"))):
        for key in ("files", "envs"):
            for index, entry in enumerate(entries(mapping(generator).get(key))):
                path = below(folder, str(entry).rpartition("=")[2])
                text = reader.read(path)
                if text is None:
                    place: Path = ("configMapGenerator", number, key, index)
                    found.broken += of_file(own.file, own.lines, place, path, reader.look)
                else:
                    found.texts[str(path)] = text


def _patches(folder: File, kustomization: Kustomization, reader: _Reader, found: Tree) -> None:
    lines = kustomization.lines
    for key in ("patches", "patchesJson6902", "patchesStrategicMerge"):
        for index, entry in enumerate(entries(kustomization.data.get(key))):
            said = {"path": entry} if isinstance(entry, str) else mapping(entry)
            where = File(kustomization.file)
            inside: Path = (key, index, "patch")
            text = said.get("patch")
            if "path" in said:
                where, inside = below(folder, str(said["path"])), ()
                text = reader.read(where)
                if text is None:
                    place: Path = (key, index, "path")
                    found.broken += of_file(kustomization.file, lines, place, where, reader.look)
            if text is None:
                continue
            try:
                patch, own = value_and_lines(str(text))
            except Unreadable as error:
                found.broken.append(Broken(str(where), error.line, error.message))
                continue
            if inside:
                own = {(): line_of(lines, inside)}
            found.patches.append(Patch(str(where), mapping(said.get("target")), patch, own, inside))


def below(folder: File, entry: str) -> File:
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
