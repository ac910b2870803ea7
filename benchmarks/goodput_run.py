"""One run of `benchmarks.goodput`: method by method, calibration first, then round by round."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from benchmarks.errors import BenchError
from benchmarks.goodput_engines import LONGEST, Drafts, Engine, Fleet
from benchmarks.goodput_figures import Block
from benchmarks.goodput_load import run_load
from benchmarks.goodput_plan import Condition, Configuration, Method, Plan, order
from benchmarks.goodput_records import Calibration, Found, LeftOut, Records
from benchmarks.goodput_routing import LeastLoaded, Ours, Router, slot_seed
from benchmarks.goodput_rules import Calibrated, lengths_of, rules_of, slots

START_S, CALIBRATION_S, FINISH_S = 40.0, 250.0, 6.0  # expected, for the time shown
NO_HEAD: Final = "no EAGLE head was given with --eagle-head"

Say = Callable[[str], None]
# From the method, its longest K, a speculative and a plain engine.
Calibrate = Callable[[Method, int, Engine, Engine, Say], Awaitable[Calibrated]]


class Bench:
    """One run; whoever made the fleet stops it."""

    def __init__(
        self,
        plan: Plan,
        drafts: Drafts,
        fleet: Fleet,
        calibrate: Calibrate,
        records: Records,
        step: Callable[[str, float], None],
    ) -> None:
        self._plan = plan
        self._drafts = drafts
        self._fleet = fleet
        self._calibrate = calibrate
        self._records = records
        self._step = step

    async def run(self) -> None:
        """Measure what is not measured yet.  Raises BenchError."""
        found = self._records.found
        wanted = [one for one in self._plan.methods if not _is_whole(self._plan, found, one)]
        for method in (one for one in wanted if not self._drafts.has(one)):
            self._records.left_out(LeftOut(method, NO_HEAD))
        runnable = [one for one in wanted if self._drafts.has(one)]
        if not runnable:
            return
        self._step("starting two plain engines", START_S)
        await self._fleet.begin()
        for method in runnable:
            await self._method(method)

    async def _method(self, method: Method) -> None:
        self._step(f"{method.in_words}: starting two speculative engines", START_S)
        try:
            await self._fleet.use(method, self._drafts)
        except BenchError as error:
            self._records.left_out(LeftOut(method, str(error)))
            self._step(f"{method.in_words} is left out: {error}", 0.0)
            return
        if method not in self._records.found.calibrations:
            self._step(f"{method.in_words}: calibration", CALIBRATION_S)
            speculative, plain = self._fleet.speculative[0], self._fleet.plain[1]
            made = await self._calibrate(
                method, LONGEST[method], speculative, plain, lambda text: self._step(f"  {text}", 0.0)
            )
            self._records.calibrated(Calibration(method, _now(), made))
        calibrated = self._records.found.calibrations[method].found
        for one in calibrated.predicted:
            words = f"{1000 * one.tpot_s:.0f} ms: {one.answer}, margin {one.margin:.2f}"
            self._step(f"{method.in_words}: predicted at {words}", 0.0)
        for index in range(self._plan.rounds):
            for condition in order(self._plan.conditions, index):
                if not self._records.found.has(method, index, condition):
                    await self._block(method, index, condition, calibrated)

    async def _block(self, method: Method, index: int, condition: Condition, found: Calibrated) -> None:
        if (twin := self._records.found.block(method, index, _twin(condition, found))) is not None:
            self._records.measured(replace(twin, condition=condition))
            return
        name = f"{method}.{condition.name}.{index + 1}"
        self._step(
            f"{method.in_words}, round {index + 1} of {self._plan.rounds}: {condition.name}",
            _block_s(self._plan),
        )
        engines = await self._fleet.lay(condition.configuration, found)
        router = _router(condition, index, found, engines)
        urls = [one.url for one in engines]
        models = [one.capabilities.models[0] for one in engines]
        sent = await run_load(urls, models, router, self._plan.window, index, name)
        self._records.measured(Block(method, index, condition, self._plan.window, sent))


def _twin(condition: Condition, found: Calibrated) -> Condition | None:
    """The condition that is the same by another name: a K table that never changes K is a fixed K."""
    names = (Configuration.ONE_POOL_TABLE, Configuration.ALL_SPECULATIVE)
    if condition.configuration not in names:
        return None
    other = names[1 - names.index(condition.configuration)]
    same = all(
        lengths_of(other, slot, found) == lengths_of(condition.configuration, slot, found) for slot in (0, 1)
    )
    return replace(condition, configuration=other) if same else None


def _router(condition: Condition, index: int, found: Calibrated, engines: tuple[Engine, ...]) -> Router:
    seed = slot_seed(index, condition.name)
    configuration, in_force_s = condition.configuration, condition.in_force_s
    if in_force_s is None:
        return LeastLoaded(seed)
    capabilities = [one.capabilities for one in engines]
    return Ours(
        slots(configuration, found, in_force_s),
        capabilities,
        rules_of(configuration, found, in_force_s),
        seed,
    )


def expected_s(plan: Plan, found: Found) -> float:
    """How long what is left of a run takes, about."""
    left = [one for one in plan.methods if not _is_whole(plan, found, one)]
    blocks = sum(
        not found.has(method, index, condition)
        for method in left
        for index in range(plan.rounds)
        for condition in plan.conditions
    )
    calibrations = sum(one not in found.calibrations for one in left)
    starts = START_S * (len(left) + 1) if left else 0.0
    return starts + CALIBRATION_S * calibrations + blocks * _block_s(plan)


def _block_s(plan: Plan) -> float:
    return plan.window.end_s + FINISH_S


def _is_whole(plan: Plan, found: Found, method: Method) -> bool:
    return method in found.calibrations and all(
        found.has(method, index, condition) for index in range(plan.rounds) for condition in plan.conditions
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
