"""A trace by its name."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from app.simulation.arrival import Arrival
from app.simulation.traces.errors import TraceError
from app.simulation.traces.load import base_rate, expected, load_trace
from autoscaling.request_line import Outcome
from autoscaling.types import Tier
from tests.app.simulation.traces.made import times
from tests.app.simulation.traces.test_records import fields, write

ROWS = "".join(f"2023-11-16 {18 + hour}:00:00,{100 + hour},10\n" for hour in range(5))


@pytest.fixture
def conv(tmp_path: Path) -> Path:
    """Five requests, an hour apart."""
    path = tmp_path / "azure_conv.csv"
    path.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n" + ROWS)
    return path


def test_an_azure_file_is_interactive_and_of_the_work_in_its_name(conv: Path) -> None:
    """`conv` is chat and `code` is code; tier and workload say otherwise."""
    assert Arrival(0.0, Tier.INTERACTIVE, "chat", 100, 10) == load_trace(f"azure:{conv}", 1)[0]
    code = conv.rename(conv.with_name("Trace_CODE.csv"))
    assert "code" == load_trace(f"azure:{code}", 1)[0].workload
    found = load_trace(f"azure:{code},tier=batch,workload=grounded", 1)[0]
    assert (Tier.BATCH, "grounded") == (found.tier, found.workload)
    other = code.rename(code.with_name("mine.csv"))
    with pytest.raises(TraceError, match="add workload=code or workload=chat"):
        load_trace(f"azure:{other}", 1)


def test_a_mooncake_file_is_interactive_chat(tmp_path: Path) -> None:
    """Unless the options say otherwise."""
    path = tmp_path / "m.jsonl"
    path.write_text('{"timestamp": 0, "input_length": 5, "output_length": 2, "hash_ids": [0]}\n')
    assert (Arrival(0.0, Tier.INTERACTIVE, "chat", 5, 2),) == load_trace(f"mooncake:{path}", 1)
    assert "math" == load_trace(f"mooncake:{path},workload=math", 1)[0].workload


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("", True),
        (",hours=1", True),
        (",tier=batch", False),
        (",tiers=interactive:0.5/batch:0.5", False),
    ],
)
def test_the_tier_that_nobody_gave_is_said(options: str, said: bool, conv: Path) -> None:
    """The file has none; one sentence with what to write for another."""
    found: list[str] = []
    load_trace(f"azure:{conv}{options}", 1, found.append)

    assert said == (
        [
            f"azure:{conv} says no tier, so every request is interactive: tier=batch makes all of them "
            "batch, "
            "tiers=interactive:0.6/batch:0.4 some."
        ]
        == found
    )


def test_more_requests_than_memory_holds_are_refused_before_they_are_made(conv: Path) -> None:
    """With about how many there would be."""
    with pytest.raises(
        TraceError,
        match="about 349,920,000 requests are asked for, and 20,000,000 are held at most: lower rate",
    ):
        load_trace("generated:day,rate=500", 1)
    assert expected(f"azure:{conv},rate=9999") is None
    assert pytest.approx(0.5 * 3600 * 8.1 * 4) == expected("generated:mixed,hours=0.5,rate=4")


def test_what_a_rate_multiplies_is_known_of_what_is_made() -> None:
    """The published rate; a file has its own."""
    assert [5.53, 2.57, pytest.approx(8.1)] == [
        base_rate(f"generated:{kind},rate=4") for kind in ("conversation", "code", "mixed")
    ]
    assert base_rate("azure:conv.csv,rate=4") is None


def test_what_is_left_out_of_records_is_said(tmp_path: Path) -> None:
    """One sentence for each reason, with the folder."""
    write(tmp_path, fields(1, 1.0, 5, 3), fields(2, 2.0, None, outcome=Outcome.SHED))
    said: list[str] = []
    assert (Arrival(0.0, Tier.STANDARD, "chat", 5, 3),) == load_trace(f"records:{tmp_path}", 1, said.append)
    assert [f"{tmp_path}: of its requests, 1 left out: ended as shed, and no engine ran it"] == said


def test_what_is_left_out_goes_to_stderr_by_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody has to ask for it."""
    write(tmp_path, fields(1, 1.0, 5, 3), fields(2, 2.0, None, outcome=Outcome.SHED))
    load_trace(f"records:{tmp_path}", 1)
    assert "1 left out: ended as shed" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (",from=1", [0.0, 3600.0, 7200.0, 10800.0]),
        (",from=0", [0.0, 3600.0, 7200.0, 10800.0, 14400.0]),
        (",hours=2", [0.0, 3600.0]),
        (",from=1.5,hours=2", [1800.0, 5400.0]),
        (",hours=2,stretch=0.5", [0.0, 1800.0]),
    ],
)
def test_a_window_is_cut_and_then_stretched(conv: Path, options: str, expected: list[float]) -> None:
    """In this order, whatever the order in the text: hours are those of the file."""
    assert expected == times(load_trace(f"azure:{conv}{options}", 1))


def test_rate_and_tiers_change_what_is_read(conv: Path) -> None:
    """Two copies of five requests, all of them batch."""
    found = load_trace(f"azure:{conv},rate=2,tiers=batch:1", 1)
    assert (10, {Tier.BATCH}) == (len(found), {one.tier for one in found})


def test_generated_traces_need_no_file() -> None:
    """Hours, rate and tiers hold, and `from` leaves out what is made before."""
    found = load_trace("generated:conversation,hours=0.5,rate=2,tiers=interactive:0.5/batch:0.5", 1)
    assert pytest.approx(2 * 5.53 * 1800, rel=0.1) == len(found)
    assert pytest.approx(0.5, abs=0.05) == Counter(one.tier for one in found)[Tier.BATCH] / len(found)
    night, noon = (len(load_trace(f"generated:day,from={hour},hours=0.5,rate=0.2", 1)) for hour in (1, 13))
    assert 10 * night < noon


def test_the_same_text_and_seed_give_the_same_trace() -> None:
    """And another seed another one."""
    spec = "generated:code,hours=0.5,rate=1.5,tiers=standard:0.5/batch:0.5"
    assert load_trace(spec, 1) == load_trace(spec, 1)
    assert load_trace(spec, 1) != load_trace(spec, 2)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("", "the trace '' has no source: write azure:FILE"),
        ("conv.csv", "has no source"),
        ("azure:", "has no name behind its colon"),
        ("burst:x", "the source of a trace is 'burst': write one of azure, mooncake, records, generated"),
        ("generated:chat", "what is generated is 'chat': write one of conversation, code, mixed, day"),
        (
            "generated:code,speed=2",
            "'speed=2' is no option of generated: traces: write KEY=VALUE with one of from",
        ),
        ("generated:code,tier=batch", "'tier=batch' is no option of generated: traces"),
        ("azure:a,b.csv", "'b.csv' is no option of azure: traces"),
        ("generated:code,from=x", "from is 'x': write a number of hours above 0"),
        ("generated:code,rate=0", "rate is '0': write how many times the requests, as a number above 0"),
        ("generated:code,rate=nan", "rate is 'nan'"),
        ("generated:code,hours=1e6", "hours is '1e6': write a number of hours up to 10,000"),
        (
            "azure:a_code.csv,stretch=1e308",
            "stretch is '1e308': write the factor of all times, as a number up to 10,000",
        ),
        ("generated:code,hours=many", "hours is 'many'"),
        ("generated:code,from=-1", "from is '-1'"),
        ("generated:code,rate=1,rate=2", "rate is given twice"),
        ("generated:code,tiers=batch:0.5", "the shares of tiers=batch:0.5 add up to 0.5: make it 1"),
        ("generated:code,tiers=batch:0.5/batch:0.5", "has batch twice"),
        ("generated:code,tiers=gold:1", "a tier of tiers=gold:1 is 'gold': write one of interactive"),
        ("generated:code,tiers=batch", "the share of batch in tiers is ''"),
        ("azure:a.csv,tier=batch,tiers=batch:1", "tier and tiers are given"),
        ("azure:a.csv,tier=gold", "tier is 'gold': write one of interactive, standard, batch"),
        ("azure:a.csv,workload=a b", "workload is 'a b': write a name"),
        ("azure:none_conv.csv", "none_conv.csv cannot be read"),
        ("generated:code,rate=0.000001,hours=0.1", "no request is left of the trace"),
    ],
)
def test_bad_input_is_one_error_that_says_what_to_do(spec: str, expected: str) -> None:
    """The offending part is named."""
    with pytest.raises(TraceError) as caught:
        load_trace(spec, 1)
    assert expected in str(caught.value)


def test_a_window_beyond_the_file_is_refused(conv: Path) -> None:
    """The file's length is told; nothing shorter is given in silence."""
    for options, asked in [("hours=5", "hours"), ("from=5", "from"), ("from=3,hours=2", "from and hours")]:
        with pytest.raises(TraceError) as caught:
            load_trace(f"azure:{conv},{options}", 1)
        assert f"is 4.000 hours long, which is less than {asked} ask for: ask for less" in str(caught.value)
