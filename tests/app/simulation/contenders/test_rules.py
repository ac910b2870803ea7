"""The rules of other controllers, as the functions that they are."""

from __future__ import annotations

import pytest

from app.simulation.contenders.dynamo_rule import vote, with_queue
from app.simulation.contenders.hpa_rule import recommended, stabilized
from app.simulation.contenders.rule_control import split
from app.simulation.contenders.static import split_by
from app.simulation.contenders.threshold_rule import replicas_for
from tests.autoscaling.worlds import both, policy, rules


@pytest.mark.parametrize(("sequences", "expected"), [(0, 0), (1, 1), (8, 1), (9, 2), (64, 8)])
def test_threshold_holds_what_is_open(sequences: int, expected: int) -> None:
    """Eight sequences to a replica, the last one as full as it comes."""
    assert expected == replicas_for(sequences, 8)


@pytest.mark.parametrize(
    ("current", "utilization", "expected"),
    [
        (4, 0.7, 4),
        (4, 0.76, 4),  # within 10 % of the target
        (4, 0.64, 4),
        (4, 0.78, 5),
        (4, 0.35, 2),
        (4, 1.4, 8),
        (4, 0.0, 0),
        (4, None, 4),
    ],
)
def test_hpa_scales_by_the_ratio_outside_its_tolerance(
    current: int, utilization: float | None, expected: int
) -> None:
    """ceil(current x utilization / 0.7)."""
    assert expected == recommended(current, utilization)


@pytest.mark.parametrize(
    ("current", "past", "expected"),
    [
        (4, [4, 6], 6),  # up at once
        (4, [4, 20], 8),  # by four or the double
        (1, [1, 20], 5),
        (6, [6, 2], 6),  # down to the highest of the window
        (6, [5, 2, 3], 5),
        (6, [2, 3], 3),
        (4, [9, 3], 4),  # what was recommended before never brings more
    ],
)
def test_hpa_goes_down_to_the_highest_of_its_window(current: int, past: list[int], expected: int) -> None:
    """Up by the newest recommendation alone, within its limit."""
    assert expected == stabilized(current, past)


@pytest.mark.parametrize(
    ("estimates", "expected"),
    [
        ([0.011, 0.012], 1),
        ([0.011, 0.0099], 0),  # one engine is in time
        ([0.0079, 0.0079], -1),
        ([0.0079, 0.0081], 0),
        ([0.0079], 0),  # the last one stays
        ([0.011], 1),
        ([], 0),
    ],
)
def test_dynamo_waits_until_all_engines_agree(estimates: list[float], expected: int) -> None:
    """Above 10 ms, or below 8 ms."""
    assert expected == vote(estimates, 0.010)


def test_dynamo_counts_what_is_queued_in_equal_parts() -> None:
    """Ten wanted and six at engines: two more for each; fewer wanted than there are guests add nothing."""
    assert [6.0, 4.0] == with_queue([4, 2], 10)
    assert [4.0, 2.0] == with_queue([4, 2], 3)
    assert [4.0, 2.0] == with_queue([4, 2], None)
    assert [] == with_queue([], 5)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [(0, (1, 7)), (3, (3, 5)), (7, (7, 1)), (20, (7, 1))],
)
def test_a_split_stays_within_bounds(wanted: int, expected: tuple[int, int]) -> None:
    """Of eight accelerators each pool has one to seven."""
    assert both(*expected) == split(wanted, policy())


def test_a_split_leaves_no_accelerator_that_a_pool_may_have() -> None:
    """A plain pool of at most four: the speculative pool keeps four, though the rule asks for one."""
    assert both(4, 4) == split(1, policy(plain=rules(maximum=4)))


def test_a_split_counts_accelerators() -> None:
    """A speculative replica takes two: of eight accelerators two of it leave four plain ones."""
    two = policy(speculative=rules(accelerators=2, maximum=4))
    assert both(2, 4) == split(2, two)
    assert both(3, 2) == split(9, two)  # the plain pool keeps its one, and the odd accelerator


@pytest.mark.parametrize(
    ("share", "replicas", "expected"),
    [(0.25, 8, (2, 6)), (0.75, 8, (6, 2)), (0.25, 2, (1, 1)), (0.5, 5, (2, 3))],
)
def test_a_static_share_is_whole_replicas(share: float, replicas: int, expected: tuple[int, int]) -> None:
    """The nearest, and at least one in each pool."""
    assert both(*expected) == split_by(share, replicas)
