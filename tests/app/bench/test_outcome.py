"""What a measurement comes to: files, exit code, words for a terminal, a document for programs."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from app.bench.made import UNFINISHED
from app.bench.outcome import NothingFoundError, Outcome, conclude, default_objectives
from app.bench.summary import fit_words, pools_words, render
from autoscaling.profile import read_profile
from autoscaling.profiling.findings import PoolAnswer, PoolPrediction
from autoscaling.types import Role, Tier
from tests.app.bench.findings_sample import measurement, sample, synthetic

FOLDER = Path("out")


def outcome(**changes) -> Outcome:
    return Outcome(replace(sample(), **changes), FOLDER, FOLDER / "profile.json")


def refused():
    fits = dict(sample().fits)
    fits[Role.PLAIN] = replace(fits[Role.PLAIN], accepted=False, refused_because="too few cells")
    return fits


def text_of(found: Outcome) -> str:
    console = Console(width=160, color_system=None)
    with console.capture() as capture:
        console.print(render(found))
    return capture.get()


def test_all_files_are_written(tmp_path):
    """Profile, both reports, and each plot that the Markdown shows; nothing half is left."""
    found = conclude(measurement(), tmp_path, None, 2.5)
    names = {path.name for path in tmp_path.iterdir()}

    assert {"profile.json", "report.html", "report.md", "plots"} == names
    assert read_profile((tmp_path / "profile.json").read_text(), "p").costs.keys() == {*Role}
    markdown = (tmp_path / "report.md").read_text()
    plots = {path.name for path in (tmp_path / "plots").iterdir()}
    assert plots
    assert all(f"plots/{name}" in markdown for name in plots)
    assert tmp_path / "profile.json" == found.profile


def test_a_measurement_without_a_full_batch_comes_to_nothing(tmp_path):
    """Nothing is written then."""
    without = replace(
        measurement(), runs=tuple(replace(run, steps=None, tokens_per_s=None) for run in measurement().runs)
    )
    with pytest.raises(NothingFoundError, match="nothing can be concluded from this measurement"):
        conclude(without, tmp_path, None, None)
    assert [] == list(tmp_path.iterdir())


def test_the_objectives_are_those_of_the_default_policy():
    """For a tier that promises a time per token."""
    assert {Tier.INTERACTIVE: 0.15, Tier.STANDARD: 0.4} == default_objectives()


def test_one_refused_fit_is_exit_code_1():
    """A profile that cannot be acted on is a finding; so is none at all."""
    assert 0 == outcome().exit_code
    assert 1 == outcome(fits=refused()).exit_code
    assert 1 == outcome(fits={}).exit_code


def test_the_document_is_json_and_has_the_answer():
    """Unknown is null; a margin without a rival, which JSON has no number for, is null too."""
    alone = PoolPrediction(0.02, {PoolAnswer.ONE_PLAIN: 10.0}, PoolAnswer.ONE_PLAIN, math.inf)
    document = json.loads(json.dumps(outcome(pools=(alone,)).document(), allow_nan=False))

    assert [{"tpotSeconds": 0.02, "answer": "one_plain_pool", "margin": None}] == document["pools"]
    assert "out/profile.json" == document["files"]["profile"]
    assert {"speculative", "plain"} == set(document["fits"])


def test_synthetic_acceptance_is_said_first():
    """It is not the drafter's."""
    found = Outcome(synthetic(), FOLDER, FOLDER / "profile.json")

    assert "acceptance was prescribed (synthetic)" in text_of(found).partition("answer")[0]
    assert found.document()["syntheticAcceptance"]


def test_the_terminal_says_how_to_use_the_profile():
    """As a command that can be pasted, and where the report is."""
    spaced = Outcome(sample(), FOLDER, Path("my out/profile.json"))

    assert "          twinpool serve --profile out/profile.json" in text_of(outcome())
    assert "          twinpool serve --profile 'my out/profile.json'" in text_of(spaced)
    assert "next      set the policy values above" in text_of(outcome())
    assert "report    out/report.html" in text_of(outcome())


def test_the_terminal_has_the_headline_of_the_report():
    """And what was measured for sure, then every K."""
    found = text_of(outcome())

    assert "answer    For copy (K = 4) speculation pays up to about 10 sequences at once" in found
    assert "measured  chat (K = 2) loses with 4, 8 and 16 at once" in found
    assert "by K      copy, K = 2: pays up to about 14 sequences at once (12 to 16)" in found
    assert "chat, K = 2 and 4: does not pay at any batch that was measured, up to 16 sequences" in found


def test_of_a_refused_fit_the_terminal_tells_what_was_measured():
    """No K, and no serving with such a profile; what to do next instead."""
    made = replace(sample().measurement, quick=True)
    found = text_of(outcome(fits=refused(), crossovers=(), pools=(), measurement=made))

    assert "answer    Up to which batch speculation pays cannot be told: the cost model of the plain" in found
    assert "by K" not in found
    assert "next      twinpool bench --quick --rounds 8, with nothing else on the machine" in found
    assert "would take the limit of the speculative pool from it, and nothing else" in found


def test_what_disturbed_or_ended_a_refused_measurement_is_mended_first():
    """Other processes, then an end before its time."""
    made = replace(sample().measurement, machine={"cores": "2"}, others_cores=(1.0, 1.0))
    cut = replace(made, others_cores=(), cut=(UNFINISHED,))

    assert "stop the other processes" in text_of(outcome(fits=refused(), measurement=made))
    assert "measure again, to the end" in text_of(outcome(fits=refused(), measurement=cut))
    assert "for narrower intervals" in text_of(outcome(measurement=cut))


def test_what_was_left_out_is_told():
    """A terminal escape in it is not obeyed."""
    cut = replace(sample().measurement, cut=("K = 0 \x1b[2J",))

    assert "left out  K = 0 \\x1b[2J" in text_of(outcome(measurement=cut))


def test_a_refused_fit_says_why():
    """With its errors."""
    fit = replace(refused()[Role.PLAIN], error=0.021, hold_out_error=0.2)

    assert (
        "plain: off by 2.1% on average, 20.0% on cells it had not seen: not good enough: too few cells"
        == fit_words(fit)
    )


def test_neighbouring_objectives_with_one_answer_share_a_line():
    """Margins from the least to the largest; none without a rival."""
    two, plain = PoolAnswer.TWO_POOLS, PoolAnswer.ONE_PLAIN
    found = [
        PoolPrediction(0.02, {}, plain, math.inf),
        PoolPrediction(0.03, {}, two, 1.3),
        PoolPrediction(0.04, {}, two, 1.1),
        PoolPrediction(0.05, {}, plain, 1.0),
    ]

    assert [
        "20 ms per token: one plain pool",
        "30 to 40 ms per token: two pools, 1.10 to 1.30 times the next best",
        "50 ms per token: one plain pool, as good as the next best within 5 %",
    ] == list(pools_words(found))
    assert ["20 ms per token: no pools have half of the interactive tokens in time"] == list(
        pools_words([replace(found[0], in_time=0.4)])
    )
