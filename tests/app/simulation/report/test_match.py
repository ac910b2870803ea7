"""A simulation beside the record of the same requests."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.simulation.report.document import as_json
from app.simulation.report.match import Match, match
from app.simulation.report.page import markdown
from app.simulation.report.rows import match_rows
from app.simulation.scores import PoolScore, Scores, TierScore
from autoscaling.types import Role
from tests.app.simulation.report.samples import PROMISES, scores, subject, tier

POOLS = {Role.SPECULATIVE: PoolScore(1000, 980, 60_000), Role.PLAIN: PoolScore(0, 0, 300_000)}


def real(interactive: TierScore | None = None) -> Scores:
    """98 % of 1000 interactive requests in time."""
    return replace(scores(interactive), pools=POOLS)


def found(
    simulated: TierScore | None = None, recorded: TierScore | None = None, same: float | None = 0.97
) -> Match:
    return match(real(simulated), real(recorded), PROMISES, same)


def test_tiers_and_pools_stand_side_by_side() -> None:
    """Attainment of what was promised something, and tokens; what a model does not tell is unknown."""
    fluid = match(replace(scores(), pools={}), real(), PROMISES, 1.0)

    assert (
        ("interactive", "1,000", "95.0 %", "98.0 %", "16.7", "16.7"),
        ("batch", "500", "-", "-", "83.3", "83.3"),
        ("speculative pool", "-", "98.0 %", "98.0 %", "16.7", "16.7"),
        ("plain pool", "-", "-", "-", "83.3", "83.3"),
    ) == match_rows(found(tier(in_time=950)))
    assert ("speculative pool", "-", "-", "98.0 %", "-", "16.7") == match_rows(fluid)[2]


def test_what_comes_near_may_be_trusted() -> None:
    """Up to five points of attainment and a tenth of the tokens; how near is said."""
    near = found(tier(in_time=960, tokens=57_000))

    assert near.trusted
    assert (
        "The simulation may be trusted where it shows larger differences than 2.0 points of attainment and "
        "5.0 % of "
        "a tier's answer tokens: so near it comes to the record, in which 97.0 % of the decisions are this "
        "policy's.",
    ) == near.sentences


def test_differences_that_chance_makes_are_never_trusted() -> None:
    """A record that is met to the last request is met by luck too."""
    assert "larger differences than 1.0 points of attainment and 1.0 % of" in found().sentences[0]


@pytest.mark.parametrize("simulated", [tier(in_time=900), tier(tokens=30_000)])
def test_what_is_far_off_may_not(simulated: TierScore) -> None:
    """By attainment or by tokens; with what to do."""
    far = found(simulated)

    assert far.trusted is False
    assert far.sentences[0].startswith("Do not trust the simulation's answer: it is off by up to ")
    assert "measure a profile on the machines of the record with `twinpool bench`" in far.sentences[0]


@pytest.mark.parametrize(("same", "words"), [(0.5, "is 50.0 %"), (None, "is not known")])
def test_another_policy_than_the_recorded_one_tells_nothing_of_the_model(
    same: float | None, words: str
) -> None:
    """The difference may be what the edit is for."""
    other = found(tier(in_time=700), same=same)

    assert other.trusted is None
    assert (
        f"recorded decisions that it makes again {words}; replay the policy that was in force"
        in other.sentences[0]
    )


def test_a_handful_of_requests_tells_nothing() -> None:
    """It is said how many there are."""
    few = found(tier(9, 9), tier(9, 8))

    assert few.trusted is None
    assert few.sentences[0].startswith(
        "Whether the simulation may be trusted cannot be told from this record: "
    )
    assert few.sentences[1].startswith(
        "The record has only 9 interactive requests: with fewer than 100 of a tier"
    )


def test_engines_of_another_kind_are_remarked() -> None:
    """By their time per token, which records have."""
    slow = found(recorded=replace(tier(), tpot_p50_s=0.12))

    assert slow.sentences[-1].startswith(
        "The recorded engines took 120 ms per token of the middle interactive request, those of the profile "
        "take 22.0"
    )
    assert not any("recorded engines" in sentence for sentence in found().sentences)


def test_the_report_says_it_too() -> None:
    """A section of its own, and JSON for programs; without a record there is none."""
    about = subject(match=found(tier(in_time=960)))
    values = as_json(about)["match"]

    assert "## How near the simulation comes to the record" in markdown(about).splitlines()
    assert (True, 0.97) == (values["trusted"], values["decisionsMadeAgain"])
    assert {"simulated": 0.96, "recorded": 0.98} == values["sides"][0]["attainment"]
    assert as_json(subject())["match"] is None
    assert "How near" not in markdown(subject())
