"""What a run of `benchmarks.goodput` has found so far, as JSON lines, so that another one can go on from it.

The first line is the plan; then, by method, what calibration found and what it predicts, before any load;
then each condition of each round with all requests that count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from benchmarks.goodput_figures import Block
from benchmarks.goodput_plan import SEED, Condition, Method, Plan
from benchmarks.goodput_rules import Calibrated
from benchmarks.record_lines import RecordLines

VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Calibration:
    """What calibration of a method has found, and when."""

    method: Method
    at: str  # RFC 3339
    found: Calibrated


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A method that could not be measured, and why."""

    method: Method
    words: str


@dataclass(frozen=True, slots=True)
class Begun:
    """The plan that all lines after it hold for."""

    plan: Plan
    seed: str = SEED
    version: int = VERSION


@dataclass(slots=True)
class Found:
    """Everything that is known so far."""

    calibrations: dict[Method, Calibration] = field(default_factory=dict)
    left_out: dict[Method, LeftOut] = field(default_factory=dict)
    blocks: list[Block] = field(default_factory=list)

    @property
    def calibrated(self) -> Mapping[Method, Calibrated]:
        """By method."""
        return {method: one.found for method, one in self.calibrations.items()}

    def block(self, method: Method, index: int, condition: Condition | None) -> Block | None:
        """A condition of a round, once it has been measured."""
        return next(
            (
                one
                for one in self.blocks
                if one.method is method and one.round == index and one.condition == condition
            ),
            None,
        )

    def has(self, method: Method, index: int, condition: Condition) -> bool:
        """Whether a condition of a round has been measured."""
        return self.block(method, index, condition) is not None

    def whole_rounds(self, method: Method, conditions: Sequence[Condition]) -> list[Block]:
        """The blocks of the rounds in which every condition has been measured: only these are compared."""
        mine = [one for one in self.blocks if one.method is method]
        return [block for block in mine if all(self.has(method, block.round, one) for one in conditions)]


class Records(RecordLines):
    """The file, and all that is in it."""

    def __init__(self, path: Path, plan: Plan) -> None:
        super().__init__(path, "plan", Begun(plan), "plan")
        self.found = Found()

    def calibrated(self, one: Calibration) -> None:
        """Keep what was measured before the load, and predicted."""
        self.found.calibrations[one.method] = one
        self.append("calibration", one)

    def left_out(self, one: LeftOut) -> None:
        """Note a method that is not measured; a run that goes on tries it again."""
        self.found.left_out[one.method] = one

    def measured(self, block: Block) -> None:
        """Keep one condition of one round."""
        self.found.blocks.append(block)
        self.append("block", block)

    def take(self, kind: str, raw: msgspec.Raw) -> None:
        """Learn what a line of a kind says."""
        match kind:
            case "calibration":
                one = msgspec.json.decode(raw, type=Calibration)
                self.found.calibrations[one.method] = one
            case "block":
                self.found.blocks.append(msgspec.json.decode(raw, type=Block))
