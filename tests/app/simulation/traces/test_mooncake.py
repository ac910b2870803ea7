"""The reader of Mooncake's traces, and its rule of conversations."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from app.simulation.arrival import Arrival
from app.simulation.traces.errors import TraceError
from app.simulation.traces.mooncake import conversations, read_mooncake
from autoscaling.types import Tier
from tests.app.simulation.traces.made import DATA, needs_data

GOOD = '{"timestamp": 0, "input_length": 5, "output_length": 2, "hash_ids": [0]}'


def test_lines_become_arrivals_sorted_from_the_earliest(tmp_path: Path) -> None:
    """Times are milliseconds; a next turn shares the conversation of the turn before."""
    path = tmp_path / "trace.jsonl"
    path.write_text(
        '{"timestamp": 9000, "input_length": 1800, "output_length": 3, "hash_ids": [0, 1, 2, 3]}\n\n'
        '{"timestamp": 1500, "input_length": 1300, "output_length": 500, "hash_ids": [0, 1, 9]}\n'
        '{"timestamp": 3000, "input_length": 700, "output_length": 7, "hash_ids": [0, 5]}\n'
    )
    assert (
        Arrival(0.0, Tier.STANDARD, "chat", 1300, 500, "mooncake-0"),
        Arrival(1.5, Tier.STANDARD, "chat", 700, 7, None),
        Arrival(7.5, Tier.STANDARD, "chat", 1800, 3, "mooncake-0"),
    ) == read_mooncake(path, tier=Tier.STANDARD, workload="chat")


@pytest.mark.parametrize(
    ("prompts", "expected"),
    [
        # Block 0 begins all of them, so it makes no conversation.
        ([[0, 1, 2], [0, 3, 4], [0, 5, 6]], (None, None, None)),
        # The third and the fourth repeat block 1; the last block of a prompt may be part full.
        ([[0, 1, 2], [0, 3, 4], [0, 1, 7], [0, 1, 7, 8]], ("mooncake-0", None, "mooncake-0", "mooncake-0")),
        # The fourth does not begin with all whole blocks of the third, and does with those of the first.
        ([[0, 1, 2], [0, 9], [0, 1, 3, 4], [0, 1, 5]], ("mooncake-0", None, "mooncake-0", "mooncake-0")),
        # What shares less than the whole blocks of an earlier prompt is another conversation.
        ([[0, 1, 2, 3], [0, 9], [0, 1, 5, 6]], (None, None, None)),
        # A first prompt without a whole block of its own is not recognised.
        ([[0, 1], [0, 2], [0, 1, 3]], (None, None, None)),
        ([[], [0, 1, 2], [0, 1, 3]], (None, "mooncake-1", "mooncake-1")),
        ([[0, 1, 2]], (None,)),
        ([], ()),
    ],
)
def test_a_request_continues_the_one_whose_whole_blocks_it_begins_with(
    prompts: list[list[int]], expected: tuple[str | None, ...]
) -> None:
    """Beyond the preamble of all, and only where another request of the conversation is seen."""
    assert expected == conversations(prompts)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("{", "Input data was truncated"),
        ("[]", "Expected `object`, got `array`"),
        ('{"timestamp": 0, "input_length": 5, "output_length": 2}', "missing required field `hash_ids`"),
        (GOOD.replace("5", "0"), "Expected `int` >= 1 - at `$.input_length`"),
        (GOOD.replace("2,", '"2",'), "Expected `int`, got `str` - at `$.output_length`"),
        (GOOD.replace('p": 0', 'p": -1'), "Expected `float` >= 0.0 - at `$.timestamp`"),
    ],
)
def test_a_line_that_cannot_be_used_is_named(tmp_path: Path, line: str, expected: str) -> None:
    """The error has the file, the line, what is wrong, and what a line should be."""
    path = tmp_path / "trace.jsonl"
    path.write_text(f"{GOOD}\n\n{line}\n")
    with pytest.raises(TraceError) as caught:
        read_mooncake(path, tier=Tier.STANDARD, workload="chat")
    assert str(caught.value).startswith(f"{path}:3: ")
    assert expected in str(caught.value)
    assert "write one object a line" in str(caught.value)


def test_an_empty_file_is_no_trace(tmp_path: Path) -> None:
    """It is refused, with what to do."""
    path = tmp_path / "trace.jsonl"
    path.write_text("\n")
    with pytest.raises(TraceError, match="there is no request in it: name a file"):
        read_mooncake(path, tier=Tier.STANDARD, workload="chat")


@needs_data
def test_the_public_file_has_conversations_that_grow() -> None:
    """Half of its requests belong to one, and in most steps the next prompt is no shorter."""
    trace = read_mooncake(DATA / "mooncake_conversation_trace.jsonl", tier=Tier.INTERACTIVE, workload="chat")
    turns = Counter(one.conversation for one in trace)
    assert (12_031, 6_045) == (len(trace), turns[None])
    assert (2_012, 43) == (len(turns) - 1, max(count for name, count in turns.items() if name))
    before: dict[str, int] = {}
    grown = steps = 0
    for one in trace:
        if one.conversation is not None:
            steps += one.conversation in before
            grown += one.conversation in before and one.prompt_tokens >= before[one.conversation]
            before[one.conversation] = one.prompt_tokens
    assert 0.85 < grown / steps
