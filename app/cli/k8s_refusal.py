"""What kustomize says when it refuses an overlay: its last cause in short, and what mends that."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from app.k8s.documents import meant

_FRAME = re.compile(r'^E\d{4} \S+\s+\d+ \S+\] "command failed" err=', re.MULTILINE)
_LOST = re.compile(r"lstat (.+?): no such file or directory")
_STEPS = re.compile(
    r"accumulating (?:resources|components): |accumulation err='|accumulateDirectory: \"|"
    r"accumulating resources from '[^']*': |recursed accumulation of path '[^']*': |"
    r"'[^']*' must resolve to a file': |loader\.New \""
)
_AGAIN = re.compile(r"': must build at directory: .*$")
_NAMED = re.compile(r"accumulating resources from '([^']*)'")
_INSIDE = re.compile(r"recursed accumulation of path '([^']*)'")
_FIELDS = (
    *("apiVersion", "kind", "metadata", "resources", "components", "patches", "images", "replacements"),
    *("configMapGenerator", "secretGenerator", "generatorOptions", "namespace", "namePrefix", "nameSuffix"),
    *("labels", "replicas", "transformers", "generators", "configurations", "validators", "crds", "openapi"),
)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refusal in three parts."""

    cause: str
    mend: str
    whole: str  # kustomize's own words, on one line


def refusal(stderr: str, folder: Path) -> Refusal:
    """The refusal of the overlay in `folder`, out of what kubectl or kustomize wrote."""
    whole = _bare(stderr)
    file = f"{shown(_INSIDE.findall(whole)[-1] if _INSIDE.search(whole) else str(folder))}/kustomization.yaml"
    cause, mend = _told(whole, file)
    return Refusal(cause, mend, whole)


def shown(path: str) -> str:
    """A path as people type it here: below the current folder without that."""
    try:
        near = os.path.relpath(path, Path.cwd().resolve())
    except (OSError, ValueError):
        return path
    return path if near.startswith("..") else near


def _bare(stderr: str) -> str:
    """On one line and without the frame of kubectl's log."""
    found = _FRAME.search(stderr)
    text = stderr[found.end() :] if found else stderr
    if found and text.startswith("<"):
        text = text.strip().removeprefix("<").removesuffix(">")
    elif found and text.startswith('"'):
        text = text.strip()[1:].removesuffix('"').replace('\\"', '"').replace("\\n", "\n")
    return " ".join(text.split()).removeprefix("Error: ").removeprefix("error: ")


def _told(whole: str, file: str) -> tuple[str, str]:
    lost = _LOST.findall(whole)
    if lost:
        return f"there is no {shown(lost[-1])}", f"put it there, or mend its name in {file}"
    if found := re.search(r"expected kind != 'Component' for path '([^']*)'", whole):
        place = shown(found[1])
        return f"{place} is a component and stands under `resources`", f"move it to `components` in {file}"
    if found := re.search(r"already registered id: (\w+)\.\S*?/(\S+?)\.\[?[^\s.]*'", whole):
        return _twice(found[1], found[2])
    if found := re.search(r'unknown field "([^"]+)"', whole):
        words = f"kustomize has no field {found[1]}{meant(found[1], _FIELDS)}"
        return words, f"mend it in {file}"
    if found := re.search(r"testing value (\S+) failed", whole):
        mend = "see what it aims at: without that patch, `twinpool k8s render` shows what is there"
        return f"the `op: test` of a patch finds something else at {found[1]}", mend
    if found := re.search(r"nothing selected by (\w+)\S*?/([^.\s]+)", whole):
        mend = f"list what brings it under the overlay's `resources`, such as settings; {file} wants it"
        return f"a replacement finds no {found[1]} {found[2]}", mend
    found = re.search(r"must build at directory: '([^']*)': file is not directory\"?$", whole)
    if found and "accumulation err" not in whole:
        return (
            f"{shown(found[1])} is a file, and a component is a folder",
            f"move it to `resources` in {file}",
        )
    return _last(whole), f"mend what is named; kustomize was at {file}"


def _twice(kind: str, name: str) -> tuple[str, str]:
    mend = "name it in one place only: see which of the resources and components have it"
    if "redis" in name:
        mend = "components/redis-single brings its own: drop redis.yaml from the overlay's `resources`"
    return f"{kind} {name} comes from two places", mend


def _last(whole: str) -> str:
    """The words after the last step, with the file that they are about."""
    named = _NAMED.findall(whole)
    words = _STEPS.sub("", _AGAIN.sub("", whole)).strip("\"' ")
    return f"{named[-1]}: {words}" if named and named[-1] not in words else words
