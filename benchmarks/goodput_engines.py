"""The engines of `benchmarks.goodput`: two slots of one core each, a plain and a speculative engine on both.

Only one of the two at a slot is used at any time; one without requests takes no part of the core.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

from app.bench.engine_process import BenchEngineError
from app.bench.engine_settings import DETAILED, TABLE
from autoscaling.types import Capabilities, Role
from benchmarks.errors import BenchError, UnfitError
from benchmarks.goodput_plan import MAX_NUM_SEQS, Configuration, Method
from benchmarks.goodput_rules import Calibrated, lengths_of
from deployments.config import DEFAULT_SPECULATION, EngineSettings, PoolSettings
from deployments.synthetic_acceptance import synthetic

SLOTS: Final = 2
# What vLLM's synthetic acceptance accepts at positions 1, 2, 3: 0.7 of what was accepted before, each.
SYNTHETIC_RATES: Final = (0.7, 0.49, 0.343)
LONGEST: Final = {Method.NGRAM: 4, Method.DRAFT_MODEL: 3, Method.EAGLE: 1}

Say = Callable[[str], None]


class Engine(Protocol):
    """A running engine: `app.bench.engine_process.EngineProcess`, or a test's."""

    url: str

    @property
    def capabilities(self) -> Capabilities:
        """What it says of itself."""

    async def set_draft_lengths(self, table: Sequence[int]) -> None:
        """Draft `table[b]` tokens while b sequences run."""

    async def stop(self) -> float:
        """End it."""


Start = Callable[[PoolSettings, tuple[int, ...], Say, Path], Awaitable[Engine]]


@dataclass(frozen=True, slots=True)
class Drafts:
    """Where the models that draft lie; None leaves the method out."""

    truncated: Path | None = None
    eagle: Path | None = None

    def has(self, method: Method) -> bool:
        """Whether the method can be run."""
        needed = {Method.DRAFT_MODEL: self.truncated, Method.EAGLE: self.eagle}
        return needed.get(method, Path()) is not None


def speculation(method: Method, drafts: Drafts) -> dict[str, Any]:
    """The speculative_config of a method; without a table in it K could not be changed while it runs."""
    longest = LONGEST[method]
    common = {"num_speculative_tokens": longest, TABLE: [[1, MAX_NUM_SEQS, longest]]}
    if method is Method.NGRAM:
        return {**DEFAULT_SPECULATION, **common}
    if method is Method.EAGLE:
        return {"method": "eagle", "model": str(drafts.eagle), **common}
    return synthetic({"method": "draft_model", "model": str(drafts.truncated), **common}, SYNTHETIC_RATES)


def pool_settings(role: Role, config: dict[str, Any] | None) -> PoolSettings:
    """The settings of an engine; all are alike but for the drafts."""
    engine = EngineSettings(
        max_num_seqs=MAX_NUM_SEQS, speculative_config=config, extra_args=DETAILED if config else ()
    )
    return PoolSettings(role=role, engine=engine, cores_per_replica=1)


def cores() -> tuple[tuple[int, ...], ...]:
    """The core of each slot; raises UnfitError with fewer than two."""
    ours = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    if len(ours) < SLOTS:
        raise UnfitError(f"{len(ours)} CPU core is there, and {SLOTS} are needed, one for each slot")
    return tuple((core,) for core in list(ours)[:SLOTS])


@dataclass(slots=True)
class Fleet:
    """All engines that are up; `stop` it, whatever happens."""

    start: Start
    logs: Path
    say: Say
    cores: tuple[tuple[int, ...], ...]
    plain: list[Engine] = field(default_factory=list)
    speculative: list[Engine] = field(default_factory=list)

    async def begin(self) -> None:
        """Start the plain engines; raises BenchError."""
        await self._start(Role.PLAIN, None, self.plain)

    async def use(self, method: Method, drafts: Drafts) -> None:
        """Start the speculative engines of a method in place of those that are up; raises BenchError."""
        await self._end(self.speculative)
        await self._start(Role.SPECULATIVE, speculation(method, drafts), self.speculative)
        if not all(one.capabilities.draft_length_adjustable for one in self.speculative):
            raise BenchError(
                f"the draft length of {method} is not adjustable here, so no K table can be tried"
            )

    async def lay(self, configuration: Configuration, found: Calibrated) -> tuple[Engine, ...]:
        """The engines of a configuration, by slot, with their draft lengths in force; raises BenchError."""
        laid = []
        for slot in range(SLOTS):
            lengths = lengths_of(configuration, slot, found)
            if lengths is None:
                laid.append(self.plain[slot])
                continue
            try:
                await self.speculative[slot].set_draft_lengths(lengths)
            except BenchEngineError as error:
                raise BenchError(str(error)) from error
            laid.append(self.speculative[slot])
        return tuple(laid)

    async def stop(self) -> None:
        """End all engines."""
        await self._end(self.speculative)
        await self._end(self.plain)

    async def _start(self, role: Role, config: dict[str, Any] | None, into: list[Engine]) -> None:
        for slot in range(SLOTS):  # one after the other: each alone on the disk
            log = self.logs / f"{role}-{slot}.log"
            try:
                into.append(await self.start(pool_settings(role, config), self.cores[slot], self.say, log))
            except BenchEngineError as error:
                raise BenchError(str(error)) from error

    async def _end(self, engines: list[Engine]) -> None:
        while engines:
            await engines.pop().stop()
