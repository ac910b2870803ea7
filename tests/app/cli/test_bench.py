"""`twinpool bench` as it is run: what it refuses, what it measures, and what it leaves behind."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from app.bench.store import read_measurement, write_measurement
from app.cli.bench_options import BadOptionError, draft_lengths, numbers, quick_lengths
from autoscaling.profile import read_profile
from autoscaling.types import Role
from tests.app.bench.findings_sample import measurement
from tests.app.canned import NOWHERE, run, serving

COMMAND = [sys.executable, "-m", "app.cli.main", "bench", "--engine", "simulated"]


@pytest.fixture
def former(tmp_path: Path) -> Path:
    """A folder with a measurement in it."""
    folder = tmp_path / "former"
    folder.mkdir()
    write_measurement(folder, measurement())
    return folder


@pytest.mark.long
def test_the_clock_of_the_simulated_engine_is_found(tmp_path: Path) -> None:
    """A step takes 15 ms and 0.5 ms per token: both fits say so, on cells they had not seen too."""
    prompts = tmp_path / "prompts.jsonl"
    lines = [{"prompt": f"Tell me of hill number {number}.", "class": "chat"} for number in range(8)]
    prompts.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    out = tmp_path / "out"
    done = subprocess.run(
        [
            *(*COMMAND, "--out", out, "--prompts", prompts, "--json"),
            *("--concurrency", "1,3,4", "--lengths", "0,4", "--rounds", "2"),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )

    found = json.loads(done.stdout)
    profile = read_profile((out / "profile.json").read_text(), "profile.json")
    assert 0 == done.returncode, done.stderr
    assert {role.value: True for role in Role} == {
        role: one["accepted"] for role, one in found["fits"].items()
    }
    assert all(one["holdOutError"] <= 0.15 for one in found["fits"].values())
    for role in Role:
        assert pytest.approx(0.015, rel=0.2) == profile.costs[role].base_s
        assert pytest.approx(0.0005, rel=0.2) == profile.costs[role].per_token_s
    assert [
        "K = 0 on the speculative engine: only an engine that changes K while it runs can have it"
    ] == found["cut"]
    assert {"measurement.json", "profile.json", "report.html", "report.md", "plots"} <= {
        path.name for path in out.iterdir()
    }
    assert {1, 2, 3, 4} == {one.cell.sequences for one in read_measurement(out).runs}
    assert "the plain engine serves after" in done.stderr


def test_ctrl_c_leaves_no_process_and_no_file(tmp_path: Path) -> None:
    """Exit code 130, and only the engines' logs in the folder."""
    child = subprocess.Popen(
        [*COMMAND, "--out", tmp_path, "--rounds", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A test run in the background of a shell ignores the signal, and so would its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )
    assert child.stdout is not None
    served = 0
    for line in child.stdout:
        served += "engine serves after" in line
        if served == 2:
            break
    below = psutil.Process(child.pid).children(recursive=True)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=60)
    _, alive = psutil.wait_procs(below, 10)

    assert 130 == child.returncode
    assert "Traceback" not in err
    assert 2 <= len(below)
    assert [] == alive
    assert {"engine-speculative.log", "engine-plain.log"} == {path.name for path in tmp_path.iterdir()}


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        ("--concurrency x: write whole numbers with commas between, 1,4,16", ["--concurrency", "x"]),
        ("--concurrency 1,,4: write whole numbers with commas between", ["--concurrency", "1,,4"]),
        ("--concurrency: 0 is not within 1 to 1024", ["--concurrency", "0"]),
        ("--lengths: 9 is above 4, the num_speculative_tokens of the engine", ["--lengths", "2,9"]),
        ("--lengths 0: nothing is drafted: name one within 1 to 4 too", ["--lengths", "0"]),
        ("speculative.engine.kind: Input should be 'vllm' or 'simulated'", ["--engine", "tpu"]),
        ("speculative_config.num_speculative_tokens is None", ["--speculation", '{"method": "ngram"}']),
        ("Invalid value for '--rounds'", ["--rounds", "1"]),
        ("-o is text or json, not yaml", ["-o", "yaml"]),
        ("--prior /nowhere/p.json: cannot be read: No such file", ["--prior", "/nowhere/p.json"]),
        ("--from measures nothing: leave out --quick, --rounds", ["--from", "m", "--quick", "--rounds", "3"]),
        ("/nowhere cannot be read: No such file or directory", ["--prompts", "/nowhere"]),
    ],
)
def test_wrong_usage_starts_and_makes_nothing(words: str, arguments: list[str], tmp_path: Path) -> None:
    """Exit code 2, and what would be right."""
    out = tmp_path / "out"
    engine = [] if {"--engine", "--from"} & {*arguments} else ["--engine", "simulated"]
    result = run("bench", "--out", str(out), *engine, *arguments, url=NOWHERE)

    assert 2 == result.exit_code
    assert words in result.stderr
    assert not out.exists()


def test_every_bad_line_of_prompts_is_named_on_its_own(tmp_path: Path) -> None:
    """Not as one line with escaped ends."""
    prompts = tmp_path / "p.jsonl"
    prompts.write_text('{"prompt": 3}\nnope\n')
    result = run("bench", "--engine", "simulated", "--prompts", str(prompts), "--out", str(tmp_path / "out"))

    assert 2 == result.exit_code
    assert [
        f"error: {prompts}:1: prompt is number: write one text that is not empty",
        f"{prompts}:2: no JSON at character 1, Expecting value: write one object a line",
        "mend: correct it and run `twinpool bench` again",
    ] == result.stderr.splitlines()


def test_an_out_that_is_a_file(former: Path) -> None:
    """It stays as it is."""
    out = former / "measurement.json"
    before = out.read_bytes()
    result = run("bench", "--from", str(former), "--out", str(out))

    assert 2 == result.exit_code
    assert f"error: {out}: cannot be written: File exists: name another with --out" in result.stderr
    assert before == out.read_bytes()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("no measurement: Input data was truncated: name a measurement.json", "{"),
        ("no measurement: Expected `object`, got `array`", "[]"),
        ("version 9, known here is 1: measure again, or update twinpool", '{"version": 9}'),
    ],
)
def test_a_from_that_is_no_measurement(words: str, text: str, tmp_path: Path) -> None:
    """Exit code 2, the file, what is wrong with it, and what to do."""
    path = tmp_path / "m.json"
    path.write_text(text)
    result = run("bench", "--from", str(path), "--out", str(tmp_path / "out"))

    assert 2 == result.exit_code
    assert f"error: {path}: {words}" in result.stderr


def test_a_broken_prior_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    """Not after the half hour that a measurement takes."""
    prior = tmp_path / "prior.json"
    prior.write_text("{")
    result = run("bench", "--engine", "simulated", "--prior", str(prior), "--out", str(tmp_path / "out"))

    assert 2 == result.exit_code
    assert f"error: --prior {prior}: not JSON" in result.stderr
    assert "leave --prior out" in result.stderr
    assert not (tmp_path / "out").exists()


def test_a_former_measurement_is_reported_anew_with_a_prior(former: Path, tmp_path: Path) -> None:
    """No engine is started; in its own folder unless told; a profile can be the prior of the next."""
    first = run("bench", "--from", str(former / "measurement.json"), "--json")
    profile = former / "profile.json"
    again = run("bench", "--from", str(former), "--prior", str(profile), "--out", str(tmp_path / "two"))

    assert (0, 0) == (first.exit_code, again.exit_code), again.output
    assert str(profile) == json.loads(first.stdout)["files"]["profile"]
    assert "engine serves" not in first.output + again.output
    assert read_profile((tmp_path / "two" / "profile.json").read_text(), "two").costs.keys() == {*Role}
    assert read_measurement(former) == read_measurement(tmp_path / "two")


def test_a_measurement_is_not_replaced_by_another(former: Path) -> None:
    """Exit code 2 before anything starts; it stays as it is."""
    before = (former / "measurement.json").read_bytes()
    result = run("bench", "--engine", "simulated", "--out", str(former))

    assert 2 == result.exit_code
    assert f"error: {former}: holds a measurement already: name another folder with --out" in result.stderr
    assert before == (former / "measurement.json").read_bytes()


def test_a_service_that_runs_is_only_a_note(tmp_path: Path) -> None:
    """It may be on another machine; the measurement goes on, here until its engine is refused."""
    settings = tmp_path / "settings.yaml"
    settings.write_text("plain: {engine: {kv_cache_memory_bytes: 33554432}}\n")
    with serving({("GET", "/admin/status"): (200, {"pools": {}})}) as service:
        result = run(
            *("bench", "--engine", "simulated", "--settings", str(settings), "--out", str(tmp_path / "out")),
            url=service.url,
        )

    assert 2 == result.exit_code
    assert f"note: a service answers at {service.url}; if it runs on this machine" in result.stdout
    assert "engine.kv_cache_memory_bytes" in result.stderr
    assert f"mend: see the engines' logs in {tmp_path / 'out'}" in result.stderr


def test_numbers_are_sorted_and_each_once() -> None:
    """Spaces do no harm."""
    assert (1, 4, 16) == numbers("--concurrency", "16, 1,4,4", least=1, most=1024)


def test_a_quick_measurement_keeps_to_what_the_engine_can_draft() -> None:
    """Whatever its largest K is; the user named none, so none is refused."""
    assert (0, 1) == quick_lengths(1)
    assert (0, 1, 3) == quick_lengths(3)
    assert (0, 2, 4) == quick_lengths(4)
    assert (0, 4, 8) == quick_lengths(8)


def test_a_draft_length_that_the_engine_cannot_have_is_not_dropped_in_silence() -> None:
    """Also beside others that it can."""
    assert (0, 4) == draft_lengths("4,0", 4)
    with pytest.raises(BadOptionError, match="9 is above 4"):
        draft_lengths("4,9", 4)
