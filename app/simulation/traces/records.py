"""Reader of our own request records, the JSON lines that `twinpool serve --record DIR` writes.

A request becomes an arrival at its own time with the tier that was used, its class, its conversation's key,
and the tokens that the engine counted.  Lengths are known only of what an engine ran, so requests that were
refused, or whose engine's record never came, are left out and counted: where they are many, the trace asks
for less than the callers did.  An answer that broke off has the tokens it had until then.  A request of
several sequences becomes as many arrivals at one time, which share its prompt and answer tokens evenly: the
records say only the sums, so the contexts of several answers to one prompt come out short.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec

from app.simulation.arrival import Arrival
from app.simulation.traces.errors import TraceError
from autoscaling.request_line import Outcome
from autoscaling.types import Tier
from deployments.kept_files import StoreError, UnknownSchemaError
from deployments.record_reader import path_of, read

REQUESTS: Final = "requests"  # the name of the files
MOST_TOKENS: Final = 100_000_000  # of one request; more is a damaged line
MOST_SEQUENCES: Final = 1024  # likewise; the door lets 128 in
_Count = Annotated[int, msgspec.Meta(ge=0, le=MOST_TOKENS)]


class _Features(msgspec.Struct):
    conversation_key: str | None = None


class _Request(msgspec.Struct):
    wall: Annotated[float, msgspec.Meta(ge=0)]
    tier: Tier
    workload: str
    outcome: Outcome
    sequences: Annotated[int, msgspec.Meta(ge=1, le=MOST_SEQUENCES)]
    prompt_tokens: _Count | None
    generated_tokens: _Count | None
    features: _Features


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a folder of records gave; in words for people."""

    arrivals: tuple[Arrival, ...]
    began: float  # Unix seconds at which `at_s` is 0
    left_out: dict[str, int]  # why: how many requests
    notes: tuple[str, ...]  # what is not as it was

    def sentences(self) -> tuple[str, ...]:
        """All that a reader of the trace should be told, the most frequent first."""
        left = sorted(self.left_out.items(), key=lambda item: -item[1])
        return (*(f"{count} left out: {why}" for why, count in left), *self.notes)


def read_records(folder: Path) -> Recorded:
    """Every kept request, over the rotated files, sorted by its arrival; `at_s` is 0 for the first used.

    A service may write meanwhile.  Raises TraceError for a folder without records, one that cannot be read,
    records of another version, and when no request can be used.
    """
    found: list[tuple[float, _Request, int, int]] = []
    left: Counter[str] = Counter()
    cut = several = 0
    for request in _requests(folder, left):
        if request.prompt_tokens is None or request.generated_tokens is None:
            left[_why_unmeasured(request.outcome)] += 1
        elif not request.prompt_tokens or not request.generated_tokens:
            left["the engine generated no token"] += 1
        else:
            cut += request.outcome is not Outcome.OK
            several += request.sequences > 1
            found.append((request.wall, request, request.prompt_tokens, request.generated_tokens))
    if not found:
        reasons = "".join(f"; {count}: {why}" for why, count in left.items())
        raise TraceError(
            f"{path_of(folder, REQUESTS)}: no request can be used{reasons}: record a service that answers"
        )
    found.sort(key=lambda one: one[0])
    first = found[0][0]
    notes = [f"{cut} broke off: the answers end where they did"] if cut else []
    if several:
        notes.append(f"{several} of several sequences: as many arrivals, with even shares")
    return Recorded(
        arrivals=tuple(
            arrival
            for wall, request, prompt, answer in found
            for arrival in _arrivals(round(wall - first, 6), request, prompt, answer)
        ),
        began=first,
        left_out=dict(left),
        notes=tuple(notes),
    )


def _requests(folder: Path, left: Counter[str]) -> Iterator[_Request]:
    """The requests that are understood; the others are counted, as are numbers that are missing."""
    seqs: list[int] = []
    try:
        for record in read(folder, REQUESTS):
            seqs.append(record["seq"])
            request = _request(record)
            if request is None:
                left["the record is damaged, or of another version: read it with the one that wrote it"] += 1
            else:
                yield request
    except (StoreError, UnknownSchemaError) as error:
        raise TraceError(str(error)) from error
    if not seqs:
        raise TraceError(
            f"{path_of(folder, REQUESTS)} is not there or has no record: "
            "name the folder of twinpool serve --record DIR"
        )
    # Folders that were put together repeat numbers, or have them in another order.
    if missing := max(seqs) - min(seqs) + 1 - len(set(seqs)):
        left["the line is damaged or gone, as a gap in the numbers shows"] += missing


def _request(record: dict[str, Any]) -> _Request | None:
    try:
        return msgspec.convert(record.get("request"), _Request)
    except msgspec.ValidationError:
        return None


def _why_unmeasured(outcome: Outcome) -> str:
    if outcome in (Outcome.OK, Outcome.FAILED, Outcome.CANCELLED):
        return f"ended as {outcome}, and the engine's record never came"
    return f"ended as {outcome}, and no engine ran it"


def _arrivals(at_s: float, request: _Request, prompt: int, answer: int) -> Iterator[Arrival]:
    """One arrival for each sequence that had tokens; shares differ by one token at most."""
    sequences = min(request.sequences, prompt, answer)
    for number in range(sequences):
        yield Arrival(
            at_s,
            request.tier,
            request.workload,
            (prompt + number) // sequences,
            (answer + number) // sequences,
            request.features.conversation_key,
        )
