"""The controller's metrics: what the status says, as Prometheus families made at the scrape.

What is unknown has no sample; counters are there from the start, at 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from autoscaling.decisions import HoldBy, MoveState
from autoscaling.observations import Taken
from autoscaling.types import Role

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
REPLICA_STATES = ("running", "starting", "draining")
ENDED = (MoveState.DONE, MoveState.TIMED_OUT, MoveState.REPLACED)


def exposition(status: Mapping[str, Any]) -> bytes:
    """The metrics in Prometheus' text format, from the controller's status."""
    registry = CollectorRegistry()
    registry.register(_Families(status))
    return generate_latest(registry)


class _Families(Collector):
    def __init__(self, status: Mapping[str, Any]) -> None:
        self._status = status

    def collect(self) -> Iterator[Metric]:
        yield from _policy(self._status["policy"])
        yield from _pools(self._status)
        yield from _control(self._status)


def _policy(policy: Mapping[str, Any]) -> Iterator[Metric]:
    revisions = GaugeMetricFamily(
        "twinpool_policy_revision", "Revision of the policy, by what it is.", labels=("kind",)
    )
    for kind in ("active", "seen", "shadow"):
        if policy[f"{kind}_revision"] is not None:
            revisions.add_metric((kind,), policy[f"{kind}_revision"])
    yield revisions
    yield GaugeMetricFamily(
        "twinpool_policy_accepted",
        "1 while the newest content of the policy file is in force, 0 while the last good one stands in.",
        value=0 if policy["last_error"] is not None else 1,
    )
    yield CounterMetricFamily(
        "twinpool_policy_refused", "Contents of the policy file that were refused.", value=policy["refused"]
    )


def _pools(status: Mapping[str, Any]) -> Iterator[Metric]:
    targets = GaugeMetricFamily(
        "twinpool_pool_target_replicas", "Replicas that a pool is meant to have.", labels=("pool",)
    )
    replicas = GaugeMetricFamily(
        "twinpool_pool_replicas", "Replicas of a pool by Ray Serve's word.", labels=("pool", "state")
    )
    for role in Role:
        pool = status["pools"][role.value]
        if pool["target"] is not None:
            targets.add_metric((role.value,), pool["target"])
        for state in REPLICA_STATES:
            if pool[state] is not None:
                replicas.add_metric((role.value, state), pool[state])
    yield targets
    yield replicas
    budget = GaugeMetricFamily(
        "twinpool_accelerators", "Accelerators of both pools together.", labels=("kind",)
    )
    found = status["budget"] or {}
    for kind, name in (("budget", "accelerators"), ("used", "used")):
        if found.get(name) is not None:
            budget.add_metric((kind,), found[name])
    yield budget


def _control(status: Mapping[str, Any]) -> Iterator[Metric]:
    held = GaugeMetricFamily("twinpool_held", "1 for who holds the targets.", labels=("by",))
    hold = status["hold"]
    for by in HoldBy:
        held.add_metric((by.value,), 1 if hold is not None and hold["by"] == by.value else 0)
    yield held
    moves = CounterMetricFamily(
        "twinpool_moves", "Moves of capacity that have ended, by how.", labels=("outcome",)
    )
    for state in ENDED:
        moves.add_metric((state.value,), status["moves_ended"].get(state.value, 0))
    yield moves
    yield CounterMetricFamily(
        "twinpool_controller_ticks", "Control ticks that came to a decision.", value=status["ticks"]
    )
    yield CounterMetricFamily(
        "twinpool_controller_failed_ticks",
        "Control ticks that ended in an error.",
        value=status["failed_ticks"],
    )
    yield GaugeMetricFamily(
        "twinpool_controller_state_kept",
        "1 while the controller can write down what it decides, 0 while it cannot.",
        value=0 if status["store_problem"] is not None else 1,
    )
    dropped = CounterMetricFamily(
        "twinpool_reports_dropped", "Reports of replicas that were not taken, by why.", labels=("reason",)
    )
    for reason in Taken:
        if reason is not Taken.TAKEN:
            dropped.add_metric((reason.value,), status["dropped_reports"].get(reason.value, 0))
    yield dropped
