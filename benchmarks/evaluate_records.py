"""What a run of `benchmarks.evaluate` has found so far, as JSON lines, so that another one can go on from it.

The first line says what all others hold for; then the streams of each load in words, each simulated cell, and
each timed fleet.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import msgspec

from benchmarks.errors import BenchError
from benchmarks.evaluate_outcomes import Outcome
from benchmarks.evaluate_plan import BOUNDS, DELAY_S, POLICY, PROFILE, Cell, Model, Traffic

VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Begun:
    """What every line of the file holds for; cells say the rest."""

    data: str | None  # the folder of published traces
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


class Records:
    """The file; every line is on the disk before the next run counts."""

    def __init__(self, path: Path, begun: Begun) -> None:
        self.path = path
        self._begun = begun
        self.found = Found()

    def begin(self) -> None:
        """Write the file anew."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_bytes(b"")
        self._append("begun", self._begun)

    def resume(self) -> None:
        """Read what there is; raises BenchError for another policy or data, and for what is no such file."""
        try:
            raw = self.path.read_bytes()
        except OSError as error:
            raise BenchError(f"{self.path}: {error.strerror}: without --resume a run begins anew") from error
        whole = raw[: raw.rfind(b"\n") + 1]  # the last line may be cut
        try:
            for line in whole.splitlines():
                self._take(*next(iter(msgspec.json.decode(line, type=dict[str, msgspec.Raw]).items())))
        except (msgspec.MsgspecError, StopIteration) as error:
            raise BenchError(f"{self.path} is no record of a run: {error}") from error
        if not whole:
            raise BenchError(f"{self.path} is empty: begin anew without --resume")
        self.path.write_bytes(whole)

    def simulated(self, outcome: Outcome) -> None:
        """Keep one run."""
        self.found.outcomes[outcome.cell] = outcome
        self._append("outcome", outcome)

    def timed(self, fleet: FleetRun) -> None:
        """Keep one timed fleet."""
        self.found.fleets[fleet.replicas] = fleet
        self._append("fleet", fleet)

    def load(self, traffic: Traffic, words: tuple[str, ...]) -> None:
        """Keep what a load is made of, once."""
        if traffic not in self.found.loads:
            self.found.loads[traffic] = words
            self._append("load", LoadWords(traffic, words))

    def _take(self, kind: str, raw: msgspec.Raw) -> None:
        match kind:
            case "begun":
                if msgspec.json.decode(raw, type=Begun) != self._begun:
                    raise BenchError(
                        f"{self.path} is of a run with another policy, profile or folder of traces: "
                        "begin anew without --resume, or give the options of that run"
                    )
            case "outcome":
                outcome = msgspec.json.decode(raw, type=Outcome)
                self.found.outcomes[outcome.cell] = outcome
            case "fleet":
                fleet = msgspec.json.decode(raw, type=FleetRun)
                self.found.fleets[fleet.replicas] = fleet
            case "load":
                load = msgspec.json.decode(raw, type=LoadWords)
                self.found.loads[load.traffic] = load.words

    def _append(self, kind: str, value: Any) -> None:
        with self.path.open("ab") as out:
            out.write(msgspec.json.encode({kind: value}) + b"\n")
