"""What a run of `benchmarks.evaluate` has found so far, as JSON lines, so that another one can go on from it.

The first line says what all others hold for; then the streams of each load in words, each simulated cell, and
each timed fleet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import msgspec

from benchmarks.errors import BenchError
from benchmarks.evaluate_outcomes import Outcome
from benchmarks.evaluate_plan import BOUNDS, DELAY_S, POLICY, PROFILE, Cell, Model, Traffic
from benchmarks.record_lines import RecordLines

VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Begun:
    """What every line of the file holds for; cells say the rest."""

    data: Mapping[str, str]  # published traces that are read: name -> SHA-256
    profile: str = PROFILE
    policy: str = POLICY
    version: int = VERSION


@dataclass(frozen=True, slots=True)
class LoadWords:
    """The streams of a load, a sentence each."""

    traffic: Traffic
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FleetRun:
    """A day of a fleet in the fluid model, in a process of its own."""

    replicas: int
    hours: float
    seconds: float  # that it took
    gib: float  # most memory that the process held
    attainment: float  # of interactive requests, so that it can be seen to have simulated something


@dataclass(slots=True)
class Found:
    """Everything that is known so far."""

    outcomes: dict[Cell, Outcome] = field(default_factory=dict)
    fleets: dict[int, FleetRun] = field(default_factory=dict)
    loads: dict[Traffic, tuple[str, ...]] = field(default_factory=dict)

    def missing(self, cells: Iterable[Cell]) -> list[Cell]:
        """Those that have not been simulated, each once, in their order."""
        return [cell for cell in dict.fromkeys(cells) if cell not in self.outcomes]

    def unmoved(self, cell: Cell) -> Outcome | None:
        """The same at the one delay, if nothing moved there: then there is nothing that a delay could change.

        None for what knows the trace, whose first sizes depend on the delay.
        """
        if cell.contender in BOUNDS or cell.model is not Model.EVENT:
            return None
        twin = self.outcomes.get(replace(cell, delay_s=DELAY_S))
        return None if twin is None or twin.moves else replace(twin, cell=cell)

    def of(self, cells: Iterable[Cell]) -> list[Outcome]:
        """The outcomes of these cells, in their order; raises BenchError when one is missing."""
        wanted = list(cells)
        if missing := self.missing(wanted):
            raise BenchError(
                f"{len(missing)} runs are missing, such as {missing[0].words}: go on with --resume"
            )
        return [self.outcomes[cell] for cell in wanted]


class Records(RecordLines):
    """The file, and all that is in it."""

    def __init__(self, path: Path, begun: Begun) -> None:
        super().__init__(path, "begun", begun, "policy, profile or published traces")
        self.found = Found()

    def simulated(self, outcome: Outcome) -> None:
        """Keep one run."""
        self.found.outcomes[outcome.cell] = outcome
        self.append("outcome", outcome)

    def timed(self, fleet: FleetRun) -> None:
        """Keep one timed fleet."""
        self.found.fleets[fleet.replicas] = fleet
        self.append("fleet", fleet)

    def load(self, traffic: Traffic, words: tuple[str, ...]) -> None:
        """Keep what a load is made of, once."""
        if traffic not in self.found.loads:
            self.found.loads[traffic] = words
            self.append("load", LoadWords(traffic, words))

    def take(self, kind: str, raw: msgspec.Raw) -> None:
        """Learn what a line of a kind says."""
        match kind:
            case "outcome":
                outcome = msgspec.json.decode(raw, type=Outcome)
                self.found.outcomes[outcome.cell] = outcome
            case "fleet":
                fleet = msgspec.json.decode(raw, type=FleetRun)
                self.found.fleets[fleet.replicas] = fleet
            case "load":
                load = msgspec.json.decode(raw, type=LoadWords)
                self.found.loads[load.traffic] = load.words
