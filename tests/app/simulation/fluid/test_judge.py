"""Who was in time, by the clocks of the pools."""

from __future__ import annotations

import numpy as np
import pytest

from app.simulation.fluid.course import Course
from app.simulation.fluid.history import History, Of
from app.simulation.fluid.judge import BINS, Judged, judge, quantile
from app.simulation.fluid.load import load_of
from autoscaling.policy import TierObjective
from autoscaling.types import Role, Tier
from tests.app.simulation.services import steady

LOAD = load_of(steady(Tier.BATCH, 1, 20), 1.0)
BATCH = list(Tier).index(Tier.BATCH)
PLAIN = list(Role).index(Role.PLAIN)
# Half of the answers takes 100 steps for 100 further tokens, the other half 200.
COURSE = Course(np.array([100.0, 200.0]), np.array([100.0, 100.0]), np.array([0.5, 0.5]))


def history(steps_per_s: float = 100.0, waited_s: float = 0.0, **others: float) -> History:
    """Ten requests in the plain pool in each tick, whose clock goes evenly."""
    made = History(LOAD)
    for _ in range(20):
        tick = made.begin()
        made.taken[tick, 0, PLAIN] = 10.0
        made.waited_s[tick, 0] = waited_s
        pool = made.pools[tick, PLAIN]
        pool[Of.CLOCK], pool[Of.STEPS_PER_S] = tick * steps_per_s, steps_per_s
        pool[Of.STEP_S], pool[Of.SPREAD] = 1 / steps_per_s, 1.0
        pool[Of.BLIND] = 1.0
        pool[Of.BEFORE_S] = 0.01
        for name, value in others.items():
            pool[Of[name]] = value
        made.pools[tick, 1 - PLAIN, Of.CLOCK] = float(tick)
    return made


def judged(made: History, objective: TierObjective) -> Judged:
    courses = {role: [COURSE] for role in Role}
    return judge(LOAD, made, courses, dict.fromkeys(Tier, objective), interval_s=10.0, intervals=2)


def test_the_time_per_token_is_that_of_the_clock() -> None:
    """A step takes 10 ms: half of the answers have 10 ms a token, the other half 20."""
    found = judged(history(), TierObjective(tpotSeconds=0.015))

    assert [50.0, 50.0] == pytest.approx(found.in_time[:, BATCH].tolist())
    assert 0.010 == pytest.approx(quantile(found.tpot[0, BATCH], 0.4), rel=0.05)
    assert 0.020 == pytest.approx(quantile(found.tpot[1, BATCH], 0.95), rel=0.05)


def test_a_slower_clock_later_counts_from_then_on() -> None:
    """Half as fast from 10 s on: those who came in the seconds before are slowed in part."""
    made = history()
    made.pools[10:20, PLAIN, Of.STEPS_PER_S] = 50.0
    made.pools[10:20, PLAIN, Of.CLOCK] = 1000.0 + 50.0 * np.arange(10)
    found = judged(made, TierObjective(tpotSeconds=0.0101))

    assert [45.0, 0.0] == pytest.approx(found.in_time[:, BATCH].tolist())


def test_prompts_of_others_make_times_differ() -> None:
    """A half of the time goes to the prompts of four others on average, sometimes of more: some are late."""
    found = judged(history(PROMPT_SHARE=0.5, LUMPS_PER_S=4.0), TierObjective(tpotSeconds=0.0101))

    assert 20.0 < found.in_time[0, BATCH] < 40.0


def test_the_first_token_is_late_by_chance() -> None:
    """0.1 s, and up to 0.4 s more: three quarters come within 0.4 s."""
    found = judged(history(BEFORE_S=0.1, CHANCE_S=0.2), TierObjective(ttftSeconds=0.4))

    assert [75.0, 75.0] == pytest.approx(found.in_time[:, BATCH].tolist())
    assert 0.3 == pytest.approx(quantile(found.ttft[BATCH], 0.5), rel=0.05)


def test_a_wait_counts_and_belongs_to_the_time_of_arrival() -> None:
    """5 s of waiting: those let in from 10 s to 15 s came before."""
    found = judged(history(waited_s=5.0, BEFORE_S=0.1), TierObjective())

    assert [150.0, 50.0] == pytest.approx(found.in_time[:, BATCH].tolist())
    assert 5.1 == pytest.approx(quantile(found.ttft[BATCH], 0.5), rel=0.05)


def test_nothing_is_known_of_nobody() -> None:
    """An empty histogram has no percentile."""
    assert quantile(np.zeros(BINS), 0.95) is None
