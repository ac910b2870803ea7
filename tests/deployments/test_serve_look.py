"""Ray Serve's details, reduced to what a decision needs."""

from __future__ import annotations

from enum import Enum
from typing import Any

import pytest

from autoscaling.types import Role, ServePool
from deployments.serve_look import serve_states


class State(str, Enum):  # noqa: UP042  # as Ray Serve's own is
    RUNNING = "RUNNING"
    STARTING = "STARTING"


def replica(replica_id: str, state: Any) -> dict[str, Any]:
    return {"replica_id": replica_id, "state": state, "pid": 1}


def details(**pools: Any) -> dict[str, Any]:
    return {"applications": {"twinpool": {"deployments": {"ingress": {}} | pools}}}


def pool(target: int, *replicas: dict[str, Any]) -> dict[str, Any]:
    return {"target_num_replicas": target, "replicas": list(replicas)}


def test_both_pools() -> None:
    """Target, states by count, and the ids of what runs; states come as words or as Serve's enum."""
    found = serve_states(
        details(
            speculative=pool(
                2, replica("a", "RUNNING"), replica("b", State.STARTING), replica("c", "STOPPING")
            ),
            plain=pool(1, replica("d", State.RUNNING), replica("e", "PENDING_MIGRATION")),
        ),
        7.5,
    )
    assert found is not None
    assert 7.5 == found.at
    assert {
        Role.SPECULATIVE: ServePool(2, {"RUNNING": 1, "STARTING": 1, "STOPPING": 1}, frozenset({"a"})),
        Role.PLAIN: ServePool(1, {"RUNNING": 1, "PENDING_MIGRATION": 1}, frozenset({"d", "e"})),
    } == found.pools


def test_a_pool_without_replicas_is_known() -> None:
    """None of them is 0 of them, when Serve says so."""
    found = serve_states(details(speculative=pool(0), plain={"target_num_replicas": 3}), 0.0)
    assert found is not None
    assert ServePool(0, {}, frozenset()) == found.pools[Role.SPECULATIVE]
    assert ServePool(3, {}, frozenset()) == found.pools[Role.PLAIN]


@pytest.mark.parametrize(
    "found",
    [
        {},
        {"applications": {}},
        {"applications": {"other": {"deployments": {"speculative": pool(1), "plain": pool(1)}}}},
        {"applications": {"twinpool": {}}},
        details(),
        details(plain=pool(1)),
        details(speculative=pool(1)),
    ],
)
def test_half_a_picture_is_none(found: dict[str, Any]) -> None:
    """Without the application, or one of the pools, nothing is known: that is not zero."""
    assert serve_states(found, 0.0) is None
