"""The verdict on each tier, its words and the exit code."""

from __future__ import annotations

from typing import Any

import pytest

from app.demo.answers import Objective
from app.demo.summary import Copies, Total
from app.demo.verdict import TierVerdict, Verdict, compared, exit_code, judge, percent, promised
from autoscaling.types import Role, Tier

NONE = Objective()
BOTH = Objective(1.0, 0.05)


def total(tier: Tier = Tier.INTERACTIVE, **counts: Any) -> Total:
    names = ("requests", "answered", "refused", "again", "failed", "cut", "met", "missed")
    return Total(tier, **(dict.fromkeys(names, 0) | {"codes": {}} | counts))


@pytest.mark.parametrize(
    ("verdict", "words", "found", "objective"),
    [
        (
            Verdict.MET,
            "interactive: met, 95 of 100 (95 %) within TTFT 1 s and TPOT 50 ms; asked are 95 %",
            total(requests=100, answered=100, met=95, missed=5),
            BOTH,
        ),
        (
            Verdict.MISSED,
            "interactive: MISSED, 949 of 1000 (94 %) within TTFT 1 s and TPOT 50 ms; asked are 95 %"
            "; lost: 1 failed (engine_dead 1)",
            total(requests=1000, answered=999, failed=1, met=949, missed=51, codes={"engine_dead": 1}),
            BOTH,
        ),
        (
            Verdict.MET,
            "interactive: met, 9 of 9 (100 %) within TTFT 1 s; asked are 95 %"
            "; 1 without a time per token not judged",
            total(requests=11, answered=10, cut=1, met=9),
            Objective(ttft_s=1.0),
        ),
        (
            Verdict.NO_OBJECTIVE,
            "no objective set for batch: 34 answers, none lost",
            total(Tier.BATCH, requests=37, answered=34, refused=2, again=2, cut=1),
            NONE,
        ),
        (
            Verdict.LOST,
            "no objective set for batch, and 3 of its requests lost: 1 refused, 2 failed"
            " (no_capacity 2, ClientPayloadError 2)",
            total(
                Tier.BATCH,
                requests=9,
                answered=5,
                refused=2,
                again=1,
                failed=2,
                codes={"no_capacity": 2, "ClientPayloadError": 2},
            ),
            NONE,
        ),
        (
            Verdict.UNKNOWN,
            "batch: cannot tell, no request of it came to an end",
            total(Tier.BATCH, requests=2, cut=2),
            BOTH,
        ),
        (
            Verdict.UNKNOWN,
            "interactive: cannot tell, the objectives of the policy could not be read",
            total(requests=1, answered=1),
            None,
        ),
        (
            Verdict.UNKNOWN,
            "interactive: cannot tell, no answer tells its time per token; promised is TPOT 50 ms",
            total(requests=1, answered=1),
            Objective(tpot_s=0.05),
        ),
    ],
)
def test_a_verdict_says_what_it_rests_on(
    verdict: Verdict, words: str, found: Total, objective: Objective | None
) -> None:
    """95 % of the judged requests inside the objective; without one, that nothing was lost."""
    assert TierVerdict(found.tier, verdict, words) == judge(found, objective)


@pytest.mark.parametrize(
    ("code", "complete", "verdicts"),
    [
        (0, True, [Verdict.MET, Verdict.NO_OBJECTIVE, Verdict.MET]),
        (1, True, [Verdict.MET, Verdict.LOST, Verdict.UNKNOWN]),
        (1, False, [Verdict.MISSED]),
        (2, True, [Verdict.MET, Verdict.UNKNOWN]),
        (2, False, [Verdict.MET]),
    ],
)
def test_the_exit_code_is_the_worst_that_is_certain(
    code: int, complete: bool, verdicts: list[Verdict]
) -> None:
    """A miss is a finding, also of a run that ended early; a good half of a run is no verdict."""
    assert code == exit_code((TierVerdict(Tier.BATCH, one, "") for one in verdicts), complete=complete)


def times(speculative: float | None, plain: float | None) -> Copies:
    return Copies(
        {Role.SPECULATIVE: 3, Role.PLAIN: 2}, {Role.SPECULATIVE: speculative, Role.PLAIN: plain}, 0.82
    )


@pytest.mark.parametrize(
    ("words", "speculative", "plain"),
    [
        ("with drafts 3.7 times as fast", 0.008, 0.0296),
        ("speculation made no difference here", 0.0196, 0.02),
        ("speculation made no difference here", 0.021, 0.02),
        ("speculation did NOT help here: with drafts 1.5 times as slow", 0.03, 0.02),
    ],
)
def test_the_copying_task_is_told_as_it_was(words: str, speculative: float, plain: float) -> None:
    """Faster, the same within 5 %, or slower."""
    assert (
        f"the same copying task, one at a time: speculative {speculative * 1000:.1f} ms per token, "
        f"plain {plain * 1000:.1f} ms: {words} (2 rounds, medians, 82 % of the drafts accepted)"
    ) == compared(times(speculative, plain))


@pytest.mark.parametrize(
    ("pools", "speculative", "plain"),
    [("speculative and plain", None, None), ("plain", 0.01, None), ("plain", 0.01, 0.0)],
)
def test_what_was_not_measured_is_not_compared(
    pools: str, speculative: float | None, plain: float | None
) -> None:
    """And the line says which pool gave no time."""
    assert f"the same copying task on both pools: not compared, no time from {pools}" == compared(
        times(speculative, plain)
    )


def test_percents_are_rounded_down() -> None:
    """94.9 % must not read as the 95 % that are asked."""
    assert ["94 %", "95 %", "29 %", "100 %"] == [percent(share) for share in (0.949, 0.95, 0.29, 1.0)]


def test_promises_in_words() -> None:
    """Each as far as it goes."""
    assert ["TTFT 1 s and TPOT 50 ms", "TPOT 50 ms", "none set", "unknown"] == [
        promised(one) for one in (BOTH, Objective(tpot_s=0.05), NONE, None)
    ]
