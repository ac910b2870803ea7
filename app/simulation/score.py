"""The event model's result as scores: who was served in time, what the pools were over time, what it cost."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import chain
from math import ceil

import numpy as np

from app.simulation.ingress import Served
from app.simulation.scores import Moment, PoolScore, Scores, TierScore, middle_and_high
from app.simulation.setup import PoolsAt, Setup, Simulated
from autoscaling.policy import CapacityPolicy, TierObjective
from autoscaling.request_line import Outcome
from autoscaling.types import Role, Tier

REFUSED = (Outcome.SHED, Outcome.NO_CAPACITY)
HALF_S = 0.5  # the pools are looked at every second, and rounding moves a look by far less
SECONDS_PER_HOUR = 3600.0


def scores(simulated: Simulated, setup: Setup, trace_s: float, interval_s: float = 10.0) -> Scores:
    """What a setup brought on a trace of `trace_s` seconds, by the objectives of its policy.

    A request whose prompt no replica takes is its caller's mistake and counts nowhere.  Answers to the last
    requests, and what the pools were meanwhile, are judged but cost nothing: they lie behind the trace's end.
    """
    policy = setup.believed.policy
    counted = [one for one in simulated.served if one.outcome is not Outcome.CALLER]
    every = {tier: [one for one in counted if one.arrival.tier is tier] for tier in Tier}
    by_tier = {tier: served for tier, served in every.items() if served}
    within = [one for one in simulated.pools if one.at_s < trace_s]
    switching_s, all_s = _replica_seconds(within, trace_s)
    per_second = setup.engines.accelerators / SECONDS_PER_HOUR
    return Scores(
        seconds=trace_s,
        tiers={tier: _tier(served, objective_of(policy, tier), trace_s) for tier, served in by_tier.items()},
        accelerator_hours=per_second * all_s,
        switching_hours=per_second * switching_s,
        moves=tuple(one for one in simulated.moves if one.at_s < trace_s),
        series=_series(by_tier, within, policy, trace_s, interval_s),
        interval_s=interval_s,
        pools={role: _pool(counted, role, policy, trace_s) for role in Role},
    )


def objective_of(policy: CapacityPolicy, tier: Tier) -> TierObjective:
    """What a policy promises to a tier."""
    objectives = policy.spec.objectives
    return {
        Tier.INTERACTIVE: objectives.interactive,
        Tier.STANDARD: objectives.standard,
        Tier.BATCH: objectives.batch,
    }[tier]


def promises(objective: TierObjective) -> bool:
    """Whether anything is promised."""
    return objective.ttft_seconds is not None or objective.tpot_seconds is not None


def in_time(one: Served, objective: TierObjective) -> bool:
    """Whether a request was answered whole and inside every objective; an answer of one token has no TPOT."""
    return one.outcome is Outcome.OK and keeps(one.ttft_s, one.tpot_s, objective)


def keeps(ttft_s: float | None, tpot_s: float | None, objective: TierObjective) -> bool:
    """Whether times are inside every objective; one that is not known is late for none."""
    pairs = ((ttft_s, objective.ttft_seconds), (tpot_s, objective.tpot_seconds))
    return all(took is None or most is None or took <= most for took, most in pairs)


def _tier(served: Sequence[Served], objective: TierObjective, trace_s: float) -> TierScore:
    whole = [one for one in served if one.outcome is Outcome.OK]
    kept = sum(in_time(one, objective) for one in whole)
    refused = sum(one.outcome in REFUSED for one in served)
    ttft_p50, ttft_p95 = middle_and_high(one.ttft_s for one in whole)
    tpot_p50, tpot_p95 = middle_and_high(one.tpot_s for one in whole)
    return TierScore(
        arrived=len(served),
        in_time=kept,
        late=len(whole) - kept,
        refused=refused,
        failed=len(served) - len(whole) - refused,
        tokens=sum(one.tokens for one in whole if one.ended_at <= trace_s),
        ttft_p50_s=ttft_p50,
        ttft_p95_s=ttft_p95,
        tpot_p50_s=tpot_p50,
        tpot_p95_s=tpot_p95,
    )


def _pool(served: Sequence[Served], role: Role, policy: CapacityPolicy, trace_s: float) -> PoolScore:
    here = [one for one in served if one.pool is role]
    objectives = {tier: objective_of(policy, tier) for tier in Tier}
    judged = [one for one in here if promises(objectives[one.arrival.tier])]
    return PoolScore(
        judged=len(judged),
        in_time=sum(in_time(one, objectives[one.arrival.tier]) for one in judged),
        tokens=sum(one.tokens for one in here if one.outcome is Outcome.OK and one.ended_at <= trace_s),
    )


def _series(
    by_tier: Mapping[Tier, Sequence[Served]],
    pools: Sequence[PoolsAt],
    policy: CapacityPolicy,
    trace_s: float,
    interval_s: float,
) -> tuple[Moment, ...]:
    times = [one.at_s for one in pools]
    places = range(ceil(trace_s / interval_s))
    arrived: dict[Tier, list[list[Served]]] = {tier: [[] for _ in places] for tier in by_tier}
    for one in chain.from_iterable(by_tier.values()):
        place = int(one.arrival.at_s // interval_s)
        if place < len(places):
            arrived[one.arrival.tier][place].append(one)
    found = []
    for place in places:
        at_s = place * interval_s
        look = pools[max(0, bisect_right(times, at_s + HALF_S) - 1)]
        here = {tier: parts[place] for tier, parts in arrived.items()}
        found.append(
            Moment(
                at_s=at_s,
                running=look.running,
                starting=look.starting,
                draining=look.draining,
                demand=look.demand,
                capacity=look.capacity,
                attainment={tier: _share(some, objective_of(policy, tier)) for tier, some in here.items()},
                tpot_p95_s={tier: _tpot_p95(some) for tier, some in here.items()},
            )
        )
    return tuple(found)


def _share(served: Sequence[Served], objective: TierObjective) -> float | None:
    return sum(in_time(one, objective) for one in served) / len(served) if served else None


def _tpot_p95(served: Sequence[Served]) -> float | None:
    return middle_and_high(one.tpot_s for one in served if one.outcome is Outcome.OK)[1]


def _replica_seconds(pools: Sequence[PoolsAt], trace_s: float) -> tuple[float, float]:
    """Seconds of replicas that started or drained, and of all; a look stands until the next or the end."""
    until = [*(one.at_s for one in pools[1:]), trace_s]
    switching = [sum((*one.starting.values(), *one.draining.values())) for one in pools]
    whole = [count + sum(one.running.values()) for count, one in zip(switching, pools, strict=True)]
    seconds = np.array(until) - np.array([one.at_s for one in pools])
    return float(seconds @ np.array(switching)), float(seconds @ np.array(whole))
