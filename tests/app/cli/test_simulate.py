"""`twinpool simulate`: a policy on a trace, without a service."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import Result

from tests.app.canned import run
from tests.app.simulation.log.written import request, write
from tests.autoscaling.profiles import profile_text
from tests.policies import policy

SHORT = "generated:conversation,hours=0.02,tiers=interactive:0.5/batch:0.5"
OBJECTIVES = {"interactive": {"ttftSeconds": 2.0, "tpotSeconds": 0.05}}


def file_of(folder: Path, text: str | None = None, **spec: object) -> Path:
    """A policy for two replicas of each pool, or another text."""
    file = folder / "policy.yaml"
    file.write_text(text or policy(2, 2, objectives=OBJECTIVES, **spec), encoding="utf-8")
    return file


def simulate(file: Path, *more: str, trace: str = SHORT, profile: str | None = "h100-8b") -> Result:
    named = [] if profile is None else ["--profile", profile]
    return run("simulate", str(file), "--trace", trace, *named, *more)


def test_a_policy_is_simulated(tmp_path: Path) -> None:
    """The answer first, then a row for each tier; progress is on standard error."""
    done = simulate(file_of(tmp_path))

    assert 0 == done.exit_code, done.stderr
    assert done.stdout.startswith("test keeps every objective of this trace: 100.0 % of interactive requests")
    assert re.search(r"^test +interactive +100\.0 %", done.stdout, re.MULTILINE)
    assert re.search(r"^ +batch +no objective", done.stdout, re.MULTILINE)
    first, second, *_ = (line.strip() for line in done.stderr.splitlines())
    assert first.startswith(f"getting the trace {SHORT}: 0 s, about 398 requests")
    assert re.fullmatch(r"\d+ requests in 1m20s of the trace, in the event model", second)
    assert "left" not in done.stdout


def test_how_many_requests_come_is_said(tmp_path: Path) -> None:
    """And what a rate of 1 would bring, so that a rate can be chosen."""
    done = simulate(file_of(tmp_path))
    found = json.loads(simulate(file_of(tmp_path), "--json").stdout)

    assert "\nrequests/s, on average and in the fullest 10 s: interactive " in done.stdout
    assert found["requests"]["tiers"]["all"]["requests"] == sum(
        one["arrived"] for one in found["policies"]["test"]["tiers"].values()
    )
    assert "rate=1 of generated:conversation is 5.53 requests/s on average" in found["about"]


def test_the_same_seed_gives_the_same_result(tmp_path: Path) -> None:
    """To the last digit; another one does not."""
    first, again, other = (
        simulate(file_of(tmp_path), "--json", "--seed", seed).stdout for seed in ("1", "1", "2")
    )

    assert first == again
    assert first != other


def test_programs_get_the_scores(tmp_path: Path) -> None:
    """Alone on standard output, and with what stands beside them on the same trace."""
    done = simulate(file_of(tmp_path), "--against", "all-plain,static-50", "--against", "all-plain", "--json")
    found = json.loads(done.stdout)

    assert ["test", "all-plain", "static-50"] == list(found["policies"])
    assert 0 < found["policies"]["test"]["tiers"]["interactive"]["arrived"]
    assert {"ttftSeconds": 2.0, "tpotSeconds": 0.05} == found["objectives"]["interactive"]
    assert found["policies"]["test"]["cost"] is None
    assert {} == found["files"]


def test_an_objective_that_is_missed_is_a_finding(tmp_path: Path) -> None:
    """Exit code 1: nothing answers a token in a microsecond."""
    hard = {"interactive": {"tpotSeconds": 0.000001}}
    file = file_of(tmp_path, policy(2, 2, objectives=hard))
    done = simulate(file)

    assert 1 == done.exit_code
    assert "test misses an objective on this trace: 0.0 % of interactive requests are in time" in done.stdout


def test_a_folder_gets_the_report(tmp_path: Path) -> None:
    """JSON with the series, Markdown with its plots, and a page that needs nothing else."""
    out = tmp_path / "new" / "out"
    done = simulate(file_of(tmp_path), "--out", str(out), "--accelerator-hour-price", "2.5")
    found = json.loads((out / "scores.json").read_text())

    assert 0 == done.exit_code, done.stderr
    assert found["policies"]["test"]["series"]
    assert (
        pytest.approx(2.5 * found["policies"]["test"]["acceleratorHours"])
        == found["policies"]["test"]["cost"]
    )
    assert "<!doctype html>" in (out / "report.html").read_text()
    plots = {path.name for path in (out / "plots").iterdir()}
    assert {"capacity-0.svg", "attainment.svg", "time-per-token.svg"} == plots
    assert "](plots/attainment.svg)" in (out / "report.md").read_text()
    assert str(out / "report.html") in done.stdout


def test_a_policy_is_scaled_to_another_size(tmp_path: Path) -> None:
    """With its bounds, and it is said."""
    done = simulate(file_of(tmp_path), "--replicas", "8", "--json")
    found = json.loads(done.stdout)

    assert 0 == done.exit_code, done.stderr
    assert "8 accelerators, a replica starts in 60 s" in found["about"]
    assert (
        "The policy is for 4 replicas and was scaled to 8: speculative 2 to 6, plain 2 to 6."
        in found["notes"]
    )


@pytest.mark.long
def test_several_sizes_stand_side_by_side(tmp_path: Path) -> None:
    """One run for each, and the smallest that keeps every objective is named; with files as for one."""
    out = tmp_path / "out"
    trace = "generated:conversation,hours=0.02,rate=8"
    arguments = ("--replicas", "6,2", "--accelerator-hour-price", "2")
    done = simulate(file_of(tmp_path), *arguments, "--out", str(out), trace=trace)
    found = json.loads(simulate(file_of(tmp_path), *arguments, "--json", trace=trace).stdout)
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]

    assert 0 == done.exit_code, done.stderr
    assert ["2 replicas", "6 replicas"] == list(found["policies"])
    assert {"2 replicas": 2, "6 replicas": 6} == found["sizes"]
    assert [["interactive"], []] == [one["missed"] for one in found["policies"].values()]
    assert (6, "6 replicas") == (found["smallestThatKeepsAll"], found["asked"])
    assert lines[0].startswith(
        "6 replicas are the fewest of 2 and 6 that keep every objective of this trace: "
    )
    assert lines[1].startswith("With 2 replicas, ")
    assert any(line.startswith("size tier in time") and line.endswith("cost") for line in lines)
    assert "2 and 6 accelerators, a replica starts in 60 s" in found["about"]
    assert "6 replicas are the fewest of 2 and 6" in (out / "report.md").read_text()
    assert "Demand and capacity: 2 replicas" in (out / "report.html").read_text()
    assert {"2 replicas", "6 replicas"} == set(json.loads((out / "scores.json").read_text())["policies"])


@pytest.mark.long
def test_sizes_of_which_none_is_enough_are_a_finding(tmp_path: Path) -> None:
    """Exit code 1, with what the largest one misses; nothing that is promised is a size that is enough."""
    hard = policy(2, 2, objectives={"interactive": {"tpotSeconds": 0.000001}})
    done = simulate(file_of(tmp_path, hard), "--replicas", "2,4")
    nothing = simulate(file_of(tmp_path, policy(2, 2, objectives={})), "--replicas", "2,4", "--json")

    assert 1 == done.exit_code
    assert done.stdout.startswith(
        "None of 2 and 4 replicas keeps every objective of this trace: with 4 replicas, 0.0 % of interactive"
    )
    assert json.loads(nothing.stdout)["smallestThatKeepsAll"] is None
    assert "promises the tiers of this trace nothing" in json.loads(nothing.stdout)["found"][0]


def test_many_replicas_are_a_fluid(tmp_path: Path) -> None:
    """Above 64, or when it is asked for."""
    asked, many = (
        json.loads(simulate(file_of(tmp_path), *more, "--json").stdout)["about"][-1]
        for more in (("--model", "fluid"), ("--replicas", "66"))
    )

    assert ("fluid model, seed 1, 1 ingress",) * 2 == (asked, many)


def test_a_measured_profile_is_taken(tmp_path: Path) -> None:
    """A profile.json of bench; moves take what it measured, or what is said."""
    measured = tmp_path / "profile.json"
    measured.write_text(profile_text(moveSeconds={"start": 20.5, "stop": 1.5}))
    done = simulate(file_of(tmp_path), "--json", profile=str(measured))
    said = simulate(file_of(tmp_path), "--json", "--start-seconds", "7", profile=str(measured))

    assert done.exit_code in (0, 1), done.stderr
    assert "4 accelerators, a replica starts in 20.5 s" in json.loads(done.stdout)["about"]
    assert "4 accelerators, a replica starts in 7 s" in json.loads(said.stdout)["about"]


def test_a_shadow_moves_nothing_here_either(tmp_path: Path) -> None:
    """It is said, with what to write instead."""
    done = simulate(file_of(tmp_path, mode="shadow"), "--json")

    assert (
        "spec.mode is shadow, so nothing moves here either; enforce would show moves."
        in json.loads(done.stdout)["notes"]
    )


def test_accelerators_of_policy_and_profile_may_differ(tmp_path: Path) -> None:
    """It is said by which of them is counted."""
    done = simulate(file_of(tmp_path), "--json", profile="h100-70b")

    assert any(
        "1 accelerators by the policy and 4 by the profile" in note
        for note in json.loads(done.stdout)["notes"]
    )


def test_what_records_lack_is_told(tmp_path: Path) -> None:
    """Of a trace of records, those that no engine ran."""
    folder = write(tmp_path / "rec", [request(1), request(2, 1.0, answer=None)])
    done = simulate(file_of(tmp_path), "--json", trace=f"records:{folder}", profile="cpu")

    assert any("1 left out: ended as ok" in note for note in json.loads(done.stdout)["notes"])


def test_a_trace_that_is_refused_comes_with_the_next_step(tmp_path: Path) -> None:
    """Not with "correct what is said above"."""
    trace = tmp_path / "years.jsonl"
    line = '{"timestamp": %d, "input_length": 5, "output_length": 5, "hash_ids": [1]}\n'
    trace.write_text(line % 0 + line % (200 * 86_400_000))
    years = simulate(file_of(tmp_path), trace=f"mooncake:{trace}")

    assert 2 == years.exit_code
    assert (
        "error: this cannot be simulated: the trace lasts 200 days, and 100 are simulated at most\n"
        in years.stderr
    )
    assert (
        "mend: correct the time of its last request if that is wrong, or keep a part of the trace"
        in years.stderr
    )


@pytest.mark.parametrize(
    ("more", "error", "mend"),
    [
        (
            ("--profile", "nothing"),
            "--profile nothing: is not built in, and no file that can be read",
            "one of h100-8b",
        ),
        (("--trace", "generated:nothing"), "--trace: what is generated is 'nothing'", "--help` shows how"),
        (("--trace", "records:nowhere"), "--trace: nowhere/requests.jsonl is not there", "--help` shows how"),
        (
            ("--replicas", "1"),
            "--replicas: 1 replicas are not simulated\n",
            "mend: give 2, which is one for each pool, to 10,000\n",
        ),
        (("--replicas", "0"), "--replicas: 0 replicas are not simulated\n", "mend: give 2, which"),
        (("--replicas", "2,x"), "--replicas 2,x: 'x' is no whole number", "several with commas between"),
        (("--replicas", "2,2"), "2 is named twice", "give a number of replicas"),
        (("--replicas", "2,4", "--against", "static-50"), "--against stands beside one size", "name one"),
        (("--against", "none"), "--against none: is not known", "name some of all-plain, all-speculative"),
        (("--against", "twinpool"), "--against twinpool: is not known", "name some of all-plain"),
        (("--model", "exact"), "--model is exact", "write one of event, fluid"),
        (("--start-seconds", "0"), "--start-seconds is 0", "give a number above 0"),
        (("--start-seconds", "nan"), "--start-seconds is nan", "give a number above 0"),
        (("--accelerator-hour-price", "-1"), "--accelerator-hour-price is -1", "give a number above 0"),
        (("--at", "tomorrow"), "--at tomorrow: is no time with a zone from 1980 on", "2027-01-04T08:00:00Z"),
        (("--at", "2027-01-04T08:00:00"), "is no time with a zone", "2027-01-04T08:00:00Z"),
        (
            ("--model", "fluid", "--against", "static-50,all-plain"),
            "--against all-plain: it routes or moves capacity in another way",
            "name some of static-25, static-50, static-75, or write --model event with 64 replicas",
        ),
    ],
)
def test_what_cannot_be_simulated_is_told(
    tmp_path: Path, more: tuple[str, ...], error: str, mend: str
) -> None:
    """Exit code 2, with the option, its value and what to do; nothing is written."""
    out = tmp_path / "out"
    done = simulate(file_of(tmp_path), "--out", str(out), *more)

    assert 2 == done.exit_code
    assert error in done.stderr
    assert mend in done.stderr
    assert not (out / "scores.json").exists()


def test_without_engines_nothing_is_known(tmp_path: Path) -> None:
    """Exit code 2, with a profile that could be named."""
    done = simulate(file_of(tmp_path), profile=None)

    assert 2 == done.exit_code
    assert "error: --profile is missing" in done.stderr
    assert "h100-8b" in done.stderr


def test_a_profile_needs_both_pools(tmp_path: Path) -> None:
    """The pool that was not measured is named."""
    measured = tmp_path / "half.json"
    tree = json.loads(profile_text())
    del tree["pools"]["plain"]
    measured.write_text(json.dumps(tree))
    done = simulate(file_of(tmp_path), profile=str(measured))

    assert 2 == done.exit_code
    assert f"error: --profile {measured}: no plain engine was measured" in done.stderr


def test_a_policy_that_is_not_valid_is_refused_in_its_place(tmp_path: Path) -> None:
    """With its line, before anything else is read."""
    file = file_of(tmp_path, policy(2, 2).replace("max: 4", "max: many"))
    done = simulate(file)

    assert 2 == done.exit_code
    assert f"{file}:" in done.stderr
    assert f"error: {file} is no valid policy" in done.stderr


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """With the file."""
    done = simulate(tmp_path / "nothing.yaml")

    assert 2 == done.exit_code
    assert "nothing.yaml: No such file" in done.stderr


def test_prompts_that_fit_nowhere_are_refused(tmp_path: Path) -> None:
    """The CPU's engine holds 2,048 tokens."""
    trace = tmp_path / "long.jsonl"
    trace.write_text('{"timestamp": 0, "input_length": 5000, "output_length": 5, "hash_ids": [1]}\n')
    done = simulate(file_of(tmp_path), trace=f"mooncake:{trace}", profile="cpu")

    assert 2 == done.exit_code
    assert "every prompt of the trace is too long: cpu holds 2,048 tokens" in done.stderr


def test_a_folder_that_cannot_be_written_is_refused_before_anything_runs(tmp_path: Path) -> None:
    """A file stands in its way."""
    (tmp_path / "file").touch()
    done = simulate(file_of(tmp_path), "--out", str(tmp_path / "file"))

    assert 2 == done.exit_code
    assert "cannot be written" in done.stderr
    assert "getting the trace" not in done.stderr


def test_a_folder_in_which_a_file_cannot_be_written_is_refused_before_anything_runs(tmp_path: Path) -> None:
    """A folder has the name of the page."""
    (tmp_path / "out" / "report.html").mkdir(parents=True)
    done = simulate(file_of(tmp_path), "--out", str(tmp_path / "out"))

    assert 2 == done.exit_code
    assert f"error: {tmp_path / 'out' / 'report.html'}: is a folder, and a file goes there" in done.stderr
    assert "getting the trace" not in done.stderr


def test_the_report_of_a_measurement_is_spared(tmp_path: Path) -> None:
    """It has files of the same names."""
    out = tmp_path / "bench"
    out.mkdir()
    (out / "measurement.json").write_text("{}")
    (out / "report.html").write_text("measured")
    done = simulate(file_of(tmp_path), "--out", str(out))

    assert 2 == done.exit_code
    assert f"error: {out}: holds a measurement already: name another folder with --out" in done.stderr
    assert "measured" == (out / "report.html").read_text()


@pytest.mark.long
def test_a_second_run_leaves_no_plot_of_the_first(tmp_path: Path) -> None:
    """The first one had a rival, and the plots of it."""
    out = tmp_path / "out"
    simulate(file_of(tmp_path), "--out", str(out), "--against", "static-50")
    before = {path.name for path in (out / "plots").iterdir()}
    simulate(file_of(tmp_path), "--out", str(out))

    assert {"capacity-1.svg", "trade.svg"} <= before
    assert {"capacity-0.svg", "attainment.svg", "time-per-token.svg"} == {
        path.name for path in (out / "plots").iterdir()
    }


@pytest.mark.parametrize("option", ["--out", "--log"])
def test_an_empty_name_is_refused(option: str, tmp_path: Path) -> None:
    """A variable of a script that is not set would else stand for the working folder."""
    command = "simulate" if option == "--out" else "replay"
    done = run(
        command, str(file_of(tmp_path)), *(("--trace", SHORT) if option == "--out" else ()), option, ""
    )

    assert 2 == done.exit_code
    assert f"Invalid value for '{option}': the name is empty" in done.stderr
