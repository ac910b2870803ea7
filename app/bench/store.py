"""A measurement as a file, and the profiles that stand in as priors."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain, count
from pathlib import Path
from typing import Final

import msgspec

from autoscaling.profile import ProfileError, read_profile
from autoscaling.profiling.measured import MEASUREMENT_VERSION, Measurement
from autoscaling.routing_rules import StepCost
from autoscaling.types import Role

MEASUREMENT: Final = "measurement.json"
PROFILE: Final = "profile.json"
HTML: Final = "report.html"
FOLDER: Final = "twinpool-bench"  # where all goes unless told otherwise
MARKDOWN: Final = "report.md"


class StoreError(Exception):
    """A file cannot be read or written; the message names it and says what to do."""


def write_text(path: Path, text: str) -> None:
    """Write in one step: a running service that watches the file never sees half of it; raises StoreError."""
    unfinished = path.with_name(path.name + ".tmp")
    try:
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(path)
    except OSError as error:
        raise StoreError(f"{path}: cannot be written: {error.strerror}: name another folder") from error


def write_measurement(folder: Path, found: Measurement) -> Path:
    """Write `measurement.json`; raises StoreError."""
    text = msgspec.json.format(msgspec.json.encode(found), indent=1).decode()
    write_text(folder / MEASUREMENT, text + "\n")
    return folder / MEASUREMENT


def read_measurement(path: Path) -> Measurement:
    """A measurement that was written before; raises StoreError."""
    path = path / MEASUREMENT if path.is_dir() else path
    mend = "name a measurement.json that `twinpool bench` wrote, or its folder"
    try:
        data = path.read_bytes()
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror}: {mend}") from error
    try:
        seen = msgspec.json.decode(data, type=_Version)
        if seen.version != MEASUREMENT_VERSION:
            raise StoreError(
                f"{path}: version {seen.version}, known here is {MEASUREMENT_VERSION}: measure again, "
                "or update twinpool"
            )
        return msgspec.json.decode(data, type=Measurement)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise StoreError(f"{path}: no measurement: {error}: {mend}") from None


def read_prior(path: Path) -> Mapping[Role, StepCost]:
    """The costs of a former profile, of whatever model; raises StoreError."""
    try:
        return read_profile(path.read_text(encoding="utf-8"), str(path)).costs
    except OSError as error:
        raise StoreError(
            f"--prior {path}: cannot be read: {error.strerror}: name a profile.json, or leave --prior out"
        ) from error
    except UnicodeDecodeError as error:
        raise StoreError(f"--prior {path}: no text: name a profile.json, or leave --prior out") from error
    except ProfileError as error:
        raise StoreError(f"--prior {error}, or leave --prior out") from error


def new_folder(base: Path = Path(FOLDER)) -> Path:
    """`base`, or the first of `base`-2, `base`-3, ... that holds no measurement."""
    numbered = (base.with_name(f"{base.name}-{number}") for number in count(2))
    return next(one for one in chain((base,), numbered) if not (one / MEASUREMENT).exists())


def prepare_folder(folder: Path, *, anew: bool) -> None:
    """Make the folder where all goes; raises StoreError before anything is measured.

    One that holds a measurement is refused to a new one.
    """
    if anew and (folder / MEASUREMENT).exists():
        raise StoreError(
            f"{folder}: holds a measurement already: name another folder with --out, or move that one away"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".twinpool-bench"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise StoreError(f"{folder}: cannot be written: {error.strerror}: name another with --out") from error


class _Version(msgspec.Struct):
    version: int
