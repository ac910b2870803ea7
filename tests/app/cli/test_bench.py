"""`twinpool bench` as it is run: what it refuses, what it measures, and what it leaves behind."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import yaml

from app.bench.store import read_measurement, write_measurement
from app.cli.bench_options import BadOptionError, draft_lengths, numbers, quick_lengths
from autoscaling.profile import read_profile
from autoscaling.types import Role
from deployments.default_policy import default_policy_text
from deployments.local_config import default_settings
from tests.app.bench.findings_sample import measurement
from tests.app.canned import NOWHERE, run, serving

COMMAND = [sys.executable, "-m", "app.cli.main", "bench", "--engine", "simulated"]


@pytest.fixture(autouse=True)
def _locks(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of this test: whoever else measures on this machine is not asked."""
    monkeypatch.setenv("TWINPOOL_NODE_DIR", str(tmp_path_factory.mktemp("node")))


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


def begun(out: Path, ignored: signal.Signals | None = None) -> subprocess.Popen[str]:
    """A measurement whose engines serve."""

    def only(number: signal.Signals | None) -> None:
        # A test run in the background of a shell ignores the first one, and so would its children.
        for one in (signal.SIGINT, signal.SIGHUP):
            signal.signal(one, signal.SIG_IGN if one == number else signal.SIG_DFL)

    child = subprocess.Popen(
        [*COMMAND, "--out", out, "--rounds", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: only(ignored),  # noqa: PLW1509
    )
    assert child.stdout is not None
    served = 0
    for line in child.stdout:
        served += "engine serves after" in line
        if served == 2:
            break
    return child


@pytest.mark.parametrize(
    ("number", "ignored"),
    [
        (signal.SIGINT, None),
        (signal.SIGTERM, None),
        pytest.param(signal.SIGTERM, signal.SIGINT, marks=pytest.mark.long),
        pytest.param(signal.SIGHUP, None, marks=pytest.mark.long),
    ],
)
def test_ctrl_c_leaves_no_process_and_no_file(
    number: signal.Signals, ignored: signal.Signals | None, tmp_path: Path
) -> None:
    """Exit code 130, only the engines' logs in the folder, and words that say so; as other signals do."""
    child = begun(tmp_path, ignored)
    below = psutil.Process(child.pid).children(recursive=True)
    child.send_signal(number)
    _, err = child.communicate(timeout=60)
    _, alive = psutil.wait_procs(below, 10)

    assert 130 == child.returncode
    assert (
        "nothing can be concluded, measure anew: measurement.json is written after the second round; the "
        f"engines' logs are in {tmp_path}\n"
    ) == err
    assert 2 <= len(below)
    assert [] == alive
    assert {"engine-speculative.log", "engine-plain.log"} == {path.name for path in tmp_path.iterdir()}


@pytest.mark.long
def test_a_closed_terminal_does_not_end_what_shall_outlive_it(tmp_path: Path) -> None:
    """`nohup` ignores the signal, and a measurement of hours is begun with it."""
    child = begun(tmp_path, signal.SIGHUP)
    child.send_signal(signal.SIGHUP)
    with pytest.raises(subprocess.TimeoutExpired):
        child.wait(2)
    child.send_signal(signal.SIGTERM)
    child.communicate(timeout=60)

    assert 130 == child.returncode


@pytest.mark.long
def test_two_measurements_at_once_are_refused(tmp_path: Path) -> None:
    """In the same folder, in another, and what would write into it; nothing is made or disturbed."""
    first, second = tmp_path / "first", tmp_path / "second"
    former = tmp_path / "former"
    former.mkdir()
    write_measurement(former, measurement())
    child = begun(first)
    try:
        same = run("bench", "--engine", "simulated", "--out", str(first))
        other = run("bench", "--engine", "simulated", "--out", str(second))
        again = run("bench", "--from", str(former), "--out", str(first))
        early = run("bench", "--from", str(first))
        assert child.poll() is None
    finally:
        child.terminate()
        child.communicate(timeout=60)

    assert [2, 2, 2, 2] == [one.exit_code for one in (same, other, again, early)]
    assert f"error: {first}: process {child.pid} measures there since " in same.stderr
    assert f"mend: wait until it has ended, or `kill {child.pid}`\n" in same.stderr
    assert f"error: process {child.pid} measures in {first} since " in other.stderr
    assert f"error: {first}: process {child.pid} measures there since " in again.stderr
    assert "or name another folder with --out" in again.stderr
    assert "it is written after the second round of the measurement that goes on" in early.stderr
    assert not second.exists()
    assert {"engine-speculative.log", "engine-plain.log"} == {path.name for path in first.iterdir()}


def test_a_measurement_that_broke_off_early_cannot_be_concluded_from(tmp_path: Path) -> None:
    """There are the engines' logs and nothing else."""
    (tmp_path / "engine-plain.log").touch()
    result = run("bench", "--from", str(tmp_path))

    assert 2 == result.exit_code
    assert "the measurement broke off before its second round was over: measure anew" in result.stderr


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        (
            "--concurrency 1,x: 'x' is no whole number: write some with commas between, such as 1,2,4",
            ["--concurrency", "1,x"],
        ),
        ("--concurrency 1,,4: '' is no whole number", ["--concurrency", "1,,4"]),
        ("--concurrency 0: 0 is not within 1 to 1024", ["--concurrency", "0"]),
        ("--concurrency -1: -1 is not within 1 to 1024", ["--concurrency", "-1"]),
        ("--concurrency 4,4,1: 4 is named twice: name each number once", ["--concurrency", "4,4,1"]),
        ("--lengths 0,2,2: 2 is named twice: name each number once", ["--lengths", "0,2,2"]),
        ("Invalid value for '--accelerator-hour-price'", ["--accelerator-hour-price", "nan"]),
        ("--accelerator-hour-price inf: give a number of 0 or more", ["--accelerator-hour-price", "inf"]),
        ("--policy /nowhere: No such file or directory", ["--policy", "/nowhere"]),
        ("--lengths: 9 is above 4, the num_speculative_tokens of the engine", ["--lengths", "2,9"]),
        ("--lengths 0: nothing is drafted: name one within 1 to 4 too", ["--lengths", "0"]),
        ("--engine vlm: there is no such engine: give vllm or simulated", ["--engine", "vlm"]),
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


def test_the_load_of_an_answer_is_stated(former: Path, tmp_path: Path) -> None:
    """Numbers and kinds are in the report; a kind that was not measured is refused, with those that were."""
    stated = ("--batch-at-once", "24", "--interactive-at-once", "1", "--batch-class", "chat")
    out = tmp_path / "two"
    result = run("bench", "--from", str(former), "--out", str(out), *stated, "--json")
    wrong = run("bench", "--from", str(former), "--interactive-class", "chat,poems")

    assert 0 == result.exit_code, result.output
    assert [12, 24, 48, 96] == [one["batchAtOnce"] for one in json.loads(result.stdout)["loads"]]
    assert (
        "Assumed are 1 interactive answers open on average and 24 batch requests at once on two replicas, "
        "interactive ones of all prompts together and batch ones of chat, "
    ) in (out / "report.md").read_text()
    assert 2 == wrong.exit_code
    assert "error: --interactive-class: 'poems' is not measured: name one of " in wrong.stderr


def test_a_measurement_is_not_replaced_by_another(former: Path) -> None:
    """Exit code 2 before anything starts; it stays as it is."""
    before = (former / "measurement.json").read_bytes()
    result = run("bench", "--engine", "simulated", "--out", str(former))

    assert 2 == result.exit_code
    assert f"error: {former}: holds a measurement already: name another folder with --out" in result.stderr
    assert before == (former / "measurement.json").read_bytes()


def test_the_report_of_a_simulation_is_spared(former: Path, tmp_path: Path) -> None:
    """It has files of the same names; neither a measurement nor a report of one goes there."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "scores.json").write_text("{}")
    done = [
        run("bench", *more, "--out", str(tmp_path / "out"))
        for more in (("--engine", "simulated"), ("--from", str(former)))
    ]

    assert [2, 2] == [one.exit_code for one in done]
    assert all("out: holds a simulation already: name another folder" in one.stderr for one in done)


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


def test_numbers_are_sorted() -> None:
    """Spaces do no harm."""
    assert (1, 4, 16) == numbers("--concurrency", "16, 1,4", least=1, most=1024)


def test_the_objectives_of_a_policy_set_the_limits(former: Path, tmp_path: Path) -> None:
    """A shorter time per token lets fewer sequences in than the default policy does."""
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        default_policy_text(default_settings(engine="simulated").controller()).replace("0.15", "0.03")
    )
    without = run("bench", "--from", str(former), "--json")
    with_it = run("bench", "--from", str(former), "--policy", str(policy), "--json")

    assert (0, 0) == (without.exit_code, with_it.exit_code), with_it.output
    limit = "spec.pools.speculative.limits.softInflight"
    default, own = (
        {one["path"]: one for one in json.loads(result.stdout)["policy"]} for result in (without, with_it)
    )
    assert own[limit]["value"] < default[limit]["value"]
    assert "30 ms per token of interactive" in own[limit]["because"]


def test_a_policy_that_promises_nothing_is_told(former: Path, tmp_path: Path) -> None:
    """No limit is recommended, not even by the default policy, and the rest goes on."""
    policy = tmp_path / "policy.yaml"
    text = yaml.safe_load(default_policy_text(default_settings(engine="simulated").controller()))
    del text["spec"]["objectives"]
    policy.write_text(yaml.safe_dump(text))
    result = run("bench", "--from", str(former), "--policy", str(policy), "--json")

    assert 0 == result.exit_code, result.output
    assert (
        f"note: {policy} has no spec.objectives.interactive.tpotSeconds or "
        "spec.objectives.standard.tpotSeconds: nothing is promised, so no limit is recommended for the "
        "speculative and plain pools"
    ) in result.stderr
    assert [] == json.loads(result.stdout)["policy"]


def test_a_policy_that_cannot_be_used_is_refused_in_its_place(former: Path, tmp_path: Path) -> None:
    """Every problem has its line; nothing is concluded."""
    policy = tmp_path / "policy.yaml"
    text = default_policy_text(default_settings(engine="simulated").controller())
    policy.write_text(text.replace("tpotSeconds: 0.15", "tpotSeconds: -1"))
    line = 1 + policy.read_text().splitlines().index("      tpotSeconds: -1")
    result = run("bench", "--from", str(former), "--policy", str(policy))

    assert 2 == result.exit_code
    assert f"\n{policy}:{line}:" in result.stderr
    assert "spec.objectives.interactive.tpotSeconds" in result.stderr
    assert "mend: correct the file, or leave --policy out" in result.stderr
    assert not (former / "profile.json").exists()


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
