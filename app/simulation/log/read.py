"""Reads the folder that `twinpool serve --record DIR` writes: its requests, observations and decisions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import msgspec

from app.simulation.log.possible import is_possible
from app.simulation.traces.errors import TraceError
from app.simulation.traces.records import Recorded, read_records
from autoscaling.decisions import Decision, Observation, Sizes
from autoscaling.types import Role
from deployments.kept_files import StoreError, UnknownSchemaError
from deployments.record_reader import Record, read

# The names of the files, and the kinds of their lines that are read here.
OBSERVATIONS: Final = "observations"
OBSERVATION: Final = "observation"
DECISIONS: Final = "decisions"
DECISION: Final = "decision"
PROFILE: Final = "profile.json"  # where it lies beside the records, the engines are known

_Kind = TypeVar("_Kind")


@dataclass(frozen=True, slots=True)
class Seen:
    """What a controller saw, about every 5 s, and the targets that it decided on then."""

    epoch: int  # the controller's life, whose clock `observation.now` is
    observation: Observation
    targets: Sizes | None


@dataclass(frozen=True, slots=True)
class Log:
    """What a folder of records holds, each part by growing time."""

    folder: Path
    requests: Recorded
    seen: tuple[Seen, ...]
    decisions: tuple[Decision, ...]  # those that told more than the one before
    notes: tuple[str, ...]  # sentences about what could not be read

    @property
    def began(self) -> float:
        """Unix seconds of the first request, where the trace begins."""
        return self.requests.began

    def first_targets(self) -> Sizes | None:
        """The targets when the first request came, else the first that are known; None where none are."""
        known = [one for one in self.seen if one.targets is not None]
        before = [one for one in known if one.observation.wall <= self.began]
        found = before[-1:] or known[:1]
        return found[0].targets if found else None

    def most_replicas(self) -> int | None:
        """The most that the targets of both pools asked for together; None where none are known."""
        return max((sum(one.targets.values()) for one in self.seen if one.targets is not None), default=None)


class _Observed(msgspec.Struct):
    epoch: int
    observation: Observation
    targets: dict[str, int] | None = None


def read_log(folder: Path) -> Log:
    """Everything but the routes, which `routes.records_of` reads one by one.

    Raises TraceError for a folder that is not there, without requests, or of another version.
    """
    if not folder.is_dir():
        raise TraceError(f"{folder}: is no folder: name the one of twinpool serve --record DIR")
    requests = read_records(folder)
    looks = _all(folder, OBSERVATIONS, OBSERVATION, _Observed, None)
    observed = [one for one in looks.found if set(Role) <= set(one.observation.pools)]
    looks.odd += len(looks.found) - len(observed)
    decisions = _all(folder, DECISIONS, DECISION, Decision, "decision")
    return Log(
        folder=folder,
        requests=requests,
        seen=tuple(
            sorted(
                (Seen(one.epoch, one.observation, _sizes(one.targets)) for one in observed),
                key=lambda one: one.observation.wall,
            )
        ),
        decisions=tuple(sorted(decisions.found, key=lambda one: one.wall)),
        notes=(*looks.notes("observations"), *decisions.notes("decisions")),
    )


@dataclass(slots=True)
class _Kept(Generic[_Kind]):
    """The records of a kind that are understood, and how many are not."""

    found: list[_Kind] = field(default_factory=list)
    odd: int = 0
    damaged: int = 0  # with numbers that cannot be

    def notes(self, what: str) -> Iterator[str]:
        """What could not be read, in sentences."""
        if self.odd:
            yield f"{self.odd} {what} are not understood; read them with the version that wrote them"
        if self.damaged:
            yield f"{self.damaged} {what} are damaged and left out: they have negative or impossible numbers"


def _all(folder: Path, name: str, kind: str, wanted: type[_Kind], inside: str | None) -> _Kept[_Kind]:
    """Every record of a kind, or a part of it."""
    kept = _Kept[_Kind]()
    try:
        for record in read(folder, name):
            if record["kind"] != kind:
                continue
            part = _part(record, inside)
            if not is_possible(part):
                kept.damaged += 1
                continue
            try:
                kept.found.append(msgspec.convert(part, wanted))
            except msgspec.ValidationError:
                kept.odd += 1
    except (StoreError, UnknownSchemaError) as error:
        raise TraceError(str(error)) from error
    return kept


def _part(record: Record, inside: str | None) -> Any:
    return record if inside is None else record.get(inside)


def _sizes(found: dict[str, int] | None) -> Sizes | None:
    if found is None or not set(Role) <= set(found):
        return None
    return {role: found[role.value] for role in Role}
