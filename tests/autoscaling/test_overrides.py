"""Overrides: when they hold, which is stronger, and what may not be set."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from autoscaling.overrides import Override, active, from_policy, problems, weakest_first
from autoscaling.types import Role
from tests.autoscaling.good_policy import override, policy

NOW = 1_800_000_000.0  # 2027-01-15T08:00:00Z
HOUR = 3600.0
DAY = 24 * HOUR
GIVEN = Override("o1", Role.PLAIN, 3, None, None, NOW, NOW + HOUR, "incident", "ann")


def given(**values: Any) -> Override:
    return replace(GIVEN, **values)


def bounds(minimum: int | None = None, maximum: int | None = None, **values: Any) -> Override:
    return given(replicas=None, minimum=minimum, maximum=maximum, **values)


def test_the_files_overrides_carry_their_own_words() -> None:
    """An override of the file has its name as id, its end in Unix seconds, and the policy behind it."""
    file = policy(
        {
            "spec.overrides": [
                override("launch", "plain", minReplicas=4, maxReplicas=6)
                | {"until": "2027-03-01T13:00:00+01:00"},
                override("incident", "speculative", replicas=2),
            ]
        }
    )
    end = 1_803_902_400.0  # 2027-03-01T12:00:00Z
    assert from_policy(file) == (
        Override("launch", Role.PLAIN, None, 4, 6, None, end, "a test", "policy"),
        Override("incident", Role.SPECULATIVE, 2, None, None, None, end, "a test", "policy"),
    )


@pytest.mark.parametrize(
    ("wall", "expected"), [(NOW - 1, ["o1"]), (NOW, ["o1"]), (NOW + 3599, ["o1"]), (NOW + HOUR, [])]
)
def test_an_override_holds_until_its_end(wall: float, expected: list[str]) -> None:
    """The end is outside; a clock that is behind the one which set it does not suspend it."""
    assert expected == [one.id for one in active([GIVEN], wall)]


def test_operators_are_stronger_than_the_file_and_newer_than_older() -> None:
    """Weakest first: the file's in its order, then the operators' by age, wherever they stand."""
    file = [given(id=name, since=None, by="policy") for name in ("f1", "f2")]
    new, old = given(id="new", since=NOW), given(id="old", since=NOW - DAY)
    assert [one.id for one in weakest_first([new, *file, old])] == ["f1", "f2", "old", "new"]


@pytest.mark.parametrize("replicas", [0, 1, 7])
def test_an_override_may_leave_its_pools_bounds(replicas: int) -> None:
    """From 0 up to what the other pool's minimum leaves of the budget, whatever the pool's own bounds."""
    assert problems(given(replicas=replicas), policy(), [], NOW) == ()
    file = policy({"spec.pools.plain.maxReplicas": 2})
    assert problems(given(replicas=replicas), file, [], NOW) == ()


@pytest.mark.parametrize(
    ("new", "message"),
    [
        (
            given(until=NOW),
            "until 2027-01-15T08:00:00Z is in the past: it is 2027-01-15T08:00:00Z; give a later end",
        ),
        (given(until=float("nan")), "until is not a number; give the end in Unix seconds"),
        (
            given(until=NOW + 30 * DAY + 1),
            "until 2027-02-14T08:00:01Z is more than 30 days ahead; give an earlier end, or change the "
            "pool's bounds in the policy",
        ),
        (given(reason="  "), "reason is empty; say why, it is shown wherever the override acts"),
        (given(reason="x" * 501), "reason has 501 characters; say it in at most 500"),
        (given(id=""), "id is empty; give the override a name"),
        (given(by="policy"), "by 'policy' is not an operator's name; say who sets the override"),
        (given(by=""), "by '' is not an operator's name; say who sets the override"),
        (
            given(replicas=None),
            "neither replicas nor a bound is given; give replicas, or minimum, maximum or both",
        ),
        (
            given(minimum=2),
            "replicas and a bound are both given; replicas is exact, so leave the bounds out",
        ),
        (given(replicas=-1), "replicas -1 is negative; give 0 or more"),
        (bounds(minimum=-2), "minimum -2 is negative; give 0 or more"),
        (bounds(5, 2), "minimum 5 is above maximum 2; exchange them"),
        (
            given(replicas=8),
            "replicas 8 of plain does not fit: the budget of 8 accelerators holds at most 7 beside the "
            "minimum of speculative; ask for fewer, or raise budget.max in the policy",
        ),
        (bounds(maximum=8), "maximum 8 of plain does not fit"),
        (bounds(minimum=8), "minimum 8 of plain does not fit"),
    ],
)
def test_what_may_not_be_set(new: Override, message: str) -> None:
    """Case C9: each refusal is one sentence that names the value and the mend."""
    (found,) = problems(new, policy(), [], NOW)
    assert message in found


def test_thirty_days_are_allowed() -> None:
    """The limit itself is inside."""
    assert problems(given(until=NOW + 30 * DAY), policy(), [], NOW) == ()


def test_the_other_pools_override_is_respected() -> None:
    """An operator's or the file's minimum of the other pool counts, as long as it holds."""
    of_the_other = given(id="o2", pool=Role.SPECULATIVE, replicas=3)
    assert problems(given(replicas=5), policy(), [of_the_other], NOW) == ()
    (found,) = problems(given(replicas=6), policy(), [of_the_other], NOW)
    assert "holds at most 5 beside the minimum of speculative" in found
    assert problems(given(replicas=6, until=NOW + DAY), policy(), [of_the_other], NOW + 2 * HOUR) == ()
    file = policy({"spec.overrides": [override("f", "speculative", minReplicas=4)]})
    (found,) = problems(given(replicas=5), file, [], NOW)
    assert "holds at most 4" in found


def test_an_override_with_the_same_id_is_replaced() -> None:
    """What it replaces does not count against it."""
    old = given(pool=Role.SPECULATIVE, replicas=6)
    assert problems(given(pool=Role.PLAIN, replicas=7), policy(), [old], NOW) == ()


def test_a_schedule_yields_to_an_override() -> None:
    """A scheduled minimum of the other pool does not limit an override: override > schedule."""
    file = policy(
        {
            "spec.schedules[].timeZone": "UTC",
            "spec.schedules[].days": ["Fri"],
            "spec.schedules[].start": "00:00",
            "spec.schedules[].end": "00:00",
            "spec.schedules[].pools": {"speculative": {"minReplicas": 5}},
        }
    )
    assert problems(given(replicas=7), file, [], NOW) == ()


@pytest.mark.parametrize(("replicas", "fits"), [(3, True), (4, False)])
def test_the_budget_counts_accelerators(replicas: int, fits: bool) -> None:
    """Replicas of two accelerators each: 8 - 1 x 1 = 7 hold three of them."""
    file = policy({"spec.pools.plain.acceleratorsPerReplica": 2, "spec.pools.plain.minReplicas": 1})
    assert fits == (problems(given(replicas=replicas), file, [], NOW) == ())
