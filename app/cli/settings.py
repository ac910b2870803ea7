"""From command-line options and a settings file to ServiceSettings, with errors that name the place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from deployments.config import DEFAULT_SPECULATION
from deployments.local_config import ServiceSettings, default_settings


class SettingsError(Exception):
    """What the user wrote cannot be used; the message names the setting."""


def parse_speculation(text: str | None) -> dict[str, Any]:
    """The value of --speculation; raises SettingsError."""
    if text is None:
        return DEFAULT_SPECULATION
    try:
        found = json.loads(text)
    except ValueError as error:
        raise SettingsError(f"--speculation is not JSON: {error}") from error
    if not isinstance(found, dict) or "method" not in found:
        raise SettingsError(
            '--speculation must be a JSON object with a "method", as vLLM\'s speculative_config'
        )
    return found


def load(path: Path | None, overrides: dict[str, Any], engine: dict[str, Any]) -> ServiceSettings:
    """Defaults, then the file, then `overrides` (service fields that were given on the command line).

    Raises SettingsError naming file and field.
    """
    try:
        base = default_settings(**engine).model_dump(mode="json")
        found = {} if path is None else _read(path)
        return ServiceSettings.model_validate(_merge(_merge(base, found), overrides))
    except ValidationError as error:
        where = "" if path is None else f"{path}: "
        lines = [f"{where}{_field(item['loc'])}{item['msg']}" for item in error.errors()]
        raise SettingsError("\n".join(lines)) from error


def _read(path: Path) -> dict[str, Any]:
    try:
        found = yaml.safe_load(path.read_text())
    except OSError as error:
        raise SettingsError(f"--settings {path}: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise SettingsError(f"--settings {path}: {str(error).replace(chr(10), ' ')}") from error
    if not isinstance(found, dict):
        raise SettingsError(f"--settings {path}: it must hold a mapping such as `port: 8000`")
    return found


def _merge(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Nested mappings are joined; `speculative_config` is one value and is replaced."""
    joined = dict(below)
    for key, value in above.items():
        old = joined.get(key)
        nested = isinstance(old, dict) and isinstance(value, dict) and key != "speculative_config"
        joined[key] = _merge(old, value) if nested and isinstance(old, dict) else value
    return joined


def _field(where: tuple[int | str, ...]) -> str:
    return ".".join(map(str, where)) + ": " if where else ""
