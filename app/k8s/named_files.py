"""What a kustomization names and is not there, or is not what it may be, with the name that is meant."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path as File

from app.k8s.documents import line_of, meant
from autoscaling.policy_problem import Path

NAMES = ("kustomization.yaml", "kustomization.yml", "Kustomization")
RESOURCES, COMPONENTS = LIST_KEYS = ("resources", "components")
KUSTOMIZATION, COMPONENT = "Kustomization", "Component"
OUT = "../"
OVERLAYS = "k8s/overlays"
# As kustomize tells them: a URL, a repository of git, or a reference in one.
_REMOTE = re.compile(r"://|^git::|^[\w.-]+@[\w.-]+:|^(github\.com|gitlab\.com|bitbucket\.org)[/:]|[?&]ref=")
Look = Callable[[File], list[str] | None]  # the names in a folder; None when there is no such folder


@dataclass(frozen=True, slots=True)
class Broken:
    """What kustomize would refuse, in its place."""

    file: str
    line: int
    message: str
    path: Path = ()


@dataclass(frozen=True, slots=True)
class Remote:
    """An entry that the renderer fetches from elsewhere."""

    file: str
    line: int
    entry: str
    path: Path


@dataclass(frozen=True, slots=True)
class Lost:
    """An entry of `resources` or `components` that leads to nothing."""

    place: Path
    entry: str
    path: File


def not_looked(folder: File) -> list[str] | None:  # noqa: ARG001  # the port's form
    """For a reader that cannot list folders: no name is near."""
    return None


def is_remote(entry: str) -> bool:
    """Whether an entry names something outside of this checkout."""
    return _REMOTE.search(entry) is not None


def misplaced(key: str, entry: str, kind: str, *, is_file: bool) -> str:
    """Why an entry that is there may not stand in this list; empty when it may."""
    if key == RESOURCES and kind == COMPONENT:
        return f"{entry} is a component: list it under `{COMPONENTS}`"
    if key == COMPONENTS and (is_file or kind == KUSTOMIZATION):
        return f"{entry} is no component: list it under `{RESOURCES}`"
    return ""


def of_lost(
    file: str, lines: Mapping[Path, int], lost: list[Lost], look: Look, *, moved: bool
) -> Iterator[Broken]:
    """Each entry that leads to nothing; one word for all that lead out of a folder that was moved."""
    out = [item for item in lost if item.entry.startswith(OUT)]
    if moved and len(out) > 1:
        first = out[0]
        words = (
            f"there is no {first.entry}, nor what the {len(out) - 1} other entries name that lead out of "
            f"this folder: an overlay lies in {OVERLAYS} of the checkout, beside the others; move it there"
        )
        yield Broken(file, line_of(lines, first.place), words, first.place)
        lost = [item for item in lost if item not in out]
    for item in lost:
        yield Broken(file, line_of(lines, item.place), _words(item, look), item.place)


def _words(item: Lost, look: Look) -> str:
    if look(item.path) is not None:
        return f"there is no {NAMES[0]} in the folder {item.entry}"
    if item.path.is_symlink() and not item.path.exists():
        return f"the link {item.entry} leads nowhere, or in a circle"
    kind = "file" if item.path.suffix in (".yaml", ".yml", ".json") else "folder"
    return f"there is no {kind} {item.entry}{_meant(item.path, look)}"


def of_file(file: str, lines: Mapping[Path, int], place: Path, path: File, look: Look) -> Iterator[Broken]:
    """A file that is named and not there; one that is there and no text is not our matter."""
    names = look(path.parent)
    if look is not_looked or (names is not None and path.name in names):
        return
    words = (
        f"there is no file {path.name}{_meant(path, look)}" if names is not None else f"there is no {path}"
    )
    yield Broken(file, line_of(lines, place), words, place)


def _meant(path: File, look: Look) -> str:
    """The near name beside it, or of the nearest folder above that is there."""
    return meant(path.name, look(path.parent) or ())
