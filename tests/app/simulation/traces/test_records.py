"""The reader of our own request records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.simulation.arrival import Arrival
from app.simulation.traces.errors import TraceError
from app.simulation.traces.records import REQUESTS, read_records
from autoscaling.request_line import Outcome
from autoscaling.request_record import RequestRecord, as_fields, measured
from autoscaling.types import Tier
from deployments import control_memory
from deployments.records import Records
from tests.autoscaling.request_lines import WALL, line, record


def fields(seq: int, after_s: float, prompt: int | None, answer: int = 0, **changes: Any) -> dict[str, Any]:
    """What the controller writes of one request; without a prompt no engine's record came."""
    engines = (
        None if prompt is None else measured([record(seq, prompt_tokens=prompt, generated_tokens=answer)])
    )
    found = RequestRecord(line=line(seq, wall=WALL + after_s, **changes), ingress="i", measured=engines)
    return {"request": msgspec.to_builtins(as_fields(found))}


def write(folder: Path, *many: dict[str, Any], max_bytes: int = 64 << 20) -> None:
    records = Records(folder, REQUESTS, epoch=1, max_bytes=max_bytes, clock=lambda: WALL)
    for one in many:
        records.write("request", one)
    records.close()


def test_the_reader_looks_for_the_files_that_the_controller_writes() -> None:
    """One name on both sides."""
    assert control_memory.REQUESTS == REQUESTS


def test_records_become_arrivals_by_their_own_time(tmp_path: Path) -> None:
    """Requests are written when they end and are sorted by when they came; tier and class are kept."""
    write(
        tmp_path,
        fields(1, 4.5, 100, 20, tier=Tier.BATCH, workload="code"),
        fields(2, 2.0, 30, 5, tier=Tier.INTERACTIVE, features={"conversation_key": "k", "turns": 2}),
    )
    found = read_records(tmp_path)
    assert (
        Arrival(0.0, Tier.INTERACTIVE, "chat", 30, 5, "k"),
        Arrival(2.5, Tier.BATCH, "code", 100, 20, None),
    ) == found.arrivals
    assert () == found.sentences()


def test_rotated_files_are_read_too(tmp_path: Path) -> None:
    """Each record stands in a file of its own here, and none is missed."""
    write(tmp_path, *(fields(number, float(number), 10 + number, 3) for number in range(4)), max_bytes=10)
    assert 4 == len(list(tmp_path.glob("requests*.jsonl")))
    assert [10, 11, 12, 13] == [one.prompt_tokens for one in read_records(tmp_path).arrivals]


def test_what_cannot_be_used_is_counted_by_its_reason(tmp_path: Path) -> None:
    """Refused, unmeasured, without a token, not understood, and torn: nothing goes silently."""
    write(
        tmp_path,
        fields(1, 1.0, 100, 20),
        fields(2, 2.0, None, outcome=Outcome.SHED),
        fields(3, 3.0, None, outcome=Outcome.SHED),
        fields(4, 4.0, None, outcome=Outcome.OK),
        fields(5, 5.0, 100, 0, outcome=Outcome.CANCELLED),
        fields(6, 6.0, 100, 7, outcome=Outcome.CANCELLED),
        {"request": {"tier": "platinum"}},
        fields(8, 8.0, 100, 20),
        fields(9, 9.0, 100, 20),
    )
    path = tmp_path / "requests.jsonl"
    lines = path.read_text().split("\n")
    lines[7] = lines[7][:40]
    path.write_text("\n".join(lines))
    found = read_records(tmp_path)
    assert [20, 7, 20] == [one.answer_tokens for one in found.arrivals]
    assert {
        "ended as shed, and no engine ran it": 2,
        "ended as ok, and the engine's record never came": 1,
        "the engine generated no token": 1,
        "the record is damaged, or of another version: read it with the one that wrote it": 1,
        "the line is damaged or gone, as a gap in the numbers shows": 1,
    } == found.left_out
    sentences = found.sentences()
    assert "2 left out: ended as shed, and no engine ran it" == sentences[0]
    assert "1 broke off: the answers end where they did" == sentences[-1]
    assert 6 == len(sentences)


@pytest.mark.parametrize(
    ("field", "value"),
    [("generated_tokens", -5), ("prompt_tokens", 10**12), ("sequences", 10**6), ("wall", -1.0)],
)
def test_numbers_that_cannot_be_are_damage(field: str, value: float, tmp_path: Path) -> None:
    """Of such a request nothing is made, and it is counted."""
    bad = fields(2, 2.0, 100, 20)
    bad["request"][field] = value
    write(tmp_path, fields(1, 1.0, 100, 20), bad)
    found = read_records(tmp_path)

    assert 1 == len(found.arrivals)
    assert {
        "the record is damaged, or of another version: read it with the one that wrote it": 1
    } == found.left_out


@pytest.mark.parametrize("numbers", [(1, 2, 3, 1, 2, 3), (3, 1, 2)])
def test_folders_that_were_put_together_miss_nothing(tmp_path: Path, numbers: tuple[int, ...]) -> None:
    """Numbers that come again or in another order are no gaps."""
    write(tmp_path, *(fields(number, float(number), 10, 3) for number in numbers))
    path = tmp_path / "requests.jsonl"
    lines = zip(path.read_text().splitlines(), numbers, strict=True)
    path.write_text("".join(json.dumps(json.loads(line) | {"seq": seq}) + "\n" for line, seq in lines))

    assert {} == read_records(tmp_path).left_out


def test_sequences_of_one_request_share_its_tokens(tmp_path: Path) -> None:
    """Three sequences are three arrivals at one time, and the sums are the recorded ones."""
    write(tmp_path, fields(1, 1.0, 10, 32, sequences=3), fields(2, 2.0, 10, 2, sequences=3))
    found = read_records(tmp_path)
    assert [(0.0, 3, 10), (0.0, 3, 11), (0.0, 4, 11), (1.0, 5, 1), (1.0, 5, 1)] == [
        (one.at_s, one.prompt_tokens, one.answer_tokens) for one in found.arrivals
    ]
    assert ("2 of several sequences: as many arrivals, with even shares",) == found.sentences()


def test_a_folder_without_usable_records_is_an_error(tmp_path: Path) -> None:
    """No file, no usable request, and records of another version each say what to do."""
    with pytest.raises(TraceError, match=r"requests.jsonl is not there or has no record: name the folder"):
        read_records(tmp_path / "none")
    write(tmp_path, fields(1, 1.0, None, outcome=Outcome.SHED))
    with pytest.raises(TraceError, match="no request can be used; 1: ended as shed, and no engine ran it"):
        read_records(tmp_path)
    (tmp_path / "requests.jsonl").write_text('{"schema":2,"kind":"request","seq":1}\n')
    with pytest.raises(TraceError, match="a record of schema 2, this version knows 1"):
        read_records(tmp_path)
