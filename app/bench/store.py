"""A measurement as a file, and the profiles that stand in as priors."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import chain, count
from pathlib import Path
from re import Pattern
from typing import Any, Final

import msgspec

from app.bench.alone import is_measured_in
from autoscaling.profile import ProfileError, read_profile
from autoscaling.profiling.measured import MEASUREMENT_VERSION, Measurement
from autoscaling.routing_rules import StepCost
from autoscaling.types import Role

MEASUREMENT: Final = "measurement.json"
PROFILE: Final = "profile.json"
HTML: Final = "report.html"
FOLDER: Final = "twinpool-bench"  # where all goes unless told otherwise
MARKDOWN: Final = "report.md"
PLOTS: Final = "plots"
SCORES: Final = "scores.json"
HELD: Final = {MEASUREMENT: "a measurement", SCORES: "a simulation"}  # by the file that only it writes
LOGS: Final = "engine-*.log"


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
        if not path.exists() and has_logs(path.parent):
            raise StoreError(_not_yet(path)) from error
        raise StoreError(f"{path}: cannot be read: {error.strerror}: {mend}") from error
    try:
        seen = msgspec.json.decode(data, type=_Version)
        if seen.version != MEASUREMENT_VERSION:
            raise StoreError(
                f"{path}: version {seen.version}, known here is {MEASUREMENT_VERSION}: measure again, "
                "or update twinpool"
            )
        found = msgspec.json.decode(data, type=Measurement)
        if wrong := _impossible(msgspec.json.decode(data), "$"):
            raise StoreError(f"{path}: no measurement: {wrong}: {mend}")
        return found  # noqa: TRY300
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
    """`base`, or the first of `base`-2, `base`-3, ... that holds no measurement and is not measured in."""
    numbered = (base.with_name(f"{base.name}-{number}") for number in count(2))
    return next(
        one
        for one in chain((base,), numbered)
        if not (one / MEASUREMENT).exists() and not is_measured_in(one)
    )


def prepare_folder(folder: Path, files: Collection[str] = (), *, spared: Collection[str] = ()) -> None:
    """Make the folder where all goes; raises StoreError before anything is measured or simulated.

    `files` will be written there, plots beside them.  A folder is refused that holds one of `spared`: what
    it belongs to would lose its report.
    """
    for name in spared:
        if (folder / name).exists():
            raise StoreError(
                f"{folder}: holds {HELD[name]} already: name another folder with --out, or move that one away"
            )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for place in (folder, folder / PLOTS):
            if place.exists():
                probe = place / ".twinpool-bench"
                probe.touch()
                probe.unlink()
    except OSError as error:
        raise StoreError(
            f"{error.filename}: cannot be written: {error.strerror}: name another with --out"
        ) from error
    for name in files:
        if (folder / name).is_dir():
            raise StoreError(f"{folder / name}: is a folder, and a file goes there: name another with --out")


def write_plots(folder: Path, drawn: Mapping[str, str], ours: Pattern[str]) -> None:
    """Write plots, file name -> SVG text, in place of those of a former run; raises StoreError.

    A former one is a file whose whole name is one of `ours`; nothing else is removed.
    """
    place = folder / PLOTS
    try:
        place.mkdir(exist_ok=True)
        for path in place.iterdir():
            if path.name not in drawn and ours.fullmatch(path.name):
                path.unlink()
    except OSError as error:
        raise StoreError(f"{place}: cannot be written: {error.strerror}: name another folder") from error
    for name, text in drawn.items():
        write_text(place / name, text)


def has_logs(folder: Path) -> bool:
    """Whether engines of a measurement have begun to write there."""
    return any(folder.glob(LOGS))


def _not_yet(path: Path) -> str:
    if is_measured_in(path.parent):
        return f"{path}: not there yet: it is written after the second round of the measurement that goes on"
    return f"{path}: not there: the measurement broke off before its second round was over: measure anew"


def _impossible(value: Any, place: str) -> str:
    """Where a number is below what can be measured; empty where none is."""
    if isinstance(value, dict):
        parts = [(f"{place}.{name}", part) for name, part in value.items()]
    elif isinstance(value, list):
        parts = [(f"{place}[{at}]", part) for at, part in enumerate(value)]
    else:
        least = 1 if place.endswith(".sequences") else 0
        wrong = isinstance(value, int | float) and value < least
        return f"Expected at least {least}, got {value} - at `{place}`" if wrong else ""
    return next(filter(None, (_impossible(part, there) for there, part in parts)), "")


class _Version(msgspec.Struct):
    version: int
