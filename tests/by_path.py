"""Modules that belong to no package, such as the generators of docs."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[1]


def module_at(place: str) -> ModuleType:
    """The module of a file, by its place below the root of the repository."""
    spec = importlib.util.spec_from_file_location(place.removesuffix(".py").replace("/", "_"), ROOT / place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module
