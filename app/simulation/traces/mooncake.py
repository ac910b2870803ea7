"""Reader of Mooncake's traces: one JSON object a line, with the hashes of the prompt's blocks.

The trace names no conversation, but each hash id stands for one block of 512 tokens *and all before it*, so
two prompts that share an id share everything up to there.  The rule: a request continues an earlier one when
its prompt begins with all whole blocks of the earlier prompt (every id but the last, whose block may be
part full), and these go beyond what all requests of the file begin with (a common preamble).  Of several the
one with the longest common beginning counts, and of equally long ones the latest.  This is what a next turn
looks like, which repeats the turn before and adds to it.  It cannot tell a next turn from the same question
asked again or another question on the same long document; for a cache these are alike.  Conversations whose
first prompt has no whole block of its own are not recognised, and in a file with several preambles the short
requests of each look like one conversation.  Only requests of which another one is seen
in the file get a conversation's id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from app.simulation.arrival import Arrival
from app.simulation.traces.errors import TraceError
from app.simulation.traces.text import read_text
from autoscaling.types import Tier

_Length = Annotated[int, msgspec.Meta(ge=1)]


class _Line(msgspec.Struct):
    timestamp: Annotated[float, msgspec.Meta(ge=0)]  # milliseconds
    input_length: _Length
    output_length: _Length
    hash_ids: list[int]


_decoder = msgspec.json.Decoder(_Line)


def read_mooncake(path: Path, *, tier: Tier, workload: str) -> tuple[Arrival, ...]:
    """Every request of the file, sorted by time; `at_s` is 0 for the earliest.

    The file says neither tier nor kind of work, so the caller does.  Raises TraceError for the first line
    that cannot be used; empty lines hold nothing and are passed over.
    """
    lines: list[_Line] = []
    for number, text in enumerate(read_text(path).split("\n"), 1):
        if not text.strip():
            continue
        try:
            lines.append(_decoder.decode(text))
        except (msgspec.DecodeError, RecursionError) as error:
            raise TraceError(
                f"{path}:{number}: {error}: write one object a line with timestamp (milliseconds), "
                "input_length, output_length (tokens, at least 1) and hash_ids, or remove the line"
            ) from None
    if not lines:
        raise TraceError(f"{path}: there is no request in it: name a file that has some")
    lines.sort(key=lambda line: line.timestamp)
    first = lines[0].timestamp
    return tuple(
        Arrival(
            round((line.timestamp - first) / 1000, 6),
            tier,
            workload,
            line.input_length,
            line.output_length,
            conversation,
        )
        for line, conversation in zip(lines, conversations([line.hash_ids for line in lines]), strict=True)
    )


def conversations(prompts: Sequence[Sequence[int]]) -> tuple[str | None, ...]:
    """The conversation of each prompt, given as its blocks' ids; the rule stands at the top.

    A conversation is named after its first request, counted from 0 in this order.
    """
    ordered = [list(blocks) for blocks in prompts]
    shortest = min(map(len, ordered), default=0)
    columns = enumerate(zip(*ordered, strict=False))
    preamble = next((place for place, blocks in columns if len(set(blocks)) > 1), shortest)
    last_whole: dict[int, int] = {}  # the id of a prompt's last whole block: its conversation
    found: list[int] = []
    for number, blocks in enumerate(ordered):
        known = (last_whole[block] for block in reversed(blocks) if block in last_whole)
        found.append(next(known, number))
        if len(blocks) - 1 > preamble:
            last_whole[blocks[-2]] = found[-1]
    turns = Counter(found)
    return tuple(f"mooncake-{one}" if turns[one] > 1 else None for one in found)
