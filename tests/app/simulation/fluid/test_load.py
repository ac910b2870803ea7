"""What comes, as a fluid: counted from a trace, or a day of the same requests."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from app.simulation.arrival import Arrival
from app.simulation.fluid.load import day_of, load_of
from autoscaling.types import Tier
from tests.app.simulation.services import steady, together

CHAT = Arrival(0.2, Tier.BATCH, "chat", 100, 10)


def test_requests_are_counted_by_tick_and_kind() -> None:
    """Flows by rank of tier, and the count of each second."""
    found = load_of(
        [CHAT, Arrival(0.9, Tier.INTERACTIVE, "code", 50, 20), Arrival(2.1, Tier.BATCH, "chat", 100, 30)],
        tick_s=1.0,
    )

    assert [(Tier.INTERACTIVE, "code"), (Tier.BATCH, "chat")] == [
        (one.tier, one.workload) for one in found.flows
    ]
    assert [[1, 1], [0, 0], [0, 1]] == found.arrivals.tolist()
    assert [(0, 50.0), (1, 100.0)] == [(one.flow, one.prompt_tokens) for one in found.kinds]
    assert [10.0, 30.0] == found.flows[1].answers.tokens.tolist()
    assert 3.0 == found.seconds


def test_prompts_of_a_flow_are_four_groups_of_one_length_each() -> None:
    """Equally many requests in each; the means of tokens and of their squares are the group's."""
    found = load_of([Arrival(0.0, Tier.BATCH, "chat", tokens, 5) for tokens in range(1, 9)])

    assert [1.5, 3.5, 5.5, 7.5] == [one.prompt_tokens for one in found.kinds]
    assert [2.5, 12.5, 30.5, 56.5] == [one.prompt_square for one in found.kinds]
    assert [[2, 2, 2, 2]] == found.arrivals.tolist()


def test_long_answers_are_grouped_and_keep_their_mean() -> None:
    """A thousand lengths are far fewer groups with the same mean; those in flight are longer ones."""
    found = load_of([Arrival(0.0, Tier.BATCH, "chat", 10, tokens) for tokens in range(1, 1001)])
    answers = found.flows[0].answers

    assert 64 + 24 * 4 >= len(answers.tokens)
    assert 500.5 == pytest.approx(answers.mean)
    assert 667.0 == pytest.approx(answers.mean_in_flight, rel=1e-3)


def test_what_does_not_fit_is_left_out_or_cut() -> None:
    """Of an engine that holds 105 tokens."""
    found = load_of([CHAT, Arrival(0.3, Tier.BATCH, "chat", 105, 10)], longest=105)

    assert 1.0 == found.arrivals.sum()
    assert [5.0] == found.flows[0].answers.tokens.tolist()


def test_a_day_has_the_mean_and_the_peak_of_its_clients() -> None:
    """Three times the rate over 24 hours, and 3.1 times that mean in the afternoon."""
    load = load_of(together(steady(Tier.INTERACTIVE, 20, 30), steady(Tier.BATCH, 10, 30)))
    day = day_of(load, np.random.default_rng(1), scale=3.0, tick_s=2.0)
    rates = day.arrivals.sum(axis=1) / 2.0

    assert 43200 == len(day.arrivals)
    assert 90.0 == pytest.approx(rates.mean(), rel=0.005)
    assert 3.1 == pytest.approx(rates.reshape(-1, 300).mean(axis=1).max() / rates.mean(), rel=0.02)
    assert 60.0 == pytest.approx(day.arrivals[:, 0].mean() / 2.0, rel=0.01)


def test_the_same_generator_gives_the_same_day() -> None:
    """To the last digit."""
    load = load_of(steady(Tier.BATCH, 10, 30))
    one, other = (day_of(load, np.random.default_rng(1), hours=1.0) for _ in range(2))

    assert np.array_equal(one.arrivals, other.arrivals)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"tick_s": 0.0}, "tick_s: 0: give seconds above 0"),
        ({"longest": 50}, "trace: 1 requests, of which none can be served: give another trace"),
    ],
)
def test_a_load_that_cannot_be_made_says_why(changes: dict[str, float], words: str) -> None:
    """The value, and what to do."""
    with pytest.raises(ValueError, match=words):
        load_of([CHAT], **changes)  # type: ignore[arg-type]


def test_a_day_that_cannot_be_made_says_why() -> None:
    """The value, and what to do."""
    with pytest.raises(ValueError, match="scale: -1: give a number above 0"):
        day_of(load_of([CHAT]), np.random.default_rng(1), scale=-1.0)


@pytest.mark.parametrize(("hours", "tick_s"), [(1.0, 0.5), (6.0, 0.5), (6.1, 1.0), (24.0, 1.0)])
def test_a_day_goes_in_longer_ticks(hours: float, tick_s: float) -> None:
    """A trace of up to six hours goes in half seconds."""
    assert tick_s == load_of([CHAT, replace(CHAT, at_s=3600.0 * hours)]).tick_s


def test_a_trace_goes_on_until_it_is_told_to_end() -> None:
    """Ten seconds of the clock, though the only request came in the first; never less than what came."""
    assert [10.0, 0.5] == [load_of([CHAT], until_s=until_s).seconds for until_s in (10.0, 0.0)]
