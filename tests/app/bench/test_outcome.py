"""What a measurement comes to: files, exit code, words for a terminal, a document for programs."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from app.bench.outcome import NothingFoundError, Outcome, conclude, default_objectives
from app.bench.summary import crossovers_words, fit_words, pools_words, render
from autoscaling.profile import read_profile
from autoscaling.profiling.findings import Crossover, Estimate, PoolAnswer, PoolPrediction, Verdict
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

    assert "acceptance was prescribed (synthetic)" in text_of(found).splitlines()[0]
    assert found.document()["syntheticAcceptance"]


def test_the_terminal_says_how_to_use_the_profile():
    """And where the report is."""
    assert "profile   out/profile.json  (twinpool serve --profile out/profile.json)" in text_of(outcome())
    assert "report    out/report.html" in text_of(outcome())


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


def test_kinds_and_lengths_with_one_outcome_share_a_line():
    """So the answer fits on one screen with eight kinds of prompts, too."""
    found = [
        Crossover("chat", 2, Verdict.PAYS_BELOW, Estimate(4.04, 3.0, None)),
        Crossover("chat", 4, Verdict.NEVER_PAYS, None),
        *(Crossover(name, k, Verdict.PAYS_ALWAYS, None) for name in ("code", "copy") for k in (2, 4)),
        Crossover("mean", 2, Verdict.MIXED, None),
    ]

    assert [
        "chat, K = 2: below 4.0 (3.0 to ?) sequences",
        "chat, K = 4: at no batch that was measured",
        "code, copy, K = 2, 4: at every batch that was measured",
        "mean, K = 2: at some batches and not at others; see the report",
    ] == list(crossovers_words(found))


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
        "50 ms per token: one plain pool, 1.00 times the next best",
    ] == list(pools_words(found))
