"""Both engines side by side, on the simulated engine."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace

from app.bench.engine_process import EngineProcess
from app.bench.measure import Measuring
from app.bench.plan import Plan
from app.bench.prompts import for_workloads
from autoscaling.types import Role
from deployments.local_config import default_settings

PLAN = Plan(batches=(2,), hold_out=(), lengths=(4,), workloads=("chat",), rounds=2, prefill_tokens=(128,))


class Told:
    """What a measurement says, in place of a screen."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.parts: list[float] = []
        self.dropped: list[float] = []

    def say(self, _text: str) -> None:
        pass

    def note(self, text: str) -> None:
        self.notes.append(text)

    def done(self, expected_s: float) -> None:
        self.parts.append(expected_s)

    def drop(self, expected_s: float) -> None:
        self.dropped.append(expected_s)


async def started(tmp_path) -> EngineProcess:
    pool = default_settings(engine="simulated").speculative
    return await EngineProcess.start(pool, (), lambda _text: None, tmp_path / "engine.log")


async def test_an_engine_that_goes_on_pauses_after_a_batch_that_failed(tmp_path):
    """Without it a dead engine would be asked thousands of times, while the other one is timed."""
    engine = await started(tmp_path)
    one = Measuring(dict.fromkeys(Role, engine), for_workloads(("chat",)), PLAN, Told())
    await engine.stop()
    dead = await started(tmp_path)
    dead._process.kill()
    await dead._process.wait()
    going_on = asyncio.create_task(one._go_on(dead, for_workloads(("chat",))[:2]))
    await asyncio.sleep(0.5)
    going_on.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await going_on
    await dead.stop()

    assert 2 == sum(one.found.errors.values())


async def test_what_others_use_is_measured_in_every_round(tmp_path):
    """Every part is counted as done: a cell and the documents of each round."""
    engine, told = await started(tmp_path), Told()
    one = Measuring(dict.fromkeys(Role, engine), for_workloads(("chat",)), PLAN, told)
    try:
        await one.warm_up()
        await one.run((4,))
    finally:
        await engine.stop()

    assert 2 == len(one.found.others)
    assert one.found.others_known
    assert all(use.seconds > 0 for use in one.found.others)
    assert 4 == len(told.parts)
    assert [] == told.dropped


async def test_a_batch_without_room_is_a_note_and_no_part(tmp_path):
    """It is told once, and not counted as done in no time."""
    engine, told = await started(tmp_path), Told()
    plan = replace(PLAN, batches=(2, 1000), prefill_tokens=())
    one = Measuring(dict.fromkeys(Role, engine), for_workloads(("chat",)), plan, told)
    try:
        await one.warm_up()
        await one.run((4,))
    finally:
        await engine.stop()

    left_out = [words for words in told.notes if words.startswith("left out")]
    assert 1 == len(left_out)
    assert left_out[0].startswith("left out: chat at 1000 sequences: needs ")
    assert 2 == len(told.dropped)
    assert {2} == {run.cell.sequences for run in one.found.runs}
