"""From the command line and a settings file to ServiceSettings, with errors that name the place.

What is given on the command line wins over the file, the file over the defaults.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from platformdirs import user_state_path
from pydantic import ValidationError

from autoscaling.types import Role
from deployments.local_config import ServiceSettings, default_settings

NONE = "none"  # for a folder: keep nothing


class SettingsError(Exception):
    """What the user wrote cannot be used; the message names the setting."""


@dataclass(frozen=True, slots=True)
class Options:
    """The command line of `serve`; None where nothing was said."""

    host: str | None = None
    port: int | None = None
    front: str | None = None
    engine: str | None = None
    model: str | None = None
    served_name: str | None = None
    speculation: str | None = None
    speculative_replicas: int | None = None
    plain_replicas: int | None = None
    settings: Path | None = None
    policy: Path | None = None
    slots: int | None = None
    state_dir: str | None = None
    record: Path | None = None
    profile: Path | None = None

    def overrides(self) -> dict[str, Any]:
        """What was said, in the shape of the settings; raises SettingsError."""
        engine = _said(kind=self.engine, model=self.model, served_name=self.served_name)
        draft = {} if self.speculation is None else {"speculative_config": _json_object(self.speculation)}
        found = {
            Role.SPECULATIVE.value: _said(replicas=self.speculative_replicas, engine=engine | draft or None),
            Role.PLAIN.value: _said(replicas=self.plain_replicas, engine=engine or None),
        }
        service = _said(
            host=self.host,
            port=self.port,
            front=self.front,
            slots=self.slots,
            state_dir=self.state_dir,
            policy=None if self.policy is None else str(self.policy),
            record_dir=None if self.record is None else str(self.record),
            profile=None if self.profile is None else str(self.profile),
        )
        return service | {k: v for k, v in found.items() if v}


def load(options: Options) -> ServiceSettings:
    """The settings to serve with; raises SettingsError naming file and field."""
    path = options.settings
    try:
        base = default_settings(engine="simulated" if options.engine == "simulated" else "vllm")
        found = {} if path is None else _read(path)
        joined = _merge(_merge(base.model_dump(mode="json"), found), options.overrides())
        return _with_folders(ServiceSettings.model_validate(joined))
    except ValidationError as error:
        where = "" if path is None else f"{path}: "
        lines = [f"{where}{_field(item['loc'])}{item['msg']}" for item in error.errors()]
        raise SettingsError("\n".join(lines)) from error


def _with_folders(found: ServiceSettings) -> ServiceSettings:
    """Absolute paths, since the controller runs elsewhere, and the user's own folder for the state."""
    state = found.state_dir or str(user_state_path("twinpool") / str(found.port))
    given = {name: getattr(found, name) for name in ("policy", "profile", "record_dir")}
    folders = {"state_dir": state} | given
    return found.model_copy(
        update={
            name: None if path is None or path == NONE else str(Path(path).expanduser().absolute())
            for name, path in folders.items()
        }
    )


def unchanging(old: ServiceSettings, new: ServiceSettings, slots: int) -> ServiceSettings:
    """`new`, when it differs only in what can change while serving; raises SettingsError otherwise."""
    for name in ("host", "port", "front"):
        if getattr(old, name) != getattr(new, name):
            raise SettingsError(f"{name} cannot change while serving: stop and start again")
    if new.slots not in (None, slots) or new.taken > slots:
        raise SettingsError(
            f"{max(new.slots or 0, new.taken)} engine slots are wanted, "
            f"this cluster was started with {slots}: stop and start again"
        )
    return new.model_copy(update={"slots": slots})


def _said(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _json_object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise SettingsError(f"--speculation is not JSON: {error}") from error
    if not isinstance(found, dict) or "method" not in found:
        raise SettingsError(
            '--speculation must be a JSON object with a "method", as vLLM\'s speculative_config'
        )
    return found


def _read(path: Path) -> dict[str, Any]:
    try:
        found = yaml.safe_load(path.read_text())
    except OSError as error:
        raise SettingsError(f"--settings {path}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise SettingsError(f"--settings {path}: {str(error).replace(chr(10), ' ')}") from error
    if not isinstance(found, dict):
        raise SettingsError(f"--settings {path}: it must hold a mapping such as `port: 8000`")
    return found


def _merge(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Nested mappings are joined; `speculative_config` is one value and is replaced."""
    joined = dict(below)
    for key, value in above.items():
        old = joined.get(key)
        if isinstance(old, dict) and isinstance(value, dict) and key != "speculative_config":
            joined[key] = _merge(old, value)
        else:
            joined[key] = value
    return joined


def _field(where: tuple[int | str, ...]) -> str:
    return ".".join(map(str, where)) + ": " if where else ""
