"""One measurement from its start to its end: engines up, rounds, a move, engines down."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from app.bench.asked import Asked, groups
from app.bench.engine_process import BenchEngineError, EngineProcess
from app.bench.engine_settings import cores, for_bench, synthetic_acceptance
from app.bench.made import Made, join
from app.bench.measure import Measuring
from app.bench.plan import Pair, Plan, expected_s, pairs
from app.bench.progress import Showing
from autoscaling.profiling.measured import Measurement
from autoscaling.types import Role

START_S: Final = 45.0  # expected, for the time that is shown
Keep = Callable[[Measurement], object]


async def measured(asked: Asked, showing: Showing, keep: Keep | None = None) -> Measurement:
    """Measure; raises BenchEngineError, and leaves no process behind in any case.

    `keep` gets what has been found after each round from the second one on, so that hours are not lost when
    an engine dies.
    """
    made = Made(asked, time.monotonic())
    starts = groups(asked)
    showing.expect(sum(START_S + _rounds_s(asked.plan, lengths) for lengths in starts) + START_S)
    plain: EngineProcess | None = None
    try:
        for lengths in starts:
            showing.say("starting the engines")
            speculative, plain = await _start(asked, lengths, plain, showing)
            try:
                showing.started(START_S)
                _check(asked, lengths, speculative)
                await _rounds(made, lengths, speculative, plain, showing, keep)
            finally:
                stop_s = await speculative.stop()
            made.facts[Role.SPECULATIVE] = replace(made.facts[Role.SPECULATIVE], stop_s=stop_s)
        assert plain is not None  # there is a group
        showing.say("a move: one engine stops, another starts")
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
        asked.plan,
        showing,
        greedy=synthetic_acceptance(asked.speculative),
        documents=len(made.found.prefills),
    )
    for role, engine in engines.items():
        made.runs(role, engine)
    await one.warm_up()
    await one.run(lengths, None if keep is None else lambda: keep(made.unfinished(one.found)))
    join(made.found, one.found)


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


def _rounds_s(plan: Plan, lengths: Sequence[int]) -> float:
    found: list[Pair] = [pair for round_ in range(plan.rounds) for pair in pairs(plan, round_, lengths)]
    return sum(expected_s(pair, plan) for pair in found)


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
    started = await asyncio.gather(*starting, return_exceptions=True)
    engines = [one for one in started if isinstance(one, EngineProcess)]
    errors = [one for one in started if isinstance(one, BaseException)]
    if errors:
        await asyncio.gather(*(engine.stop() for engine in engines))
        raise errors[0]
    return engines[0], plain or engines[1]


def _quiet(_text: str) -> None:
    return
