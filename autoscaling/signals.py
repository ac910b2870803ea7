"""What each pool needs, in numbers: demand, what its target replicas can serve, and the share of the two.

This is the place to change what "short" and "spare" mean; nothing else reads demand from reports.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from autoscaling.decisions import (
    Observation,
    PolicyInForce,
    PoolObservation,
    PoolRules,
    Reason,
    Signal,
    Sizes,
    Step,
)
from autoscaling.soft_limit import soft_limit
from autoscaling.types import Role

Signals = Mapping[Role, Signal]


def read(seen: Observation, policy: PolicyInForce, targets: Sizes) -> dict[Role, Signal]:
    """Both pools' signals at the present targets; what is not reported is None."""
    return {role: _signal(seen.pools[role], policy.pools[role], policy, targets[role]) for role in Role}


def enough_reports(pool: PoolObservation, policy: PolicyInForce) -> bool:
    """Whether so many of the running replicas report that their sum says something about the pool."""
    return not pool.running or pool.reporting >= policy.min_fresh_share * pool.running


def load(signal: Signal, replicas: int) -> float | None:
    """The utilization that the pool's demand would give so many replicas; None when it is unknown."""
    if signal.demand is None:
        return None
    if signal.demand <= 0:
        return 0.0
    if replicas <= 0:
        return inf
    return None if signal.limit is None else signal.demand / (signal.limit * replicas)


def short(signal: Signal, policy: PolicyInForce) -> bool:
    """Whether the pool's demand is known to be above what its replicas should serve."""
    now = load(signal, signal.replicas)
    return now is not None and now > policy.utilization_above


def spare(signal: Signal, policy: PolicyInForce) -> bool:
    """Whether the pool is known to do with one replica less."""
    if signal.replicas <= 0:
        return False
    then = load(signal, signal.replicas - 1)
    return then is not None and then <= policy.utilization_below


def missing(signal: Signal, policy: PolicyInForce, most: int) -> int:
    """How many replicas bring a short pool back inside its limit; 1 to `most`."""
    for more in range(1, most):
        then = load(signal, signal.replicas + more)
        # With an unknown limit nobody can say how many, so it is one at a time.
        if then is None or then <= policy.utilization_above:
            return more
    return most


def numbers(targets: Sizes, signals: Signals, policy: PolicyInForce) -> Step:
    """The signals as a step: it changes no target."""
    reason = Reason.SHORTFALL if any(short(signals[role], policy) for role in Role) else Reason.STEADY
    above = policy.utilization_above
    said = (f"{role}: {used(signals[role])}, short above {above:g} ({words(signals[role])})" for role in Role)
    return Step("signals", reason, targets, "; ".join(said))


def used(signal: Signal) -> str:
    """Such as `utilization 0.88`."""
    return f"utilization {'unknown' if signal.utilization is None else f'{signal.utilization:.2f}'}"


def words(signal: Signal) -> str:
    """The numbers as they stand in a summary: `demand 14, limit 8 x 1`."""
    demand = "unknown" if signal.demand is None else f"{signal.demand:g}"
    limit = "unknown" if signal.limit is None else signal.limit
    return f"demand {demand}, limit {limit} x {signal.replicas}"


def _signal(pool: PoolObservation, rules: PoolRules, policy: PolicyInForce, replicas: int) -> Signal:
    demand = _demand(pool) if enough_reports(pool, policy) else None
    limit = soft_limit(pool.soft_limit, pool.batch_limit, rules)
    capacity = 0.0 if replicas == 0 else None if limit is None else float(limit * replicas)
    utilization = demand / capacity if demand is not None and capacity else None
    return Signal(demand, capacity, utilization, replicas, limit)


def _demand(pool: PoolObservation) -> float | None:
    if pool.wanted is not None:
        # A request that found no room counts as a sequence; refusals nobody counted leave a lower bound.
        return float(pool.wanted + (pool.refused or 0))
    return None if pool.inflight is None else float(pool.inflight)
