"""The controller's metrics: what the status says, as Prometheus families made at the scrape.

What is unknown has no sample; counters are there from the start, at 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from autoscaling.decisions import HoldBy, MoveState, Reason
from autoscaling.observations import Taken
from autoscaling.types import Role

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
REPLICA_STATES = ("running", "starting", "draining")
ENDED = (MoveState.DONE, MoveState.TIMED_OUT, MoveState.REPLACED)


def exposition(status: Mapping[str, Any], more: Iterable[Metric]) -> bytes:
    """The metrics in Prometheus' text format: those of the controller's status, and `more`."""
    registry = CollectorRegistry()
    registry.register(_Families(status, tuple(more)))
    return generate_latest(registry)


class _Families(Collector):
    def __init__(self, status: Mapping[str, Any], more: tuple[Metric, ...]) -> None:
        self._status = status
        self._more = more

    def collect(self) -> Iterator[Metric]:
        yield from _policy(self._status["policy"])
        yield from _pools(self._status)
        yield from _need(self._status["pools"])
        yield from _decisions(self._status)
        yield from _control(self._status)
        yield from self._more


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


def _need(pools: Mapping[str, Any]) -> Iterator[Metric]:
    demands = GaugeMetricFamily(
        "twinpool_pool_demand_sequences", "Sequences that want a pool.", labels=("pool",)
    )
    capacities = GaugeMetricFamily(
        "twinpool_pool_capacity_sequences",
        "Sequences that the target replicas of a pool can serve inside the limit.",
        labels=("pool",),
    )
    shorts = GaugeMetricFamily(
        "twinpool_pool_short_seconds", "How long a pool is short without a break.", labels=("pool",)
    )
    for role in Role:
        pool = pools[role.value]
        demand, capacity, short = pool["demand"], pool["capacity"], pool["short_seconds"]
        # A pool that nobody wants is not short, whatever it can serve.
        if short is None and demand is not None and (demand == 0 or capacity is not None):
            short = 0
        for family, value in ((demands, demand), (capacities, capacity), (shorts, short)):
            if value is not None:
                family.add_metric((role.value,), value)
    yield from (demands, capacities, shorts)


def _decisions(status: Mapping[str, Any]) -> Iterator[Metric]:
    reasons = GaugeMetricFamily(
        "twinpool_decision_reason", "1 for the reason of the last decision.", labels=("reason",)
    )
    decision = status["last_decision"]
    if decision is not None:
        for reason in Reason:
            reasons.add_metric((reason.value,), 1 if decision["reason"] == reason.value else 0)
    yield reasons
    age = GaugeMetricFamily("twinpool_move_age_seconds", "Age of the move in flight.")
    for move in status["moves"]:
        if move["age_seconds"] is not None:
            age.add_metric((), move["age_seconds"])
    yield age
    tick = GaugeMetricFamily(
        "twinpool_controller_last_tick_timestamp_seconds",
        "When the controller last came to a decision, in Unix seconds.",
    )
    if status["last_tick"] is not None:
        tick.add_metric((), datetime.fromisoformat(status["last_tick"]).timestamp())
    yield tick


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
