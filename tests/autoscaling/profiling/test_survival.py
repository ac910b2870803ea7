"""How far drafts get, from counts and with intervals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from autoscaling.profiling.findings import Estimate
from autoscaling.profiling.measured import Drafting
from autoscaling.profiling.survival import survival_by_position, survival_of, tokens_per_step


def drafted(conditionals: tuple[float, ...], lengths: list[int], seed: int, without: int = 0) -> Drafting:
    """Drafts of these lengths, whose next token is accepted with these chances; `without` steps have none."""
    draw = np.random.default_rng(seed)
    at_risk, survived = [0] * len(conditionals), [0] * len(conditionals)
    for length in lengths:
        for position in range(length):
            at_risk[position] += 1
            if draw.random() >= conditionals[position]:
                break
            survived[position] += 1
    steps = len(lengths) + without
    accepted = sum(survived)
    return Drafting(
        request_steps=steps,
        tokens=steps + accepted,
        drafts=len(lengths),
        drafted=sum(lengths),
        accepted=accepted,
        at_risk=tuple(at_risk),
        survived=tuple(survived),
    )


def test_survival_in_numbers() -> None:
    """100 drafts, 60 pass the first token; 20 of those end there, and 30 of the other 40 pass the second."""
    first, second = survival_by_position((100, 40), (60, 30))

    assert pytest.approx(0.6) == first.value
    assert pytest.approx(0.6 * 0.75) == second.value


@pytest.mark.parametrize(("reached", "kept"), [(5, 0), (5, 5), (100, 60), (1000, 1), (1, 1), (1, 0)])
def test_without_cut_drafts_the_interval_is_the_exact_binomial_one(reached: int, kept: int) -> None:
    """The second position is that of all drafts, not of those that reached it; few drafts say little."""
    exact = stats.binomtest(kept, reached).proportion_ci()
    (alone,) = survival_by_position((reached,), (kept,))
    assert (pytest.approx(exact.low), pytest.approx(exact.high)) == (alone.low, alone.high)

    _, second = survival_by_position((2 * reached, reached), (reached, kept))
    exact = stats.binomtest(kept, 2 * reached).proportion_ci()
    assert (pytest.approx(exact.low), pytest.approx(exact.high)) == (second.low, second.high)


@given(st.lists(st.tuples(st.integers(0, 2000), st.floats(0, 1)), max_size=8))
def test_an_interval_stays_within_0_and_1_and_holds_its_value(counts: list[tuple[int, float]]) -> None:
    """Survival never rises from one position to the next, whatever the counts."""
    at_risk, survived, before = [], [], 2000
    for most, share in counts:
        before = min(before, most)
        at_risk.append(before)
        survived.append(round(before * share))
        before = survived[-1]
    found = survival_by_position(at_risk, survived)

    for one in found:
        assert one.low is not None
        assert one.high is not None
        assert 0.0 <= one.low <= one.value + 1e-9
        assert one.value - 1e-9 <= one.high <= 1.0
        assert one.high > one.low
    values = [one.value for one in found]
    assert sorted(values, reverse=True) == values


def test_a_position_that_no_draft_reached_is_unknown() -> None:
    """Survival ends before it: there is no zero in its place."""
    assert 2 == len(survival_by_position((10, 4, 0, 0), (4, 0, 0, 0)))
    assert () == survival_by_position((0, 0), (0, 0))
    assert () == survival_by_position((), ())


@pytest.mark.parametrize(("at_risk", "survived"), [((5,), (6,)), ((5,), (-1,)), ((5, 4), (5,))])
def test_counts_that_cannot_be_are_refused(at_risk: tuple[int, ...], survived: tuple[int, ...]) -> None:
    """More survivors than drafts, less than none, and a position without its count."""
    with pytest.raises(ValueError, match=r"check the counts|zip"):
        survival_by_position(at_risk, survived)


CHANCES = (0.6, 0.6, 0.7, 0.75)  # s = 0.6, 0.36, 0.252, 0.189


def test_drafts_cut_short_do_not_bias_survival() -> None:
    """The method offers 1 to 4 tokens: the share of all drafts is far too low, survival is not."""
    lengths = [int(length) for length in np.random.default_rng(1).integers(1, 5, 40_000)]
    counts = drafted(CHANCES, lengths, seed=2)
    found = survival_by_position(counts.at_risk, counts.survived)

    assert pytest.approx([0.6, 0.36, 0.252, 0.189], rel=0.05) == [one.value for one in found]
    assert all(one.holds(truth) for one, truth in zip(found, (0.6, 0.36, 0.252, 0.189), strict=True))
    # Only a quarter of the drafts had a fourth token.
    assert pytest.approx(0.189 / 4, rel=0.1) == counts.survived[3] / counts.drafts


def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    """600 small measurements with cut drafts: 95 % of the intervals at each position, less the noise."""
    draw = np.random.default_rng(3)
    held = [0] * 4
    for seed in range(600):
        counts = drafted(CHANCES, [int(length) for length in draw.integers(1, 5, 120)], seed)
        for position, one in enumerate(survival_by_position(counts.at_risk, counts.survived)):
            held[position] += one.holds((0.6, 0.36, 0.252, 0.189)[position])

    assert all(share / 600 >= 0.94 for share in held), held


def test_survival_is_that_of_the_largest_length() -> None:
    """Acceptance depends on the K in force, so that runs at another K are left out of it."""
    small, large = drafted((0.9,), [1] * 500, seed=4), drafted(CHANCES, [4] * 500, seed=5)
    found = survival_of("chat", {0: [replace(small, drafts=0)], 1: [small], 4: [large]})

    assert "chat" == found.workload
    assert pytest.approx(large.survived[0] / 500) == found.survival[0].value
    assert 4 == len(found.survival)
    assert pytest.approx(large.accepted / 2000) == found.acceptance_rate
    assert pytest.approx(4.0) == found.drafted
    assert [0, 1, 4] == list(found.tokens_per_step)
    assert pytest.approx(small.tokens / 500) == found.tokens_per_step[1].value
    assert Estimate(1.0, 1.0, 1.0) == found.tokens_per_step[0]


def test_the_acceptance_rate_falls_with_the_length_though_survival_does_not() -> None:
    """The same text at K = 1 and K = 4: r is .60 and then .35, each position passes as before."""
    one = survival_of("chat", {1: [drafted(CHANCES, [1] * 20_000, seed=6)]})
    four = survival_of("chat", {4: [drafted(CHANCES, [4] * 20_000, seed=7)]})

    assert pytest.approx(0.60, abs=0.02) == one.acceptance_rate
    assert pytest.approx((0.6 + 0.36 + 0.252 + 0.189) / 4, abs=0.02) == four.acceptance_rate
    assert four.survival[0].holds(one.survival[0].value)


def test_steps_without_a_draft_lower_the_rate_and_not_survival() -> None:
    """A third of the steps found no match: survival is that of the others, tokens per step that of all."""
    counts = drafted(CHANCES, [2] * 600, seed=8, without=300)
    found = survival_of("code", {2: [counts]})

    assert pytest.approx(600 / 900) == found.draft_rate
    assert pytest.approx(1200 / 900) == found.drafted
    assert pytest.approx(counts.survived[0] / 600) == found.survival[0].value
    assert pytest.approx(1 + counts.accepted / 900) == found.tokens_per_step[2].value
    # Where no draft is cut short, tokens per step are 1 + rate x the sum of survival.
    assert pytest.approx(found.tokens_per_step[2].value) == 1 + found.draft_rate * sum(
        one.value for one in found.survival
    )


def test_runs_of_a_length_are_added_up() -> None:
    """Two rounds, one of which reached a position more."""
    first = Drafting(10, 14, 10, 20, 4, at_risk=(10, 3), survived=(3, 1))
    second = Drafting(10, 15, 8, 24, 5, at_risk=(8, 3, 1), survived=(3, 1, 1))
    found = survival_of("chat", {3: [first, second]})

    assert pytest.approx([6 / 18, 6 / 18 * 2 / 6, 6 / 18 * 2 / 6 * 1.0]) == [s.value for s in found.survival]
    assert pytest.approx(18 / 20) == found.draft_rate
    assert pytest.approx(9 / 44) == found.acceptance_rate


def test_a_length_without_a_step_is_left_out() -> None:
    """All answers at K = 4 failed: what is known is that of K = 2."""
    nothing = Drafting(0, 0, 0, 0, 0)
    found = survival_of("chat", {2: [drafted(CHANCES, [2] * 50, seed=9)], 4: [nothing, nothing]})

    assert [0, 2] == list(found.tokens_per_step)
    assert 2 == len(found.survival)


@pytest.mark.parametrize(
    "by_length", [{}, {0: [Drafting(9, 9, 0, 0, 0)]}, {4: [Drafting(0, 0, 0, 0, 0)]}, {4: []}]
)
def test_without_drafts_nothing_is_known_of_them(by_length: dict[int, list[Drafting]]) -> None:
    """No survival and no acceptance rate; no draft still gives one token a step."""
    found = survival_of("chat", by_length)

    assert () == found.survival
    assert found.acceptance_rate is None
    assert 0.0 == found.draft_rate
    assert {0: Estimate(1.0, 1.0, 1.0)} == found.tokens_per_step


def test_a_method_that_never_found_a_draft_has_no_acceptance_rate() -> None:
    """Prompt lookup on text without repetition: steps of one token each."""
    found = survival_of("chat", {4: [Drafting(50, 50, 0, 0, 0), Drafting(40, 40, 0, 0, 0)]})

    assert () == found.survival
    assert found.acceptance_rate is None
    assert 0.0 == found.draft_rate
    assert Estimate(1.0, 1.0, 1.0) == found.tokens_per_step[4]


def test_tokens_per_step_of_several_runs_are_a_ratio_of_sums() -> None:
    """200 tokens of 100 steps and 600 of 200: 2.667, not 2.5.

    The runs are off by 200 - 266.67 and 600 - 533.33: the error is sqrt(2 / 1 x 2 x 66.67^2) / 300 = 0.4444,
    and half the interval t(0.975, 1) = 12.706 of those: cut to 1..5.
    """
    runs = [Drafting(100, 200, 100, 400, 100), Drafting(200, 600, 200, 800, 400)]
    found = tokens_per_step(4, runs)
    assert pytest.approx(800 / 300) == found.value
    assert (1.0, 5.0) == (found.low, found.high)

    # Three more like both: the error is sqrt(8 / 7 x 8 x 66.67^2) / 1200, and t(0.975, 7) = 2.3646.
    found = tokens_per_step(4, runs * 4)
    half = 2.3646 * (64 / 7) ** 0.5 * (200 / 3) / 1200
    assert (pytest.approx(800 / 300 - half, rel=1e-4), pytest.approx(800 / 300 + half, rel=1e-4)) == (
        found.low,
        found.high,
    )


def test_a_single_run_has_no_interval() -> None:
    """How far it can be trusted is unknown, and a run without steps does not help."""
    run = Drafting(100, 200, 100, 400, 100)

    assert Estimate(2.0) == tokens_per_step(4, [run])
    assert Estimate(2.0) == tokens_per_step(4, [run, Drafting(0, 0, 0, 0, 0)])
    with pytest.raises(ValueError, match="no step was measured at K=4"):
        tokens_per_step(4, [])
