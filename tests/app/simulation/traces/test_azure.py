"""The reader of the Azure trace."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.simulation.arrival import Arrival
from app.simulation.traces.azure import read_azure
from app.simulation.traces.errors import TraceError
from app.simulation.traces.statistics import statistics
from autoscaling.types import Tier
from tests.app.simulation.traces.made import DATA, needs_data

HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens\n"


def written(folder: Path, text: str) -> Path:
    path = folder / "trace.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_rows_become_arrivals_sorted_from_the_earliest(tmp_path: Path) -> None:
    """Times count from the earliest row, wherever it stands, and have seven digits, a zone, or neither."""
    path = written(
        tmp_path,
        HEADER
        + "2023-11-16 18:15:50.5000000,396,109\n"
        + "2023-11-16 18:15:46.2500000,374,44\n\n"
        + "2023-11-16 18:15:51.250000+00:00,7,1",
    )
    assert (
        Arrival(0.0, Tier.BATCH, "code", 374, 44),
        Arrival(4.25, Tier.BATCH, "code", 396, 109),
        Arrival(5.0, Tier.BATCH, "code", 7, 1),
    ) == read_azure(path, tier=Tier.BATCH, workload="code")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a,b\n1,2\n", "trace.csv:1: the first line is 'a,b'"),
        ("", "trace.csv:1: the first line is ''"),
        (HEADER, "trace.csv: there is no request in it"),
        (HEADER + "2023-11-16 18:15:46,374\n", "trace.csv:2: 2 fields and not 3"),
        (HEADER + "\nyesterday,374,44\n", "trace.csv:3: TIMESTAMP is 'yesterday'"),
        (HEADER + "2023-11-16 18:15:46,-3,44\n", "trace.csv:2: ContextTokens is '-3'"),
        (HEADER + "2023-11-16 18:15:46,374,0\n", "trace.csv:2: GeneratedTokens is '0'"),
        (HEADER + "2023-11-16 18:15:46,374,4.5\n", "trace.csv:2: GeneratedTokens is '4.5'"),
    ],
)
def test_a_line_that_cannot_be_used_is_named(tmp_path: Path, text: str, expected: str) -> None:
    """The error has the file, the line and the value; no line is passed over."""
    with pytest.raises(TraceError) as caught:
        read_azure(written(tmp_path, text), tier=Tier.BATCH, workload="code")
    assert expected in str(caught.value)


def test_a_file_that_cannot_be_read_is_an_error_of_traces(tmp_path: Path) -> None:
    """A missing file, a folder and a packed file say what to name instead."""
    packed = tmp_path / "trace.csv.gz"
    packed.write_bytes(b"\x1f\x8b\x08\x00")
    for path, expected in [
        (tmp_path / "none.csv", "No such file or directory; name a file that this user can read"),
        (tmp_path, "Is a directory; name a file"),
        (packed, "trace.csv.gz: byte 2 is not UTF-8: name a text file, unpacked"),
    ]:
        with pytest.raises(TraceError) as caught:
            read_azure(path, tier=Tier.BATCH, workload="code")
        assert expected in str(caught.value)


@needs_data
@pytest.mark.parametrize(
    ("name", "requests", "prompt", "answer", "cv"),
    [("conv", 19_366, (1155, 1020), (211, 129), 1.09), ("code", 8_819, (2048, 1469), (28, 13), 13.15)],
)
def test_the_public_files_have_their_published_statistics(
    name: str, requests: int, prompt: tuple[int, int], answer: tuple[int, int], cv: float
) -> None:
    """Count, mean and median lengths, and the variation of the gaps."""
    found = statistics(read_azure(DATA / f"azure2023_{name}.csv", tier=Tier.INTERACTIVE, workload="chat"))
    assert requests == found.requests
    assert prompt == (round(found.prompt.mean), round(found.prompt.p50))
    assert answer == (round(found.answer.mean), round(found.answer.p50))
    assert pytest.approx(cv, abs=0.005) == found.interarrival_cv
