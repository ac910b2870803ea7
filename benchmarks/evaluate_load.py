"""The loads of `benchmarks.evaluate`: what callers want, and more batch work than the engines can do.

Reads the published traces where a folder holds them; elsewhere requests are made that are fitted to their
published statistics.  How much arrives is computed from the engines' step costs, and not tuned.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

import numpy as np

from app.simulation.arrival import Arrival
from app.simulation.engine_profile import EngineProfile
from app.simulation.traces.compose import cut, superpose
from app.simulation.traces.errors import TraceError
from app.simulation.traces.load import load_trace
from app.simulation.traces.renewal import Steady
from app.simulation.traces.statistics import statistics
from autoscaling.types import Tier
from benchmarks.errors import BenchError
from benchmarks.evaluate_plan import (
    BATCH_ANSWER,
    BATCH_EXCESS,
    BATCH_PROMPT,
    INTERACTIVE_REPLICAS,
    PLAIN_LIMIT,
    REPLICAS,
    SIZED_AT,
    TPOT_S,
    Traffic,
)
from benchmarks.evaluate_rates import full_per_s, in_time_per_s

PACE_SEED: Final = 1  # of the sample that rates are computed from: they are the same for every seed
WARM_HOURS: Final = 0.1  # of what is made, passed over: some ten bursts of a client


@dataclass(frozen=True, slots=True)
class Source:
    """Where the requests of a stream come from: a published file, or what stands in for it."""

    title: str
    workload: str
    files: tuple[str, ...] = ()  # of Azure's format, as published, and a shorter name for the same
    generated: str | None = None  # the kind that is made where there is no file
    even: tuple[int, int] = (0, 0)  # or prompt and answer tokens of requests that are all alike


CONVERSATION: Final = Source(
    "the conversations of the Azure LLM inference trace of 2023",
    "chat",
    ("AzureLLMInferenceTrace_conv.csv", "azure2023_conv.csv"),
    generated="conversation",
)
CODE: Final = Source(
    "the code requests of the Azure LLM inference trace of 2023",
    "code",
    ("AzureLLMInferenceTrace_code.csv", "azure2023_code.csv"),
    generated="code",
)
# All alike, as documents are: with a length of its own for each request a queue of them is judged 30 times
# as often, and the simulation of the mixed load takes four times as long.
LONG: Final = Source(
    "long prompts of the mean lengths of Mooncake's conversation trace", "chat", even=(12_035, 343)
)
DOCUMENTS: Final = Source(
    f"documents of {BATCH_PROMPT:,} prompt and {BATCH_ANSWER} answer tokens",
    "grounded",
    even=(BATCH_PROMPT, BATCH_ANSWER),
)


@dataclass(frozen=True, slots=True)
class Stream:
    """As many requests of a source as so many replicas can do."""

    source: Source
    tier: Tier
    replicas: float


@dataclass(frozen=True, slots=True)
class Load:
    """A load's requests, sorted by time, and a sentence on each of its streams."""

    arrivals: tuple[Arrival, ...]
    words: tuple[str, ...]


_CALLERS: Final = INTERACTIVE_REPLICAS
_EXCESS: Final = BATCH_EXCESS * REPLICAS
STREAMS: Final[Mapping[Traffic, tuple[Stream, ...]]] = MappingProxyType(
    {
        Traffic.CODE: (Stream(CODE, Tier.INTERACTIVE, _CALLERS), Stream(DOCUMENTS, Tier.BATCH, _EXCESS)),
        Traffic.CONVERSATION: (
            Stream(CONVERSATION, Tier.INTERACTIVE, _CALLERS),
            Stream(DOCUMENTS, Tier.BATCH, _EXCESS),
        ),
        Traffic.MIXED: (
            Stream(CODE, Tier.INTERACTIVE, _CALLERS / 2),
            Stream(CONVERSATION, Tier.INTERACTIVE, _CALLERS / 2),
            Stream(DOCUMENTS, Tier.BATCH, _EXCESS / 2),
            Stream(LONG, Tier.BATCH, _EXCESS / 2),
        ),
    }
)


def load_of(
    traffic: Traffic, engines: EngineProfile, seed: int, minutes: float, folder: Path | None = None
) -> Load:
    """The load of a kind for these engines; `folder` may hold published files.

    The same for the same arguments and files.  Raises BenchError.
    """
    try:
        found = [
            _made(stream, engines, 1000 * seed + place, 60.0 * minutes, folder)
            for place, stream in enumerate(STREAMS[traffic])
        ]
    except (TraceError, ValueError) as error:
        raise BenchError(f"the {traffic.value} load cannot be made: {error}") from error
    return Load(superpose([arrivals for arrivals, _ in found]), tuple(words for _, words in found))


def published(folder: Path | None) -> dict[str, str]:
    """The published files that loads are made of, wherever they lie: name -> SHA-256."""
    sources = {stream.source for streams in STREAMS.values() for stream in streams}
    paths = [path for source in sources if (path := _published(source, folder)) is not None]
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(paths)}


def _published(source: Source, folder: Path | None) -> Path | None:
    paths = [] if folder is None else [folder / name for name in source.files]
    return next((one for one in paths if one.is_file()), None)


def _made(
    stream: Stream, engines: EngineProfile, seed: int, until_s: float, folder: Path | None
) -> tuple[tuple[Arrival, ...], str]:
    """The requests of a stream, and a sentence on it."""
    source, tier = stream.source, stream.tier
    spec, is_published = _spec(source, tier, folder)
    if spec is None:
        prompt, answer = source.even
        per_s = _per_s(stream, engines, prompt, answer)
        times = Steady(per_s, 1.0).times(until_s, np.random.default_rng(seed)).tolist()
        arrivals = tuple(Arrival(round(at, 6), tier, source.workload, prompt, answer) for at in times)
        return arrivals, _words(stream, per_s, "at random")
    sample = statistics(load_trace(spec, PACE_SEED, _untold))
    if sample.rate is None or sample.duration_s < 0.99 * until_s:
        raise TraceError(
            f"{spec} is {sample.duration_s / 60:.0f} minutes long and {until_s / 60:g} are simulated: "
            "give a longer file"
        )
    per_s = _per_s(stream, engines, sample.prompt.mean, sample.answer.mean)
    copies = per_s / sample.rate
    # Copies of a file are moved round; what is made begins with every client silent.
    window = "" if is_published else f",from={WARM_HOURS:g},hours={until_s / 3600:.6f}"
    arrivals = cut(load_trace(f"{spec}{window},rate={copies:.4f}", seed, _untold), 0.0, until_s)
    origin = "from the published file" if is_published else "made to fit its published statistics"
    return arrivals, _words(stream, per_s, f"{copies:.1f} times as many as there, {origin}")


def _per_s(stream: Stream, engines: EngineProfile, prompt: float, answer: float) -> float:
    workload = stream.source.workload
    if stream.tier is Tier.INTERACTIVE:
        return stream.replicas * in_time_per_s(engines, workload, prompt, answer, SIZED_AT * TPOT_S)
    return stream.replicas * full_per_s(engines, workload, prompt, answer, PLAIN_LIMIT)


def _spec(source: Source, tier: Tier, folder: Path | None) -> tuple[str | None, bool]:
    """The trace's name, None for requests that are all alike; and whether it is a published file."""
    path = _published(source, folder)
    if path is not None:
        return f"azure:{path},tier={tier.value},workload={source.workload}", True
    if source.generated is None:
        return None, False
    return f"generated:{source.generated},tiers={tier.value}:1", False


def _words(stream: Stream, per_s: float, how: str) -> str:
    can = (
        "speculative replicas can do in time" if stream.tier is Tier.INTERACTIVE else "plain replicas can do"
    )
    return (
        f"{stream.tier.value.capitalize()}: {stream.source.title}, {per_s:.0f} a second ({how}), "
        f"as much as {stream.replicas:g} {can}."
    )


def _untold(_sentence: str) -> None:
    """What a file's reader leaves out is nothing for the page: these readers leave nothing out."""
