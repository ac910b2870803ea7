"""The soft limit of a replica."""

from __future__ import annotations

import pytest

from autoscaling.soft_limit import soft_limit
from tests.autoscaling.worlds import rules


@pytest.mark.parametrize(
    ("own", "most", "changes", "expected"),
    [
        (8, 16, {}, 8),
        (8, 16, {"soft_limit": 4}, 4),
        (8, 16, {"soft_limit": 20}, 8),
        (None, None, {"soft_limit": 4}, 4),
        (None, None, {}, None),
        (8, 16, {"measured_limit": 12}, 12),
        (8, 16, {"measured_limit": 3}, 3),
        (8, 16, {"measured_limit": 99}, 16),
        (8, 16, {"measured_limit": 12, "soft_limit": 10}, 10),
        (8, 16, {"measured_limit": 12, "soft_limit": 14}, 12),
        (8, 16, {"measured_limit": 12, "hard_limit": 6}, 6),
        (None, None, {"measured_limit": 12}, 12),
    ],
)
def test_which_limit_counts(
    own: int | None, most: int | None, changes: dict[str, int], expected: int | None
) -> None:
    """A measured limit replaces the replica's own, inside what it can do and the policy allows."""
    assert expected == soft_limit(own, most, rules(**changes))


def test_without_rules_the_replicas_own_counts() -> None:
    """Before a policy is known."""
    assert 8 == soft_limit(8, 16, None)
