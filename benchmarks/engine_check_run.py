"""The measurement of `benchmarks.engine_check`: one speculative and one plain engine, round after round."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from app.bench.batches import Batches
from app.bench.client import prompt_tokens
from app.bench.duration import START_S
from app.bench.engine_process import BenchEngineError, EngineProcess
from app.bench.engine_settings import cores, for_bench
from app.bench.found import Found
from app.bench.made import facts_of, fingerprint
from app.bench.measure import Measuring
from app.bench.plan import Pair
from app.bench.prefills import Prefills
from app.bench.progress import Showing
from app.bench.prompts import Prompt, built_in
from app.bench.store import write_measurement
from autoscaling.profiling.measured import Measurement
from autoscaling.types import Role
from benchmarks.engine_check_plan import KINDS, Call, Plan, calls, expected_s, nearest
from benchmarks.errors import BenchError
from deployments.config import DEFAULT_SPECULATION, EngineSettings, PoolSettings

# Of each engine: all prompts of all lengths stay in its prefix cache, beside the largest batch.
KV_BYTES: Final = 2 << 30
WARM_S: Final = 60.0  # until every prompt is in both caches

Keep = Callable[[Measurement], None]
Engines = Mapping[Role, EngineProcess]


def pools() -> dict[Role, PoolSettings]:
    """Both engines as `twinpool serve` would start them, but for their memory."""
    drafts = {Role.SPECULATIVE: DEFAULT_SPECULATION}
    return {
        role: PoolSettings(
            role=role,
            engine=EngineSettings(kv_cache_memory_bytes=KV_BYTES, speculative_config=drafts.get(role)),
            cores_per_replica=1,
        )
        for role in Role
    }


def missing(plan: Plan, kept: Measurement | None) -> list[int]:
    """The rounds that are not measured yet; raises BenchError for a measurement of another plan."""
    if kept is None:
        return list(range(plan.rounds))
    wanted = {call.pair for call in calls(plan, 0)}
    for round_ in {run.round for run in kept.runs}:
        here = {
            Pair(run.cell.sequences, run.cell.workload, run.cell.draft_length)
            for run in kept.runs
            if run.round == round_ and run.cell.engine is Role.SPECULATIVE
        }
        if here != wanted:
            raise BenchError(
                f"round {round_ + 1} of what was kept is of another plan: begin anew without --resume, or "
                "give the options of that run"
            )
    return [round_ for round_ in range(plan.rounds) if all(run.round != round_ for run in kept.runs)]


async def measure(plan: Plan, kept: Measurement | None, folder: Path, showing: Showing) -> Measurement:
    """Measure the rounds that are missing, one or more; each is in `folder` once it is whole.

    Raises BenchError.
    """
    todo = missing(plan, kept)
    showing.expect(len(Role) * START_S + WARM_S)
    showing.expect(sum(expected_s(call, plan) for round_ in todo for call in calls(plan, round_)))
    running: dict[Role, EngineProcess] = {}
    try:
        for place, (role, pool) in enumerate(pools().items()):
            showing.say(f"starting the {role} engine")
            live = role is Role.SPECULATIVE
            settings = for_bench(pool, plan.grid, max(plan.lengths), live=live)
            log = folder / f"engine-{role}.log"
            running[role] = await EngineProcess.start(settings, cores(settings, place), showing.note, log)
            showing.started(START_S)
        if not running[Role.SPECULATIVE].capabilities.draft_length_adjustable:
            raise BenchError("the draft length of the speculative engine is not adjustable here")
        prompts = await chosen(plan, running[Role.PLAIN])
        return await rounds(plan, running, prompts, kept, lambda found: _write(folder, found), showing, todo)
    except BenchEngineError as error:
        raise BenchError(str(error)) from error
    finally:
        for engine in running.values():
            await engine.stop()


async def chosen(plan: Plan, engine: EngineProcess) -> list[Prompt]:
    """The prompts of every length, as often as the largest batch needs them.  Raises BenchError."""
    model = engine.capabilities.models[0]
    found: list[Prompt] = []
    for name in plan.kinds:
        kind = KINDS[name]
        counted = []
        for prompt in built_in([kind.workload], kind.contexts):
            count = await prompt_tokens(engine, model, prompt.body["messages"])
            if count is None:
                raise BenchError(f"the {engine.name} engine does not count the tokens of a prompt")
            counted.append((count, prompt))
        found += repeated(name, nearest(counted, kind.tokens), max(plan.batches))
    return found


def repeated(name: str, prompts: Sequence[Prompt], most: int) -> list[Prompt]:
    """The prompts under another kind's name, again and again until they fill a batch of `most`."""
    times = -(-most // len(prompts))
    return [
        replace(prompt, id=f"{name}-{time_}-{prompt.id}", workload=name)
        for time_ in range(times)
        for prompt in prompts
    ]


async def rounds(
    plan: Plan,
    engines: Engines,
    prompts: Sequence[Prompt],
    kept: Measurement | None,
    keep: Keep,
    showing: Showing,
    todo: Sequence[int],
) -> Measurement:
    """Warm up, measure the rounds to do, and hand over what there is after each."""
    one = Measuring(engines, prompts, plan.grid, showing)
    showing.say("warming up: every prompt once")
    await one.warm_up()
    for name in plan.kinds:
        await one.pair(Pair(max(plan.batches), name, max(plan.lengths)), 0)
    one.found.runs.clear()
    showing.done(WARM_S)
    model = engines[Role.PLAIN].capabilities.models[0]
    batches = Batches(model, plan.answer_tokens, one.found.errors, greedy=True)
    prefills = Prefills(engines, batches, plan.grid.prefill_tokens)
    made, began = kept, time.monotonic()
    for round_ in todo:
        for call in calls(plan, round_):
            showing.say(f"round {round_ + 1} of {plan.rounds}: {_words(call)}")
            before = len(one.found.runs)
            await one.pair(call.pair, call.part)
            # The bench numbers its runs by the prompts that they had.
            one.found.runs[before:] = [replace(run, round=round_) for run in one.found.runs[before:]]
            showing.done(expected_s(call, plan))
        one.found.prefills += await prefills.measure(prompts, round_)
        made = _measurement(plan, engines, one.found, kept, time.monotonic() - began)
        keep(made)
    assert made is not None  # there is a round to do
    return made


def _measurement(
    plan: Plan, engines: Engines, found: Found, kept: Measurement | None, took_s: float
) -> Measurement:
    known = {role: engine.capabilities for role, engine in engines.items()}
    failed = tuple(f"{times} answers failed: {words}" for words, times in found.errors.items())
    return Measurement(
        made_at=datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        took_s=round(took_s + (0.0 if kept is None else kept.took_s), 1),
        quick=plan.quick,
        synthetic_acceptance=False,
        fingerprint=fingerprint(known[Role.SPECULATIVE], max(plan.lengths)),
        engines=tuple(facts_of(role, one, engines[role].start_s) for role, one in known.items()),
        runs=(() if kept is None else kept.runs) + tuple(found.runs),
        prefills=(() if kept is None else kept.prefills) + tuple(found.prefills),
        cut=(() if kept is None else kept.cut) + tuple(found.cut) + failed,
    )


def _write(folder: Path, found: Measurement) -> None:
    write_measurement(folder, found)


def _words(call: Call) -> str:
    return f"{call.pair.sequences} x {call.pair.workload}, K = {call.pair.draft_length}"
