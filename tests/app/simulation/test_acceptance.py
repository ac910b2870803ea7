"""How many draft tokens are accepted: shares that hold, requests that differ, steps that go together."""

from __future__ import annotations

import statistics

import numpy as np
import pytest

from app.simulation.acceptance import Acceptance, Draws, by_length

SURVIVAL = (0.66, 0.377, 0.215, 0.136, 0.088)
LONGEST = 5
SEED = 7


def outcomes(acceptance: Acceptance, requests: int, blocks: int) -> list[list[int]]:
    """The steps of each request in their order."""
    draws = Draws(acceptance, LONGEST, SEED)
    found = []
    for number in range(requests):
        request = draws.request(number)
        found.append([step for _ in range(blocks) for step in reversed(request.more())])
    return found


@pytest.mark.parametrize("persistence", [0.0, 0.4, 0.7])
def test_each_position_survives_as_often_as_told(persistence: float) -> None:
    """120,000 steps of 30 requests, whatever the memory of a request."""
    steps = [
        step
        for request in outcomes(Acceptance(SURVIVAL, persistence=persistence), 30, 64)
        for step in request
    ]

    shares = [sum(step > position for step in steps) / len(steps) for position in range(LONGEST)]
    assert pytest.approx(SURVIVAL, abs=0.01) == shares


def test_steps_without_a_draft_are_as_many_as_told() -> None:
    """A tenth of the steps drafts, and of those survival is that of drafts."""
    acceptance = Acceptance(SURVIVAL, draft_rate=0.1, persistence=0.0)
    steps = [step for request in outcomes(acceptance, 40, 64) for step in request]

    drafts = [step for step in steps if step >= 0]
    assert pytest.approx(0.1, abs=0.003) == len(drafts) / len(steps)
    assert pytest.approx(0.66, abs=0.02) == sum(step > 0 for step in drafts) / len(drafts)


@pytest.mark.parametrize(("longest", "expected"), [(1, 0.74), (5, 0.5)])
def test_longer_drafts_are_found_in_fewer_of_the_steps(longest: int, expected: float) -> None:
    """Of new text are 0.2 steps for each token: of 1.3 and of 2.5 tokens 26 % and 50 % of the steps."""
    acceptance = Acceptance((0.6,) * 5, draft_rate=0.5, persistence=0.0, undrafted=0.2)
    draws = Draws(acceptance, longest, SEED)
    steps = [step for number in range(200) for step in draws.request(number).more()]

    assert pytest.approx(expected) == acceptance.drafting(longest)
    assert pytest.approx(expected, abs=0.015) == sum(step >= 0 for step in steps) / len(steps)
    assert pytest.approx(acceptance.tokens_per_step(longest), rel=0.03) == 1 + sum(
        max(0, step) for step in steps
    ) / len(steps)


@pytest.mark.parametrize("spread", [0.32, 0.50, 0.61])
def test_requests_differ_by_the_spread(spread: float) -> None:
    """The standard deviation of the tokens per step at K = 5, over 800 requests of 640 steps."""
    requests = outcomes(Acceptance(SURVIVAL, spread=spread, persistence=0.0), 800, 10)

    assert pytest.approx(spread, rel=0.06) == statistics.stdev(statistics.fmean(one) for one in requests)


def test_requests_that_cannot_differ_so_much_differ_as_they_can() -> None:
    """One draft in a hundred cannot make requests differ by a token; the mean is what it was."""
    requests = outcomes(Acceptance((0.01,), spread=1.0), 2000, 1)

    means = np.array([[max(0, step) for step in one] for one in requests]).mean(axis=1)
    assert 0.1 < statistics.stdev(means) < 1.0


def test_a_good_step_is_followed_by_a_good_one() -> None:
    """The correlation of a step with the next is there with a memory, and not without."""

    def correlation(persistence: float) -> float:
        pairs = np.array(outcomes(Acceptance(SURVIVAL, persistence=persistence), 20, 64))
        return float(np.corrcoef(pairs[:, :-1].ravel(), pairs[:, 1:].ravel())[0, 1])

    assert pytest.approx(0.0, abs=0.02) == correlation(0.0)
    assert 0.25 < correlation(0.4) < 0.4


def test_a_request_fares_the_same_whoever_came_before() -> None:
    """Its outcomes depend on the seed and its number only."""
    alone = Draws(Acceptance(SURVIVAL, spread=0.5), LONGEST, SEED).request(5)
    draws = Draws(Acceptance(SURVIVAL, spread=0.5), LONGEST, SEED)
    other, late = draws.request(4), draws.request(5)

    expected = [alone.more(), alone.more()]
    assert expected == [(other.more(), late.more())[1], (other.more(), late.more())[1]]
    assert expected[0] != Draws(Acceptance(SURVIVAL, spread=0.5), LONGEST, SEED + 1).request(5).more()


def test_certain_drafts_are_certain() -> None:
    """All are accepted, or none, or nothing drafts."""
    assert {2} == set(Draws(Acceptance((1.0, 1.0)), 2, SEED).request(0).more())
    assert {0} == set(Draws(Acceptance((0.0, 0.0)), 2, SEED).request(0).more())
    assert {-1} == set(Draws(Acceptance((1.0, 1.0), draft_rate=0.0), 2, SEED).request(0).more())


def test_tokens_per_step_by_draft_length_are_taken_as_they_are() -> None:
    """Differences become survival, over the share of steps with a draft."""
    acceptance = by_length((1.3, 1.5), draft_rate=0.5)

    assert pytest.approx((0.6, 0.4)) == acceptance.survival
    assert pytest.approx(1.5) == acceptance.tokens_per_step(2)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"survival": (0.5, 0.6)}, r"survival: 0\.6 after 0\.5"),
        ({"survival": (1.1,)}, r"survival: 1\.1 after 1"),
        ({"survival": (-0.1,)}, r"survival: -0\.1 after 1"),
        ({"survival": (0.5,), "draft_rate": 1.5}, r"draft_rate: 1\.5"),
        ({"survival": (0.5,), "persistence": -0.5}, r"persistence: -0\.5"),
        ({"survival": (0.5,), "spread": float("nan")}, "spread: nan"),
    ],
)
def test_shares_that_cannot_be_are_refused(fields: dict[str, object], words: str) -> None:
    """The message names the field and the value."""
    with pytest.raises(ValueError, match=words):
        Acceptance(**fields)  # type: ignore[arg-type]
