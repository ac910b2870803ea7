"""What is read of the service's words; what is missing or strange is unknown, and nothing raises."""

from __future__ import annotations

from typing import Any

import pytest

from app.demo import seen
from app.demo.answers import Objective
from app.demo.seen import MoveSeen, PoolSeen
from autoscaling.types import Role, Tier

STATUS: dict[str, Any] = {
    "pools": {
        "speculative": {"running": 1, "target": 2, "capacity": 16.0, "replicas": [{"oversubscribed": None}]},
        "plain": {"running": None, "target": 0, "capacity": 0.0, "replicas": [{"oversubscribed": True}]},
    },
    "moves": [
        {"id": "m2", "from": "plain", "to": None, "count": 1, "reason": "surplus", "state": "draining"}
    ],
}


def test_limits_are_capacity_by_replica() -> None:
    """A pool without replicas says nothing about its limit."""
    assert {Role.SPECULATIVE: 8, Role.PLAIN: None} == seen.soft_limits(STATUS)


def test_pools_moves_and_cores() -> None:
    """As the status has them, unknown as None."""
    assert (PoolSeen("speculative", 1, 2), PoolSeen("plain", None, 0)) == seen.pools(STATUS)
    assert (MoveSeen("m2", "plain", None, 1, "surplus", "draining"),) == seen.moves(STATUS)
    assert seen.shares_cores(STATUS)


@pytest.mark.parametrize("status", [{}, {"pools": None, "moves": None, "policy": None}, {"pools": []}])
def test_a_status_that_knows_nothing(status: dict[str, Any]) -> None:
    """Nothing is known, and nothing raises."""
    assert {Role.SPECULATIVE: None, Role.PLAIN: None} == seen.soft_limits(status)
    assert ((), (), False, None) == (
        seen.pools(status),
        seen.moves(status),
        seen.shares_cores(status),
        seen.acting_revision(status),
    )


def test_replicas_that_take_work() -> None:
    """A pool that is not named has none."""
    assert {Role.SPECULATIVE: 0, Role.PLAIN: 3} == seen.replicas({"pools": {"plain": 3}})
    assert {Role.SPECULATIVE: 0, Role.PLAIN: 0} == seen.replicas({})


@pytest.mark.parametrize(
    ("revision", "policy"),
    [
        (7, {"active_revision": 7, "shadow_revision": 8}),
        (8, {"active_revision": None, "shadow_revision": 8}),
        (None, {"active_revision": None}),
    ],
)
def test_the_revision_that_acts(revision: int | None, policy: dict[str, Any]) -> None:
    """The active one, or the shadow where none was ever enforced."""
    assert revision == seen.acting_revision({"policy": policy})


def test_objectives_of_a_policy() -> None:
    """What a tier is not promised is None, and so is what is no positive number."""
    text = """
spec:
  objectives:
    interactive: {ttftSeconds: 1, tpotSeconds: 0.05}
    standard: {ttftSeconds: soon, tpotSeconds: -1}
"""
    assert {
        Tier.INTERACTIVE: Objective(1.0, 0.05),
        Tier.STANDARD: Objective(None, None),
        Tier.BATCH: Objective(None, None),
    } == seen.objectives(text)


@pytest.mark.parametrize("text", [None, "", "{", "- a list", 3])
def test_objectives_that_cannot_be_read_are_unknown(text: Any) -> None:
    """Unknown is not the same as none."""
    assert dict.fromkeys(Tier) == seen.objectives(text)
