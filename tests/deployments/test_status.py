"""The pools' part of the status: reports joined with Serve's replica states; unknown is None, never zero."""

from __future__ import annotations

from dataclasses import replace

from autoscaling.decisions import PoolRules
from autoscaling.observations import Seen
from autoscaling.types import EngineTotals, Role
from deployments.status import pool_status
from tests.autoscaling.reports import report


def seen(replica_id: str, role: Role, at: float = 0.0, **totals: int) -> Seen:
    return Seen(replace(report(replica_id, role=role, inflight=2), totals=EngineTotals(**totals)), at)


def test_nothing_known_is_none() -> None:
    """Without a report and without Serve's word every number is None."""
    found = pool_status([], None, None, 0.0)
    assert ["speculative", "plain"] == list(found)
    for pool in found.values():
        numbers = ("running", "starting", "draining", "inflight", "waiting", "mean_acceptance_length")
        assert [None] * 6 == [pool[name] for name in numbers]
        assert pool["replicas"] == []


def test_serves_states_are_counted_by_ours_names() -> None:
    """RUNNING, STARTING, UPDATING and STOPPING are Serve's words for running, starting and draining."""
    states = {"plain": {"RUNNING": 2, "STARTING": 1, "UPDATING": 1, "STOPPING": 3}}
    pool = pool_status([], states, None, 0.0)["plain"]
    assert (2, 2, 3) == (pool["running"], pool["starting"], pool["draining"])


def test_acceptance_is_pooled_over_replicas() -> None:
    """Sums of counters, not means of ratios; None before the first draft."""
    replicas = [
        seen("a", Role.SPECULATIVE, drafts=10, drafted=40, accepted=20),
        seen("b", Role.SPECULATIVE, drafts=30, drafted=120, accepted=20),
        seen("c", Role.PLAIN),
    ]
    found = pool_status(replicas, None, None, 2.5)
    assert (2.0, 0.25) == (
        found["speculative"]["mean_acceptance_length"],
        found["speculative"]["draft_acceptance_rate"],
    )
    assert found["plain"]["mean_acceptance_length"] is None
    assert found["speculative"]["inflight"] == 4
    assert [2.5, 2.5] == [replica["report_age_seconds"] for replica in found["speculative"]["replicas"]]


def test_no_token_is_shown() -> None:
    """A replica's bearer token never leaves the controller through the status."""
    assert "secret" not in str(pool_status([seen("a", Role.PLAIN)], None, None, 0.0))


def test_the_limit_is_the_one_that_ingresses_obey() -> None:
    """A replica's own soft limit, replaced by its pool's measured one and lowered by the policy's."""
    one = [seen("a", Role.SPECULATIVE)]
    own = report("a", role=Role.SPECULATIVE).soft_limit
    rules = {
        "nothing": PoolRules(0, 1),
        "measured": PoolRules(0, 1, measured_limit=own + 3),
        "lowered": PoolRules(0, 1, measured_limit=own + 3, soft_limit=own - 1),
    }
    found = {
        name: pool_status(one, None, {Role.SPECULATIVE: rule}, 0.0)["speculative"]["replicas"]
        for name, rule in rules.items()
    }
    limits = {name: replica["soft_limit"] for name, (replica,) in found.items()}
    assert {"nothing": own, "measured": own + 3, "lowered": own - 1} == limits
    assert own == pool_status(one, None, None, 0.0)["speculative"]["replicas"][0]["soft_limit"]
