"""Where speculation pays, in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.bench.report.where import grouped, headline, pays_words
from autoscaling.profiling.findings import (
    Crossover,
    Estimate,
    Findings,
    PoolAnswer,
    PoolPrediction,
    PoolsAt,
    Verdict,
)
from autoscaling.profiling.load import Load
from tests.app.bench.findings_sample import empty, sample

BELOW = Verdict.PAYS_BELOW


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (
            Crossover("a", 4, Verdict.PAYS_ALWAYS, None, sure=True, largest=16),
            "seems to pay at every batch that was measured, up to 16 sequences",
        ),
        (
            Crossover("a", 4, Verdict.PAYS_ALWAYS, None, sure=True, largest=16, gains=(1, 4)),
            "pays at every batch that was measured, up to 16 sequences, for sure with 1 and 4",
        ),
        (
            Crossover("a", 4, Verdict.PAYS_ALWAYS, None, sure=True, largest=4, only=True),
            "seems to pay at the only batch that was measured, 4 sequences",
        ),
        (
            Crossover("a", 4, BELOW, Estimate(4.2, None, 13.0), largest=16, gains=(2,)),
            "may pay up to about 4.2 sequences at once, at most 13, for sure with 2",
        ),
        (
            Crossover("a", 4, Verdict.NEVER_PAYS, None, sure=True, largest=1),
            "does not pay at any batch that was measured, up to 1 sequence",
        ),
        (Crossover("a", 4, Verdict.MIXED, None), "pays at some batches and not at others"),
        (
            Crossover("a", 4, Verdict.PAYS_ALWAYS, None, sure=False, largest=16),
            "may or may not pay: the rounds do not agree on it",
        ),
        (Crossover("a", 4, BELOW, None), "pays up to some batch"),
        (
            Crossover("a", 4, BELOW, Estimate(4.2, 3.0, 6.04), largest=16),
            "pays up to about 4.2 sequences at once (3.0 to 6.0)",
        ),
        (
            Crossover("a", 4, BELOW, Estimate(4.2, None, 13.0), largest=16),
            "may pay up to about 4.2 sequences at once, at most 13, and perhaps at none",
        ),
        (
            Crossover("a", 4, BELOW, Estimate(4.2, 2.0, None), largest=16),
            "pays up to about 4.2 sequences at once, at least 2.0, and perhaps at every batch that was "
            "measured, up to 16 sequences",
        ),
        (
            Crossover("a", 4, BELOW, Estimate(4.2, 2.0, 19.0), largest=16),
            "pays up to about 4.2 sequences at once, at least 2.0, and perhaps at every batch that was "
            "measured, up to 16 sequences",
        ),
        (
            Crossover("a", 4, BELOW, Estimate(4.2), largest=16),
            "seems to pay up to about 4.2 sequences at once",
        ),
    ],
)
def test_an_outcome_is_said_with_what_is_open(found: Crossover, expected: str) -> None:
    """An open lower end may be none, an open upper end all batches that were measured."""
    assert expected == pays_words(found)


@pytest.mark.parametrize(
    ("sequences", "expected"),
    [
        (Estimate(26.9, 5.0, None), "seems to pay {}, and perhaps only up to about 5.0"),
        (Estimate(26.9, 17.0, None), "seems to pay {}"),
        (Estimate(26.9), "seems to pay {}"),
        (Estimate(26.9, None, 40.0), "may pay {}, and perhaps at none"),
    ],
)
def test_beyond_every_measured_batch_no_number_is_given(sequences: Estimate, expected: str) -> None:
    """16 were measured: where the models cross at 26.9 nobody has looked."""
    words = "at every batch that was measured, up to 16 sequences"

    assert expected.format(words) == pays_words(Crossover("a", 4, BELOW, sequences, True, 16))


def test_kinds_and_lengths_with_one_outcome_share_a_line() -> None:
    """So the answer fits on one screen with eight kinds of prompts; what pays furthest first."""
    found = [
        Crossover("chat", 4, Verdict.NEVER_PAYS, None),
        *(Crossover(name, k, Verdict.PAYS_ALWAYS, None) for name in ("code", "copy") for k in (2, 4)),
        Crossover("mean", 2, Verdict.MIXED, None),
        Crossover("poems", 2, Verdict.PAYS_ALWAYS, None, sure=False),
    ]

    assert [
        ("code and copy", "2 and 4", "seems to pay at every batch that was measured"),
        ("all prompts together", "2", "pays at some batches and not at others"),
        ("chat", "4", "does not pay at any batch that was measured"),
        ("poems", "2", "may or may not pay: the rounds do not agree on it"),
    ] == list(grouped(found))


def test_the_headline_has_the_draft_length_of_the_plot() -> None:
    """That which gains most, though another pays further."""
    assert headline(sample())[0].startswith("For copy (K = 4)")
    assert ("Whether speculation pays was not measured.",) == headline(empty())


def test_what_was_not_measured_for_sure_is_not_claimed() -> None:
    """Of a refused fit with wide intervals nothing stands."""
    whole = sample()
    fits = {role: replace(fit, accepted=False) for role, fit in whole.fits.items()}
    wide = tuple(replace(one, measured=Estimate(1.2, 0.3, 4.0)) for one in whole.speed_ups)

    assert (
        "Up to which batch speculation pays cannot be told: the cost models of the speculative and plain "
        "engines are refused, off by up to 4.8 %.",
        "No batch was measured well enough to say for sure whether speculation pays at it.",
    ) == headline(replace(whole, fits=fits, speed_ups=wide))


def at_loads(*answers: tuple[int, PoolAnswer, float]) -> Findings:
    """Findings for these numbers of batch requests, the first as the main load, at 35 ms."""
    load = Load(1.0, 64.0, 100.0, 16, 64.0, 100.0)
    judged = [
        PoolsAt(replace(load, batch_streams=size), (PoolPrediction(0.035, {}, answer, margin),))
        for size, answer, margin in answers
    ]
    return replace(sample(), load=judged[0].load, pools=judged[0].pools, other_loads=tuple(judged[1:]))


def test_whether_a_second_pool_pays_is_part_of_the_answer() -> None:
    """With the loads for which it holds; where nothing can be kept nothing is said."""
    two, one = PoolAnswer.TWO_POOLS, PoolAnswer.ONE_PLAIN
    some = at_loads((16, one, 1.0), (8, one, 1.0), (32, two, 1.07))
    every = at_loads((16, two, 1.2), (8, two, 1.07))
    none = replace(some, pools=(), other_loads=())

    assert (
        "One pool is enough at every promised time per token that can be kept, with 8 and 16 batch requests "
        "at once; with 32 two pools sell up to 1.07 times as much at 35 ms."
    ) == headline(some)[-1]
    assert (
        "With 8 and 16 two pools sell up to 1.20 times as much at 35 ms, compared with one."
        == headline(every)[-1]
    )
    assert headline(some)[:-1] == headline(none)
