"""A trace by its name on a command line: where it comes from, and how it is changed.

It is written `SOURCE,KEY=VALUE,KEY=VALUE`, with as many keys as wanted:

- `azure:FILE`: the CSV file of the Azure LLM inference trace of 2023.
- `mooncake:FILE`: a JSONL file of Mooncake's traces.
- `records:DIR`: the folder that `twinpool serve --record DIR` writes.
- `generated:KIND`: made without data; `conversation`, `code`, `mixed` or `day`.

The keys, in the order in which they act:

- `tier`: `interactive`, `standard` or `batch` for all requests, of `azure` and `mooncake` only; without it
  they are interactive.
- `workload`: the kind of work, of `azure` and `mooncake` only.  Without it `mooncake` is `chat`, and `azure`
  is `code` or `chat` where the file's name has `code` or `conv` in it.
- `from`: hours that are left out at the beginning.
- `hours`: how many hours are kept, or made.  Without it a file is kept whole, and `generated` makes 1 hour,
  of `day` 24, behind `from`.
- `stretch`: every time is multiplied by it; 0.5 brings the same requests in half the time.
- `rate`: so many times the requests in the same time, see `compose.scale_rate` and `generated.generate`; what
  it multiplies is the file's own rate, and of `generated` the published one, `generated.BASE_RATE`.
- `tiers`: shares such as `interactive:0.5/batch:0.5`, given to the requests at random.

Examples: `azure:conv.csv,rate=4,tiers=interactive:0.6/batch:0.4` and `generated:day,rate=0.5`.  A path with a
comma cannot be written.  To superpose traces, load each and use `compose.superpose`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Final

import numpy as np
from numpy.random import Generator

from app.simulation.arrival import Arrival
from app.simulation.traces import compose
from app.simulation.traces.azure import read_azure
from app.simulation.traces.errors import TraceError
from app.simulation.traces.generated import BASE_RATE, HOURS, Kind, generate
from app.simulation.traces.mooncake import read_mooncake
from app.simulation.traces.options import COMMON, OF_FILES, Options, one_of, options_of
from app.simulation.traces.records import read_records
from autoscaling.types import Tier

DEFAULT_TIER: Final = Tier.INTERACTIVE
Trace = tuple[Arrival, ...]


class Source(StrEnum):
    """Where a trace comes from; the word before the colon."""

    AZURE = "azure"
    MOONCAKE = "mooncake"
    RECORDS = "records"
    GENERATED = "generated"


FILES: Final = (Source.AZURE, Source.MOONCAKE)  # whose requests have no tier
MOST_REQUESTS: Final = 20_000_000  # about 4 GB


def _to_stderr(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def load_trace(spec: str, seed: int, say: Callable[[str], None] = _to_stderr) -> Trace:
    """The trace that a text names, sorted by time; the same for the same text, files and seed.

    What had to be left out of it is told by `say`, a sentence each.  Raises TraceError, which names the part
    of the text, or the file and the line.
    """
    source, name, options, head = _parsed(spec)
    if source in FILES and options.tier is None and options.tiers is None:
        say(
            f"{head} says no tier, so every request is {DEFAULT_TIER}: tier=batch makes all of them batch, "
            "tiers=interactive:0.6/batch:0.4 some."
        )
    if (about := expected(spec)) is not None:
        _check_count(about, "rate or hours")
    shape, shares = np.random.default_rng(seed).spawn(2)
    if source is Source.GENERATED:
        trace = _generated(_kind(name), options, shape)
    else:
        trace = _window(_read(source, Path(name), options, say), options, head)
    if options.stretch is not None:
        trace = compose.stretch(trace, options.stretch)
    if options.rate is not None and source is not Source.GENERATED:
        _check_count(len(trace) * options.rate, "rate")
        trace = compose.scale_rate(trace, options.rate, shape)
    if options.tiers is not None:
        trace = compose.set_tiers(trace, options.tiers, shares)
    if not trace:
        raise TraceError(f"no request is left of the trace {spec!r}: keep more hours or a higher rate")
    return trace


def expected(spec: str) -> float | None:
    """About how many requests a trace that is made will have; None for one that is read.

    Raises TraceError like `load_trace`.
    """
    source, name, options, _ = _parsed(spec)
    if source is not Source.GENERATED:
        return None
    kind = _kind(name)
    hours = (HOURS[kind] if options.hours is None else options.hours) + (options.begin or 0.0)
    return BASE_RATE[kind] * hours * 3600 * (1.0 if options.rate is None else options.rate)


def _parsed(spec: str) -> tuple[Source, str, Options, str]:
    """Source, what of it, how it is changed, and the first two as they were written."""
    head, *parts = spec.split(",")
    word, colon, name = head.partition(":")
    if not colon or not name:
        raise TraceError(
            f"the trace {spec!r} has no {'source' if not colon else 'name behind its colon'}: "
            "write azure:FILE, mooncake:FILE, records:DIR or generated:KIND"
        )
    source = one_of(Source, word, "the source of a trace")
    known = COMMON | OF_FILES if source in FILES else COMMON
    return source, name, options_of(parts, known, f"{source}:"), head


def _kind(name: str) -> Kind:
    return one_of(Kind, name, "what is generated")


def _check_count(requests: float, what: str) -> None:
    if requests > MOST_REQUESTS:
        raise TraceError(
            f"about {requests:,.0f} requests are asked for, and {MOST_REQUESTS:,} are held at most: lower "
            f"{what}"
        )


def base_rate(spec: str) -> float | None:
    """Requests a second that a rate of 1 brings of a generated trace; None for one that is read.

    Raises TraceError like `load_trace`.
    """
    source, name, _, _ = _parsed(spec)
    return BASE_RATE[_kind(name)] if source is Source.GENERATED else None


def _read(source: Source, path: Path, options: Options, say: Callable[[str], None]) -> Trace:
    if source is Source.RECORDS:
        recorded = read_records(path)
        for sentence in recorded.sentences():
            say(f"{path}: of its requests, {sentence}")
        return recorded.arrivals
    tier = options.tier or DEFAULT_TIER
    if source is Source.MOONCAKE:
        return read_mooncake(path, tier=tier, workload=options.workload or "chat")
    return read_azure(path, tier=tier, workload=options.workload or _workload_of(path))


_WORKLOADS: Final[Mapping[str, str]] = {"code": "code", "conv": "chat"}


def _workload_of(path: Path) -> str:
    found = {workload for part, workload in _WORKLOADS.items() if part in path.name.lower()}
    if len(found) != 1:
        raise TraceError(
            f"{path}: its name does not say whether its requests are code or conversation: "
            "add workload=code or workload=chat"
        )
    return found.pop()


def _generated(kind: Kind, options: Options, rng: Generator) -> Trace:
    hours = HOURS[kind] if options.hours is None else options.hours
    before = options.begin or 0.0
    made = generate(kind, rng, hours=before + hours, rate=1.0 if options.rate is None else options.rate)
    return compose.cut(made, before * 3600, (before + hours) * 3600) if before else made


def _window(trace: Trace, options: Options, head: str) -> Trace:
    """The part of what was read that is wanted.  Raises TraceError when it is not that long."""
    from_s = (options.begin or 0.0) * 3600
    until_s = float("inf") if options.hours is None else from_s + options.hours * 3600
    last_s = trace[-1].at_s
    if from_s > last_s or last_s < until_s < float("inf"):
        wanted = "from" if options.hours is None else "from and hours" if options.begin else "hours"
        raise TraceError(
            f"{head} is {last_s / 3600:.3f} hours long, which is less than {wanted} ask for: ask for less"
        )
    return compose.cut(trace, from_s, until_s) if options.begin or options.hours else trace
