"""The starter policies that come with the package: their names and their texts."""

from __future__ import annotations

from importlib import resources
from importlib.resources.abc import Traversable

_SUFFIX = ".yaml"


def names() -> tuple[str, ...]:
    """Names of all starters, in alphabetical order."""
    found = (item.name for item in _folder().iterdir() if item.name.endswith(_SUFFIX))
    return tuple(sorted(name.removesuffix(_SUFFIX) for name in found))


def text(name: str) -> str:
    """The file of one starter; raises KeyError, naming the known ones, for another name."""
    known = names()
    if name not in known:
        raise KeyError(f"no starter {name!r}; there are {', '.join(known)}")
    return _folder().joinpath(name + _SUFFIX).read_text(encoding="utf-8")


def _folder() -> Traversable:
    return resources.files("autoscaling").joinpath("starters")
