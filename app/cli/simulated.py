"""What the commands that simulate share: engines by name, and checks of what is asked for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from app.cli.output import fail
from autoscaling.profile import Profile, ProfileError, read_profile

if TYPE_CHECKING:
    from app.simulation.compared import Ground, Model
    from app.simulation.engine_profile import EngineProfile

INTERRUPTED = 130  # as a shell says of a command that Ctrl-C ended


@dataclass(frozen=True, slots=True)
class Engines:
    """The engines of a profile, and what a measurement says of them."""

    engines: EngineProfile
    profile: Profile


def named_engines(name: str | None, beside: Path | None = None) -> Engines:
    """The engines that --profile names; without it those of a profile `beside` a log, if one lies there."""
    if name is None and beside is not None and beside.is_file():
        name = str(beside)
    if name is None:
        fail(
            "--profile is missing, so nobody knows how fast the engines are",
            "name a profile.json of `twinpool bench`, or a built-in profile such as h100-8b",
        )
    return engines_of(name)


def engines_of(name: str) -> Engines:
    """Those of a built-in profile or of a file; ends the command where a pool is missing."""
    from app.simulation.belief import believed_profile  # noqa: PLC0415
    from app.simulation.built_in_profiles import BUILT_IN  # noqa: PLC0415
    from app.simulation.engine_profile import from_profile  # noqa: PLC0415
    from autoscaling.types import Role  # noqa: PLC0415

    if name in BUILT_IN:
        found = BUILT_IN[name]
        return Engines(found, believed_profile(found))
    measured = _profile(Path(name), ", ".join(BUILT_IN))
    engines = from_profile(measured, Path(name).stem if Path(name).stem != "profile" else name)
    for role in Role:
        if role not in engines.costs:
            fail(
                f"--profile {name}: no {role} engine was measured, and a service has both",
                "run `twinpool bench`, which measures both, or name a built-in profile",
            )
    return Engines(engines, measured)


def _profile(path: Path, known: str) -> Profile:
    mend = f"name a profile.json that `twinpool bench` wrote, or one of {known}"
    try:
        return read_profile(path.read_text(encoding="utf-8"), f"--profile {path}")
    except OSError as error:
        fail(f"--profile {path}: is not built in, and no file that can be read: {error.strerror}", mend)
    except UnicodeDecodeError:
        fail(f"--profile {path}: no text", mend)
    except ProfileError as error:
        fail(str(error), mend)


def above_zero(option: str, value: float | None) -> None:
    """End the command for a number that is none, or not above 0."""
    if value is not None and not 0 < value < math.inf:
        fail(f"{option} is {value:g}", "give a number above 0, or leave it out")


def model_of(word: str | None, default: Model) -> Model:
    """The model by its word."""
    from app.simulation.compared import Model  # noqa: PLC0415

    if word is not None and word not in set(Model):
        fail(f"--model is {word}", f"write one of {', '.join(Model)}, or leave it out")
    return default if word is None else Model(word)


def some_fit(ground: Ground) -> None:
    """End the command where no request of the trace fits into the engines."""
    longest = ground.engines.longest
    if all(one.prompt_tokens >= longest for one in ground.trace):
        fail(
            f"every prompt of the trace is too long: {ground.engines.name} holds {longest:,} tokens",
            "name another --profile, or a trace with shorter prompts",
        )
