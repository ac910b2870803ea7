"""Where a field of a rendered object was set: an image, a replacement, a patch, or the object's own file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from app.k8s.documents import Document, at, entries, line_of, mapping, pairs
from app.k8s.sources import Kustomization, Patch, Tree, pointer_parts
from autoscaling.policy_problem import Path

Origin = tuple[str, int, Path]  # file, line, and the field in that file
_PARTS = re.compile(r"\[[^\]]*\]|[^.\[\]]+")
_IMAGE_KEYS = ("digest", "newTag", "newName", "name")


def origin(tree: Tree, document: Document, path: Path) -> Origin | None:
    """File, line and field of what sets a place last, as far as it can be told."""
    if path and path[-1] == "image":
        found = _image(tree, str(at(document.data, *path) or ""))
        if found is not None:
            return found
    for kustomization in reversed(tree.kustomizations):
        for source in _replacements(kustomization, document, path):
            found = _replaced(tree, source)
            if found is not None:
                return found
    for patch in reversed(tree.patches):
        if _aims_at(patch, document):
            line = _patched(patch, path)
            if line is not None:
                return patch.file, line, path
    for own in tree.objects:
        if (own.kind, own.name) == (document.kind, document.name):
            return own.file, line_of(own.lines, path), path
    return None


def file_of_text(tree: Tree, text: str) -> str | None:
    """The file of a generator whose text this is."""
    return next((file for file, content in tree.texts.items() if content == text), None)


def _image(tree: Tree, image: str) -> Origin | None:
    """The entry of `images` that made this image."""
    for kustomization in reversed(tree.kustomizations):
        for index, entry in pairs(kustomization.data.get("images")):
            name = str(entry.get("newName") or entry.get("name"))
            if image.partition("@")[0] == name or image.startswith(f"{name}:"):
                key = next(key for key in _IMAGE_KEYS if key in entry)
                path = ("images", index, key)
                return kustomization.file, line_of(kustomization.lines, path), path
    return None


def _replacements(
    kustomization: Kustomization, document: Document, path: Path
) -> Iterator[Mapping[str, Any]]:
    for _, replacement in pairs(kustomization.data.get("replacements")):
        for _, target in pairs(replacement.get("targets")):
            select = mapping(target.get("select"))
            wanted = {"kind": document.kind, "name": document.name}
            if any(select.get(key, value) != value for key, value in wanted.items()):
                continue
            if any(_matches(str(field), document.data, path) for field in entries(target.get("fieldPaths"))):
                yield mapping(replacement.get("source"))


def _matches(field: str, data: Any, path: Path) -> bool:
    """Whether kustomize's field path leads to a place of an object."""
    parts = _PARTS.findall(field)
    if len(parts) != len(path):
        return False
    for part, step in zip(parts, path, strict=True):
        inside = at(data, step)
        if part.startswith("["):
            key, found, value = part[1:-1].partition("=")
            if (mapping(inside).get(key) != value) if found else (key != step):
                return False
        elif part not in ("*", str(step)):
            return False
        data = inside
    return True


def _replaced(tree: Tree, source: Mapping[str, Any]) -> Origin | None:
    path: Path = tuple(part.strip("[]") for part in _PARTS.findall(str(source.get("fieldPath", ""))))
    for document in tree.objects:
        if (document.kind, document.name) == (source.get("kind"), source.get("name")):
            return document.file, line_of(document.lines, path), path
    return None


def _aims_at(patch: Patch, document: Document) -> bool:
    if isinstance(patch.data, dict) and not patch.target:
        merged = (patch.data.get("kind"), mapping(patch.data.get("metadata")).get("name"))
        return merged == (document.kind, document.name)
    wanted = ((patch.target.get("kind"), document.kind), (patch.target.get("name"), document.name))
    return all(said is None or re.fullmatch(str(said), real) for said, real in wanted)


def _patched(patch: Patch, path: Path) -> int | None:
    """The line of the last operation, or of the merged value, that sets a place."""
    for index, operation in reversed(list(pairs(patch.data))):
        if operation.get("op") not in ("add", "replace"):
            continue
        pointer = pointer_parts(str(operation.get("path", "")))
        if _sets(pointer, path):
            return line_of(patch.lines, (index, "value", *path[len(pointer) :]))
    if isinstance(patch.data, dict) and _has(patch.data, path):
        return line_of(patch.lines, path)
    return None


def _sets(pointer: tuple[str, ...], path: Path) -> bool:
    """Whether an operation at `pointer` set what is at `path`; `-` is the end of a list."""
    return len(pointer) <= len(path) and all(
        mine == str(theirs) or (mine == "-" and isinstance(theirs, int) and theirs > 0)
        for mine, theirs in zip(pointer, path, strict=False)
    )


def _has(data: Any, path: Path) -> bool:
    for part in path:
        if isinstance(part, int) or part not in mapping(data):
            return False
        data = data[part]
    return True
