"""Which objectives were kept, which policy is best, and what to do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.simulation.report.advice import advice
from app.simulation.report.answer import details, lead
from app.simulation.report.judged import best, misses, promised, span, tokens_per_hour
from app.simulation.report.rows import promises_rows
from app.simulation.report.subject import Promise
from app.simulation.scores import Scores
from autoscaling.types import Tier
from tests.app.simulation.report.samples import BACK, LATE, MOVE, moment, pools, scores, subject, tier

KEPT = "mine keeps every objective of this trace: 98.0 % of interactive requests are in time."


def test_an_objective_is_kept_by_95_of_100() -> None:
    """Exactly so many are enough, one fewer is not."""
    at, below = (subject({"mine": scores(tier(1000, in_time))}) for in_time in (950, 949))

    assert () == misses(at, "mine")
    assert [(Tier.INTERACTIVE, 0.949)] == [(miss.tier, miss.attainment) for miss in misses(below, "mine")]


def test_a_tier_without_promise_or_requests_misses_nothing() -> None:
    """Batch is promised nothing here, and nobody asked for standard."""
    found = replace(scores(), tiers={Tier.BATCH: tier(10, 1), Tier.STANDARD: tier(0, 0)})
    about = subject({"mine": found}, promises={Tier.STANDARD: Promise(1.0)})

    assert () == misses(about, "mine")
    assert () == promised(about, "mine")
    assert ("mine promises the tiers of this trace nothing; 100.0 % of the requests are answered.",) == lead(
        about
    )


def test_the_answer_says_whether_everything_was_kept() -> None:
    """With the share of each tier that is promised something."""
    assert (KEPT,) == lead(subject())
    assert () == details(subject())


def test_the_answer_says_what_was_missed_and_by_what() -> None:
    """Percentiles against their objectives, and how many were refused."""
    slow = replace(tier(in_time=900, refused=20), tpot_p95_s=0.061, ttft_p95_s=1.24)
    found = subject({"mine": scores(slow)})

    assert (
        "mine misses an objective on this trace: 90.0 % of interactive requests are in time, and 95.0 % are "
        "promised.",
    ) == lead(found)
    assert (
        "Interactive: the 95th percentile of the time per token is 61.0 ms, promised are 50.0 ms, the 95th "
        "percentile of the time to the first token is 1.24 s, promised are 1.00 s and 2.0 % were refused.",
    ) == details(found)


def test_of_those_that_keep_everything_the_one_with_most_tokens_per_hour_is_best() -> None:
    """The other one used half an accelerator-hour more for the same tokens."""
    found = subject({"mine": scores(hours=4.5), "other": scores(hours=4.0)})

    assert "other" == best(found)
    assert (
        KEPT,
        "Other is better: it keeps every objective and brings 90,000 answer tokens per accelerator-hour.",
    ) == lead(found)


def test_what_was_asked_about_wins_a_tie() -> None:
    """Closer than one in a hundred nobody is better."""
    found = subject({"mine": scores(hours=4.03), "other": scores(hours=4.0)})

    assert "mine" == best(found)
    assert (KEPT, "The other is not better.") == lead(found)


def test_who_keeps_everything_is_better_than_who_is_cheap() -> None:
    """Whatever it costs."""
    found = subject({"mine": replace(LATE, accelerator_hours=1.0), "other": scores(hours=9.0)})

    assert "other" == best(found)


def test_where_nobody_keeps_everything_the_closest_is_best() -> None:
    """By its worst tier."""
    closer = scores(tier(in_time=940))
    found = subject({"mine": LATE, "other": closer})

    assert "other" == best(found)
    assert "Other is better: it misses less, 94.0 % of interactive requests are in time." == lead(found)[1]


def test_who_knows_the_trace_is_a_bound_and_never_advice() -> None:
    """It is told apart, and with nobody else there is nothing to compare."""
    found = subject({"mine": scores(), "hindsight": scores(hours=2.0)}, foresight=frozenset({"hindsight"}))

    assert best(found) is None
    assert (KEPT,) == lead(found)
    assert (
        "hindsight knows the trace beforehand and is a bound: it keeps every objective and brings 180,000 "
        "answer tokens per accelerator-hour.",
    ) == details(found)


def test_what_was_recorded_is_compared_too() -> None:
    """In words of its own."""
    found = subject({"mine": LATE, "recorded": scores()}, recorded=frozenset({"recorded"}))

    assert lead(found)[1].startswith("What was recorded is better: it keeps every objective")


@pytest.mark.parametrize(
    ("demand", "expected"),
    [
        ((40, 60), "Give it more accelerators: in 30 of the 30 intervals in which interactive was late"),
        ((20, 30), "Give the speculative pool its replicas sooner: in 30 of the 30 intervals"),
        ((10, 30), "Give it more accelerators, or promise interactive less: replicas had room"),
    ],
)
def test_advice_follows_from_the_pools_while_it_was_late(demand: tuple[int, int], expected: str) -> None:
    """Both full, its own pool short, or neither."""
    late = [moment(10.0 * at, demand=pools(*demand), attainment=0.5) for at in range(30)]
    fine = [moment(10.0 * at) for at in range(30, 60)]
    found = subject({"mine": scores(tier(in_time=900), series=late + fine)})

    assert advice(found, "mine")[0].startswith(expected)


def test_a_late_interval_counts_only_while_someone_came() -> None:
    """An unknown share is neither."""
    series = [moment(0.0, demand=pools(40, 60), attainment=None), moment(10.0, attainment=0.9)]
    found = subject({"mine": scores(tier(in_time=900), series=series)})

    assert advice(found, "mine")[0].startswith("Give it more accelerators, or promise")


def test_moves_that_undo_each_other_are_told() -> None:
    """From four moves on, when half of them were taken back."""
    few, many = (subject({"mine": scores(moves=(MOVE, BACK) * times)}) for times in (1, 2))

    assert not any("to and fro" in sentence for sentence in advice(few, "mine"))
    assert advice(many, "mine")[0].startswith("Let capacity go to and fro less: 3 of 4 moves undid")


def test_a_move_that_was_given_up_is_told() -> None:
    """With the guard that gave it up."""
    found = subject({"mine": scores(moves=(replace(MOVE, state="timed_out"),))})

    assert (
        "Look at the moves: 1 took longer than spec.guardrails.moveTimeoutSeconds and was given up."
        in advice(found, "mine")
    )


def test_idle_accelerators_are_told() -> None:
    """Half of all capacity is enough here; three quarters are not, nor is what comes near to a promise."""
    quick = replace(tier(), tpot_p95_s=0.02)
    idle, near = subject({"mine": scores(quick)}), subject()
    busy = subject({"mine": scores(quick, series=[moment(0.0, demand=pools(12, 48))])})

    assert advice(idle, "mine")[0].startswith(
        "Fewer accelerators may do: in 99 of 100 intervals no more than 50.0 %"
    )
    for one in (busy, near):
        assert ("Nothing has to be changed for this trace.",) == advice(one, "mine")


def test_tokens_of_no_accelerators_are_unknown() -> None:
    """Never infinite."""
    assert tokens_per_hour(scores(hours=0.0)) is None
    assert pytest.approx(90_000.0) == tokens_per_hour(scores())


def test_seconds_are_told_in_the_unit_that_people_use() -> None:
    """Below one second in milliseconds."""
    assert ["45.0 ms", "1.20 s", "300 s"] == [span(seconds) for seconds in (0.045, 1.2, 300.0)]


def test_reversals_are_counted_between_neighbours() -> None:
    """There, back and there again are two."""
    found: Scores = scores(moves=(MOVE, BACK, MOVE))

    assert 2 == found.reversals


def test_policies_may_promise_different_things() -> None:
    """Each is judged by its own: the other one promises batch something too."""
    found = subject(
        {"mine": scores(), "other": scores(tier(in_time=900))},
        own_promises={"mine": {Tier.BATCH: Promise(60.0)}},
    )

    assert ((Tier.BATCH,), (Tier.INTERACTIVE,)) == (promised(found, "mine"), promised(found, "other"))
    assert ((), 1) == (misses(found, "mine"), len(misses(found, "other")))
    assert (
        "interactive, by mine: nothing",
        "interactive, by other: first token within 1.00 s, 50.0 ms per token, for 95.0 %",
        "batch, by mine: first token within 60.0 s, for 95.0 %",
        "batch, by other: nothing",
    ) == promises_rows(found)
