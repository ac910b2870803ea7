"""What is made has the statistics that were published."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from app.simulation.arrival import Arrival
from app.simulation.traces.errors import TraceError
from app.simulation.traces.generated import CODE, CONVERSATION, TRAFFIC, Kind, Traffic, generate
from app.simulation.traces.lengths import LengthModel
from app.simulation.traces.renewal import Steady, Swing
from app.simulation.traces.statistics import statistics
from autoscaling.types import Tier


def made(kind: Kind, seed: int, **arguments: float) -> tuple[Arrival, ...]:
    return generate(kind, np.random.default_rng(seed), **arguments)


@pytest.mark.parametrize("seed", [1, 2])
def test_conversations_are_like_the_azure_trace(seed: int) -> None:
    """Over two hours rate, lengths and the variation of gaps are within 3 %, one seed like another."""
    found = statistics(made(Kind.CONVERSATION, seed, hours=2))
    assert pytest.approx(5.53, rel=0.03) == found.rate
    assert pytest.approx((1155, 1020), rel=0.03) == (found.prompt.mean, found.prompt.p50)
    assert pytest.approx((211, 129), rel=0.03) == (found.answer.mean, found.answer.p50)
    assert pytest.approx(1.09, rel=0.03) == found.interarrival_cv
    assert pytest.approx(1.5, rel=0.15) == found.peak_to_mean


def test_code_is_like_the_azure_trace_in_lengths_and_rate() -> None:
    """Over eight hours means and medians are within 5 %, the rate of bursts within 10 %."""
    found = statistics(made(Kind.CODE, 1, hours=8))
    assert pytest.approx((2048, 1469), rel=0.05) == (found.prompt.mean, found.prompt.p50)
    assert pytest.approx((28, 13), rel=0.05) == (found.answer.mean, found.answer.p50)
    assert pytest.approx(2.57, rel=0.1) == found.rate


def test_hours_of_code_are_as_bursty_as_the_azure_trace() -> None:
    """Of 100 traces of its length the medians: CV 13.2 within 10 %, the fullest 10 s 12.8 within 20 %."""
    cvs, peaks = [], []
    for seed in range(100):
        times = CODE.arrivals.times(3436.0, np.random.default_rng(seed))
        gaps, windows = np.diff(times), np.bincount((times // 10).astype(int))
        cvs.append(gaps.std() / gaps.mean())
        peaks.append(windows.max() / windows.mean())
    assert pytest.approx(13.2, rel=0.1) == float(np.median(cvs))
    assert pytest.approx(12.8, rel=0.2) == float(np.median(peaks))


def test_mixed_is_both_at_their_own_rates() -> None:
    """All are interactive; chat is within 3 % of 5.53 a second, code within 20 % of 2.57 over two hours."""
    found = made(Kind.MIXED, 4, hours=2)
    assert {Tier.INTERACTIVE} == {one.tier for one in found}
    assert {None} == {one.conversation for one in found}
    assert pytest.approx(5.53, rel=0.03) == sum(one.workload == "chat" for one in found) / 7200
    assert pytest.approx(2.57, rel=0.2) == sum(one.workload == "code" for one in found) / 7200


def test_a_day_swings_and_varies_like_servegen() -> None:
    """Ten minutes peak at 14 h with 3.1 means, within 6 %; the CV inside of them is 2, within 5 %."""
    trace = made(Kind.DAY, 1)
    for workload, rate in [("chat", 5.53), ("code", 2.57)]:
        times = np.array([one.at_s for one in trace if one.workload == workload])
        window = (times // 600).astype(int)
        counts = np.bincount(window, minlength=144)
        gaps = [np.diff(times[window == number]) for number in range(144)]
        assert pytest.approx(rate, rel=0.03) == len(times) / 86_400
        assert pytest.approx(3.1, rel=0.06) == counts.max() / counts.mean()
        assert 13 * 6 <= counts.argmax() <= 15 * 6
        assert pytest.approx(2.0, rel=0.05) == np.median([gap.std() / gap.mean() for gap in gaps])


def test_part_of_a_day_is_the_part_from_midnight() -> None:
    """An hour of the first six has 0.100 of a mean hour's requests (by quadrature), within 5 %."""
    found = made(Kind.DAY, 1, hours=6)
    assert 6 * 3600 > found[-1].at_s
    assert pytest.approx(0.100, rel=0.05) == len(found) / 6 / 3600 / 8.1


@pytest.mark.parametrize(("rate", "expected"), [(0.25, 1.38), (1.0, 5.53), (2.5, 13.8)])
def test_the_rate_is_sources_superposed(rate: float, expected: float) -> None:
    """A fraction is a thinned source; requests per second within 5 %."""
    assert pytest.approx(expected, rel=0.05) == statistics(made(Kind.CONVERSATION, 1, rate=rate)).rate


def test_more_sources_even_out_their_bursts() -> None:
    """Ten bursty clients together vary less than one, and still more than a steady one."""
    cv = statistics(made(Kind.CODE, 1, rate=10)).interarrival_cv
    assert cv is not None
    assert 1.2 < cv < 5


@pytest.mark.parametrize("kind", list(Kind))
def test_the_same_seed_gives_the_same_trace(kind: Kind) -> None:
    """Sorted, from 0, every length at least 1; another seed gives another one."""
    first, again, other = (made(kind, seed, hours=0.5) for seed in (1, 1, 2))
    assert again == first
    assert other != first
    assert sorted(one.at_s for one in first) == [one.at_s for one in first]
    assert 0 <= first[0].at_s <= first[-1].at_s < 1800
    assert 1 <= min(min(one.prompt_tokens, one.answer_tokens) for one in first)


@pytest.mark.parametrize("arguments", [{"hours": 0}, {"rate": 0}, {"hours": -1}, {"rate": float("nan")}])
def test_hours_and_rate_are_above_zero(arguments: dict[str, float]) -> None:
    """Others are refused."""
    with pytest.raises(TraceError, match="give numbers above 0"):
        made(Kind.CONVERSATION, 1, **arguments)


def test_every_kind_is_of_known_work() -> None:
    """The classes are those by which acceptance is known."""
    assert {"chat", "code"} == {one.workload for many in TRAFFIC.values() for one in many}


@pytest.mark.parametrize("traffic", [CONVERSATION, CODE], ids=["conversation", "code"])
@pytest.mark.parametrize("pick", [lambda one: one.prompt, lambda one: one.answer], ids=["prompt", "answer"])
def test_lengths_have_their_mean_with_the_cut(
    traffic: Traffic, pick: Callable[[Traffic], LengthModel]
) -> None:
    """The largest is cut, and mean and median hold all the same, within 2 % of 200,000."""
    model = pick(traffic)
    drawn = model.draw(200_000, np.random.default_rng(1))
    assert model.largest >= drawn.max()
    assert pytest.approx((model.mean, model.median), rel=0.02) == (drawn.mean(), np.median(drawn))


def test_steady_arrivals_have_their_rate_and_variation() -> None:
    """A Gamma renewal of CV 3 at 10 a second, within 3 % over 20,000 s; none beyond the end."""
    times = Steady(10.0, 3.0).times(20_000.0, np.random.default_rng(1))
    gaps = np.diff(times)
    assert pytest.approx((0.1, 3.0), rel=0.03) == (gaps.mean(), gaps.std() / gaps.mean())
    assert 20_000 > times[-1]


def test_a_swing_moves_requests_and_loses_none() -> None:
    """Over two days both have as many, and the peak hour has its share of them."""
    swing = Swing(peak_to_mean=2.0, peak_at_s=6 * 3600.0)
    assert pytest.approx(2 * 86_400) == swing.elapsed(2 * 86_400)
    even = np.arange(0.0, 2 * 86_400, 0.5)
    moved = swing.warped(even, 2 * 86_400)
    assert len(even) == len(moved)
    hours = np.bincount((moved // 3600).astype(int))
    assert pytest.approx(2.0, rel=0.02) == hours.max() / hours.mean()
    assert {5, 6} & {int(hours.argmax()) % 24}
