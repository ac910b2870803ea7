"""How fast a pool answered of late."""

from __future__ import annotations

import numpy as np
import pytest

from app.simulation.fluid.course import Course
from app.simulation.fluid.load import load_of
from app.simulation.fluid.pace import Pace
from app.simulation.fluid.speeds import Speeds
from autoscaling.routing_rules import PoolSpeed
from autoscaling.types import Tier
from tests.app.simulation.services import steady

LOAD = load_of(steady(Tier.BATCH, 1, 10, prompt=500, answer=101))
COURSE = Course(np.array([100.0]), np.array([100.0]), np.array([1.0]))


def pace(step_s: float) -> Pace:
    return Pace(
        steps_per_s=1 / step_s,
        step_s=step_s,
        prompt_share=0.0,
        lumps_per_s=0.0,
        spread=1.0,
        last_s=step_s,
        chunk_s=step_s,
        uneven=0.0,
        uneven_lumps=0.0,
        regular=0.0,
        bunched=0.0,
        apart=1.0,
        blind=1.0,
        leaving_per_s=1.0,
        evening_per_s=1.0,
        steady=1.0,
        queued_s=0.0,
        fixed_s=0.02,
        prompt_token_s=2e-5,
        chance_s=0.01,
        first_s=0.04,
        backlog=0.0,
    )


def told(ended: float, ticks: int, step_s: float = 0.01) -> Speeds:
    made = Speeds(LOAD, [COURSE])
    for tick in range(ticks):
        made.add(float(tick), np.array([ended]), np.array([ended]), pace(step_s))
    return made


def test_few_requests_say_nothing() -> None:
    """Nineteen; the twentieth makes the difference."""
    assert PoolSpeed() == told(1.0, 19).speed()
    assert 0.01 == pytest.approx(told(1.0, 20).speed().tpot_p95_s)


def test_times_are_those_of_the_pace() -> None:
    """10 ms a token; 20 ms, 10 ms for the prompt and 10 ms of chance for the first one."""
    found = told(2.0, 30).speed()

    assert (0.01, 0.01) == pytest.approx((found.tpot_p50_s, found.tpot_p95_s))
    assert 0.04 == pytest.approx(found.ttft_p50_s)
    assert 0.04 < (found.ttft_p95_s or 0.0) < 0.05


def test_mean_lengths_are_told_in_steps() -> None:
    """Within three of a hundred."""
    found = told(2.0, 30).speed()

    assert 101 == pytest.approx(found.answer_tokens, rel=0.026)
    assert 500 == pytest.approx(found.prompt_tokens, rel=0.026)


def test_the_last_minute_counts_and_of_it_the_last_thousand() -> None:
    """What was slow before is forgotten."""
    slow = told(10.0, 10, step_s=0.05)
    for tick in range(10, 75):
        slow.add(float(tick), np.array([1.0]), np.array([1.0]), pace(0.01))
    assert 0.01 == pytest.approx(slow.speed().tpot_p95_s)

    busy = told(10.0, 10, step_s=0.05)
    busy.add(10.0, np.array([1000.0]), np.array([1000.0]), pace(0.01))
    assert 0.01 == pytest.approx(busy.speed().tpot_p95_s)
