"""What answers add up to: whole ones are averaged, all others only counted."""

from __future__ import annotations

import pytest

from app.demo.answers import Answer, Drafts, Objective, Phase
from app.demo.summary import (
    ByPhase,
    Copies,
    Row,
    Spread,
    Total,
    by_phase,
    copies,
    percentile,
    rows,
    slowest,
    totals,
)
from autoscaling.types import Role, Tier
from tests.app.demo.made import answer, cut, failed, refused

NONE = Objective()


def test_a_row_for_each_tier_and_pool() -> None:
    """Medians, tokens by the span of the row, acceptance and tokens per draft as sums, reasons by number."""
    answers = [
        answer(ttft_s=0.2, stream_s=1.0, tokens=11, drafts=Drafts(4, 16, 6)),
        answer(ttft_s=0.4, stream_s=2.0, tokens=11, drafts=Drafts(6, 24, 24), began_s=2.5, e2e_s=2.5),
        answer(pool=Role.PLAIN, reason="spill", tokens=None),
        failed(ttft_s=99.0),
        refused(Tier.INTERACTIVE),
    ]

    assert (
        Row(
            Tier.INTERACTIVE,
            Role.SPECULATIVE,
            answers=2,
            ttft=Spread(0.30000000000000004, None),
            tpot=Spread(0.15000000000000002, None),
            tokens_per_s=4.4,
            acceptance=0.75,
            tokens_per_draft=4.0,
            reasons={"tier_interactive": 2},
        ),
        Row(
            Tier.INTERACTIVE,
            Role.PLAIN,
            answers=1,
            ttft=Spread(0.5, None),
            tpot=Spread(None, None),
            tokens_per_s=None,
            acceptance=None,
            tokens_per_draft=None,
            reasons={"spill": 1},
        ),
    ) == rows(answers)


def test_a_95th_percentile_needs_twenty_answers() -> None:
    """Of fewer it says nothing."""
    many = [answer(Tier.BATCH, ttft_s=float(number)) for number in range(1, 21)]

    assert Spread(10.0, None) == rows(many[:19])[0].ttft
    assert Spread(10.5, 19.05) == rows(many)[0].ttft


def test_percentiles_are_interpolated() -> None:
    """Between neighbours, and the value itself when there is one."""
    assert pytest.approx([1.0, 2.5, 3.85, 7.0]) == [
        percentile([4.0, 1.0, 3.0, 2.0], 0.0),
        percentile([4.0, 1.0, 3.0, 2.0], 0.5),
        percentile([4.0, 1.0, 3.0, 2.0], 0.95),
        percentile([7.0], 0.95),
    ]


def test_a_total_counts_every_outcome_apart() -> None:
    """Of three refused two were sent again, so two are lost with the failed one; the cut one is not."""
    batch = [
        answer(Tier.BATCH),
        answer(Tier.BATCH, ttft_s=61.0),
        refused(again=True),
        refused(again=True),
        refused(),
        failed(Tier.BATCH),
        cut(),
    ]
    objectives: dict[Tier, Objective | None] = {
        Tier.INTERACTIVE: NONE,
        Tier.STANDARD: None,
        Tier.BATCH: Objective(ttft_s=60.0),
    }
    nothing = dict.fromkeys(("requests", "answered", "refused", "again", "failed", "cut", "met", "missed"), 0)
    found = totals(batch, objectives)

    assert (
        Total(Tier.INTERACTIVE, **nothing, codes={}),
        Total(Tier.STANDARD, **nothing, codes={}),
        Total(
            Tier.BATCH,
            requests=7,
            answered=2,
            refused=3,
            again=2,
            failed=1,
            cut=1,
            met=1,
            missed=5,
            codes={"no_capacity": 3, "stream_interrupted": 1},
        ),
    ) == found
    assert (None, 0, 1 / 6, 2) == (found[0].attainment, found[0].lost, found[2].attainment, found[2].lost)


def test_without_an_objective_nothing_is_met_or_missed() -> None:
    """The attainment is unknown, not 100 %."""
    found = totals([answer()], dict.fromkeys(Tier, NONE))[0]

    assert (1, 0, 0, None) == (found.answered, found.met, found.missed, found.attainment)


def test_one_tier_by_phase() -> None:
    """In the order of the phases, by the one in which the request was sent."""
    answers = [answer(phase=Phase.BUSY, ttft_s=2.0), answer(phase=Phase.QUIET), answer(Tier.BATCH), failed()]

    assert (
        ByPhase(Phase.QUIET, 1, Spread(0.5, None), Spread(0.1, None)),
        ByPhase(Phase.BUSY, 1, Spread(2.0, None), Spread(0.1, None)),
    ) == by_phase(answers, Tier.INTERACTIVE)


def copied(role: Role, stream_s: float | None) -> Answer:
    drafts = Drafts(10, 40, 30) if role is Role.SPECULATIVE else None
    return answer(pool=role, stream_s=stream_s, drafts=drafts)


def test_the_copying_task_is_compared_by_medians() -> None:
    """Of the whole answers of the pool that was named."""
    measured = [
        copied(Role.SPECULATIVE, 0.1),
        copied(Role.PLAIN, 0.4),
        copied(Role.SPECULATIVE, 0.3),
        failed(),
    ]
    found = copies(measured)

    assert (
        Copies({Role.SPECULATIVE: 2, Role.PLAIN: 1}, {Role.SPECULATIVE: 0.02, Role.PLAIN: 0.04}, 0.75)
        == found
    )
    assert 0.5 == found.ratio


def test_a_comparison_needs_both_pools() -> None:
    """With one of them there is no ratio."""
    assert None is copies([copied(Role.SPECULATIVE, 0.1)]).ratio
    assert None is copies([copied(Role.SPECULATIVE, 0.1), copied(Role.PLAIN, None)]).ratio


def test_the_slowest_interactive_answer() -> None:
    """Whole and interactive ones only; None when there is none."""
    answers = [
        answer(id="a", e2e_s=1.0),
        answer(id="b", e2e_s=3.0),
        answer(Tier.BATCH, id="c", e2e_s=9.0),
        failed(id="d", e2e_s=9.0),
    ]
    found = slowest(answers)

    assert found is not None
    assert "b" == found.id
    assert None is slowest([failed()])
