"""What each pool needs, in numbers."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from autoscaling.decisions import PoolObservation, Signal
from autoscaling.signals import load, missing, numbers, read, short, spare
from tests.autoscaling.worlds import PLAIN, SPEC, both, policy, pool, rules, seen


def signal(demand: float | None, replicas: int = 4, limit: int | None = 8) -> Signal:
    return Signal(demand, None if limit is None else float(limit * replicas), None, replicas, limit)


def read_one(observed: PoolObservation, target: int = 4, limit: int | None = None) -> Signal:
    found = read(seen(speculative=observed), policy(speculative=rules(soft_limit=limit)), both(target, 4))
    return found[SPEC]


def test_utilization_is_demand_over_what_the_targets_serve() -> None:
    """Capacity counts the target replicas, also those that do not run or report yet."""
    found = read_one(pool(4, running=1, reporting=1, inflight=8))
    assert (8.0, 32.0, 0.25, 4, 8) == (
        found.demand,
        found.capacity,
        found.utilization,
        found.replicas,
        found.limit,
    )


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"wanted": 9, "refused": 4, "inflight": 5}, 13.0),
        ({"wanted": 9, "inflight": 5}, 9.0),
        ({"wanted": 0, "refused": 0, "inflight": 5}, 0.0),
        ({"inflight": 5, "refused": 4}, 5.0),
        ({"inflight": 0}, 0.0),
        ({"inflight": None}, None),
    ],
)
def test_demand_is_what_callers_want_of_the_pool(
    changes: dict[str, int | None], expected: float | None
) -> None:
    """Wanted and refused sequences count first, then those in flight; nothing reported is unknown."""
    assert expected == read_one(pool(**changes)).demand


def test_no_data_is_no_number() -> None:
    """Case D1: without any report demand and utilization are unknown, neither 0 nor NaN, and say nothing."""
    found = read_one(pool(4, running=0, starting=4, reporting=0, inflight=None, soft_limit=None))
    assert (None, None, None) == (found.demand, found.capacity, found.utilization)
    assert (False, False) == (short(found, policy()), spare(found, policy()))


def test_a_pool_without_replicas_has_no_utilization() -> None:
    """Case D1: a capacity of zero divides nothing; demand makes such a pool short, idleness does not."""
    wanted, idle = read_one(pool(0, wanted=3), 0), read_one(pool(0, wanted=0), 0)
    assert (0.0, None, True) == (wanted.capacity, wanted.utilization, short(wanted, policy()))
    assert (0.0, None, False) == (idle.capacity, idle.utilization, short(idle, policy()))
    assert (math.inf, 0.0) == (load(wanted, 0), load(idle, 0))


@pytest.mark.parametrize(("own", "policys", "expected"), [(8, None, 8), (8, 4, 4), (8, 20, 8), (None, 4, 4)])
def test_the_lower_limit_counts(own: int | None, policys: int | None, expected: int) -> None:
    """The policy may lower the replicas' own limit, not raise it."""
    assert expected == read_one(pool(soft_limit=own), limit=policys).limit


@pytest.mark.parametrize(("measured", "batch", "expected"), [(12, 16, 12), (12, 10, 10), (3, 16, 3)])
def test_a_measured_limit_counts_as_the_ingresses_see_it(measured: int, batch: int, expected: int) -> None:
    """In place of the replicas' own 8, and no more than they run at once."""
    observed = pool(batch_limit=batch, wanted=6)
    rule = rules(measured_limit=measured)
    found = read(seen(speculative=observed), policy(speculative=rule), both(4, 4))[SPEC]
    assert (expected, expected * 4.0) == (found.limit, found.capacity)


@pytest.mark.parametrize(("reporting", "expected"), [(4, 6.0), (2, 6.0), (1, None), (0, None)])
def test_the_reports_of_too_few_are_no_number(reporting: int, expected: float | None) -> None:
    """Fewer fresh reports than the policy's share of the running replicas leave demand unknown."""
    assert expected == read_one(pool(reporting=reporting, inflight=6)).demand


@pytest.mark.parametrize(
    ("demand", "is_short", "is_spare"),
    [
        (28.0, True, False),
        (27.2, False, False),
        (15.0, False, False),
        (14.4, False, True),
        (None, False, False),
    ],
)
def test_short_and_spare_leave_a_dead_band(demand: float | None, is_short: bool, is_spare: bool) -> None:
    """Short is above 0.85 of what all serve; spare is at most 0.60 of what one replica less serves."""
    assert is_short is short(signal(demand), policy())
    assert is_spare is spare(signal(demand), policy())


def test_the_last_replica_is_spare_only_when_idle() -> None:
    """Without demand a pool does with none; a pool without replicas has none to spare."""
    assert spare(signal(0.0, 1), policy())
    assert not spare(signal(1.0, 1), policy())
    assert not spare(signal(0.0, 0), policy())


@pytest.mark.parametrize(
    ("demand", "limit", "most", "expected"),
    [(28.0, 8, 3, 1), (35.0, 8, 3, 2), (99.0, 8, 3, 3), (35.0, 8, 1, 1), (35.0, None, 3, 1)],
)
def test_a_short_pool_misses_whole_replicas(
    demand: float, limit: int | None, most: int, expected: int
) -> None:
    """As many as bring it back to 0.85, at most so many; one at a time under an unknown limit."""
    assert expected == missing(signal(demand, limit=limit), policy(), most)


def test_the_numbers_are_a_step() -> None:
    """The step says both pools' numbers and changes no target."""
    signals = {SPEC: signal(30.0), PLAIN: signal(None, 2, None)}
    step = numbers(both(4, 2), signals, policy())
    assert ("signals", "shortfall", both(4, 2)) == (step.name, step.reason, step.targets)
    assert (
        "speculative: utilization unknown, short above 0.85 (demand 30, limit 8 x 4); "
        "plain: utilization unknown, short above 0.85 (demand unknown, limit unknown x 2)"
    ) == step.detail
    known = numbers(
        both(4, 2), {SPEC: replace(signal(30.0), utilization=0.9375), PLAIN: signal(4.0)}, policy()
    )
    assert known.detail.startswith("speculative: utilization 0.94, short above 0.85 (demand 30, limit 8 x 4)")
