"""One measurement from its start to its end: engines up, rounds, a move, engines down."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from app.bench.asked import Asked, groups
from app.bench.duration import START_S, rounds_s, warm_up_s
from app.bench.engine_process import BenchEngineError, EngineProcess
from app.bench.engine_settings import cores, for_bench, synthetic_acceptance
from app.bench.found import join
from app.bench.made import Made
from app.bench.measure import Measuring
from app.bench.others import is_busy
from app.bench.plan import ALWAYS_ROUNDS, Plan
from app.bench.progress import Showing
from autoscaling.profiling.measured import Measurement
from autoscaling.types import Role

USUAL: Final = f"the embedded model takes about {START_S:.0f} s"
Keep = Callable[[Measurement], object]


async def measured(asked: Asked, showing: Showing, keep: Keep | None = None) -> Measurement:
    """Measure; raises BenchEngineError, and leaves no process behind in any case.

    `keep` gets what has been found after the second round and after each that follows, so that hours are not
    lost when an engine dies.
    """
    made = Made(asked, time.monotonic())
    starts = groups(asked)
    _expect(asked, showing)
    plain: EngineProcess | None = None
    try:
        for lengths in starts:
            showing.wait("starting the engines", USUAL)
            speculative, plain = await _start(asked, lengths, plain, showing)
            try:
                showing.started(START_S)
                _check(asked, lengths, speculative)
                await _rounds(made, lengths, speculative, plain, showing, keep)
            finally:
                stop_s = await speculative.stop()
            made.facts[Role.SPECULATIVE] = replace(made.facts[Role.SPECULATIVE], stop_s=stop_s)
        assert plain is not None  # there is a group
        showing.wait("a move: one engine stops, another starts", USUAL)
        made.facts[Role.PLAIN] = replace(made.facts[Role.PLAIN], start_s=None, stop_s=await plain.stop())
        try:
            plain = await _alone(asked)
            made.facts[Role.PLAIN] = replace(made.facts[Role.PLAIN], start_s=plain.start_s)
        except BenchEngineError as error:
            made.found.cut.append(f"how long an engine takes to start alone: {error}")
        showing.started(START_S)
    finally:
        if plain is not None:
            await plain.stop()
    found = made.found
    if not any(run.answers for run in found.runs):
        words = ", ".join(f"{text} ({times})" for text, times in found.errors.items()) or "none was sent"
        raise BenchEngineError(f"no answer came whole: {words}")
    return made.measurement()


async def _rounds(
    made: Made,
    lengths: Sequence[int],
    speculative: EngineProcess,
    plain: EngineProcess,
    showing: Showing,
    keep: Keep | None,
) -> None:
    """All rounds with engines that have these draft lengths."""
    asked, engines = made.asked, {Role.SPECULATIVE: speculative, Role.PLAIN: plain}
    one = Measuring(
        engines,
        asked.prompts,
        _share(asked),
        showing,
        greedy=synthetic_acceptance(asked.speculative),
        told_busy=any(is_busy(use.cores) for use in made.found.others),
        documents=len(made.found.prefills),
    )
    for role, engine in engines.items():
        made.runs(role, engine)
    showing.say("warming up: each kind of prompts once")
    await one.warm_up()
    showing.started(warm_up_s(asked.plan))
    try:
        await one.run(lengths, None if keep is None else lambda: keep(made.unfinished(one.found)))
    except asyncio.CancelledError:
        showing.note("stopping the engines")
        raise
    join(made.found, one.found)


def _share(asked: Asked) -> Plan:
    """The plan with the part of the time that one of several starts has for its rounds."""
    plan = asked.plan
    return plan if plan.budget_s is None else replace(plan, budget_s=plan.budget_s / len(groups(asked)))


async def _alone(asked: Asked) -> EngineProcess:
    """The receiver of a move, which starts alone; at the beginning both started together."""
    log = asked.logs / "engine-plain.log"
    return await EngineProcess.start(asked.plain, cores(asked.plain, 1), _quiet, log)


def _check(asked: Asked, lengths: Sequence[int], speculative: EngineProcess) -> None:
    """Raises BenchEngineError for an engine that would run every K as its largest one."""
    if asked.live and len(lengths) > 1 and not speculative.capabilities.draft_length_adjustable:
        raise BenchEngineError(
            "the speculative engine cannot change K while it runs, so every K would be measured as "
            f"{max(lengths)}: measure with --no-live-k, which starts an engine for each K"
        )


def _expect(asked: Asked, showing: Showing) -> None:
    """Tell how long everything is expected to take, and how long at most."""
    plan, starts = asked.plan, groups(asked)
    showing.expect(
        sum(rounds_s(plan, lengths) for lengths in starts),
        START_S * (len(starts) + 1) + warm_up_s(plan) * len(starts),
    )
    if plan.budget_s is not None:
        always = sum(rounds_s(plan, lengths, ALWAYS_ROUNDS) for lengths in starts)
        showing.within(plan.budget_s, always)


async def _start(
    asked: Asked, lengths: Sequence[int], plain: EngineProcess | None, showing: Showing
) -> tuple[EngineProcess, EngineProcess]:
    """The speculative engine with these draft lengths, and the plain one unless it runs already."""
    pool = for_bench(asked.speculative, asked.plan, max(lengths), live=asked.live)
    starting = [
        EngineProcess.start(pool, cores(pool, 0), showing.note, asked.logs / "engine-speculative.log")
    ]
    if plain is None:
        other = for_bench(asked.plain, asked.plan, 0, live=False)
        starting.append(
            EngineProcess.start(other, cores(other, 1), showing.note, asked.logs / "engine-plain.log")
        )
    tasks = [asyncio.create_task(one) for one in starting]
    try:
        await asyncio.wait(tasks)
        engines = [task.result() for task in tasks]
    except BaseException:  # a cancel too: one may serve already while the other still starts
        await _give_up(tasks)
        raise
    return engines[0], plain or engines[1]


async def _give_up(tasks: Sequence[asyncio.Task[EngineProcess]]) -> None:
    """End every engine that has started, and every start."""
    for task in tasks:
        task.cancel()
    for one in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(one, EngineProcess):
            await one.stop()


def _quiet(_text: str) -> None:
    return
