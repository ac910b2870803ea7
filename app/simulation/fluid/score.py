"""A fluid run as scores: tiers, pools over time, moves and what it cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from app.simulation.engine_profile import EngineProfile
from app.simulation.fluid.course import Course
from app.simulation.fluid.history import History
from app.simulation.fluid.judge import judge, quantile
from app.simulation.fluid.load import FluidLoad, Numbers
from app.simulation.score import SECONDS_PER_HOUR, objective_of
from app.simulation.scores import Moment, MoveMade, Scores, TierScore
from autoscaling.decisions import Move
from autoscaling.policy import CapacityPolicy
from autoscaling.types import Role, Tier


@dataclass(frozen=True, slots=True)
class Look:
    """Both pools at one moment, by role."""

    running: Mapping[Role, int]
    starting: Mapping[Role, int]
    draining: Mapping[Role, int]
    demand: Mapping[Role, float]
    capacity: Mapping[Role, float]


@dataclass(frozen=True, slots=True)
class Ran:
    """What a run leaves for its scores."""

    load: FluidLoad
    history: History
    looks: Sequence[Look]  # at the beginning of each interval
    moves: Sequence[Move]
    switching_s: float  # of replicas that started or drained, within the trace
    replica_s: float  # of all replicas


def scores_of(
    ran: Ran,
    engines: EngineProfile,
    policy: CapacityPolicy,
    courses: Mapping[Role, Sequence[Course]],
    interval_s: float,
) -> Scores:
    """The scores of a run, by the objectives of its policy."""
    load, history = ran.load, ran.history
    objectives = {tier: objective_of(policy, tier) for tier in Tier}
    judged = judge(load, history, courses, objectives, interval_s, len(ran.looks))
    arrived = _by_interval(load, len(ran.looks), interval_s)
    present = [tier for tier in Tier if any(flow.tier is tier for flow in load.flows)]
    per_second = engines.accelerators / SECONDS_PER_HOUR
    return Scores(
        seconds=load.seconds,
        tiers={
            tier: _tier(
                ran,
                tier,
                float(judged.in_time[:, place].sum()),
                judged.ttft[place],
                judged.tpot[:, place].sum(axis=0),
            )
            for place, tier in enumerate(Tier)
            if tier in present
        },
        accelerator_hours=per_second * ran.replica_s,
        switching_hours=per_second * ran.switching_s,
        moves=tuple(_made(move) for move in ran.moves if move.at < load.seconds),
        series=tuple(
            Moment(
                at_s=number * interval_s,
                running=look.running,
                starting=look.starting,
                draining=look.draining,
                demand=look.demand,
                capacity=look.capacity,
                attainment={
                    tier: _share(float(judged.in_time[number, place]), float(arrived[number, place]))
                    for place, tier in enumerate(Tier)
                    if tier in present
                },
                tpot_p95_s={
                    tier: quantile(judged.tpot[number, place], 0.95)
                    for place, tier in enumerate(Tier)
                    if tier in present
                },
            )
            for number, look in enumerate(ran.looks)
        ),
        interval_s=interval_s,
    )


def _tier(ran: Ran, tier: Tier, in_time: float, ttft: Numbers, tpot: Numbers) -> TierScore:
    """One tier's score; what was broken off is taken from those in time and late in proportion."""
    load, history = ran.load, ran.history
    flows = [number for number, flow in enumerate(load.flows) if flow.tier is tier]
    kinds = [number for number, kind in enumerate(load.kinds) if kind.flow in flows]
    taken = float(history.taken[:, kinds].sum())
    failed = min(taken, sum(float(history.failed[flow]) for flow in flows))
    whole = 1.0 - failed / taken if taken > 0 else 1.0
    in_time = min(in_time, taken) * whole
    return TierScore(
        arrived=float(load.arrivals[:, kinds].sum()),
        in_time=in_time,
        late=max(0.0, taken - failed - in_time),
        refused=float(history.refused[:, kinds].sum()),
        failed=failed,
        tokens=sum(_tokens(ran, flow) for flow in flows),
        ttft_p50_s=quantile(ttft, 0.5),
        ttft_p95_s=quantile(ttft, 0.95),
        tpot_p50_s=quantile(tpot, 0.5),
        tpot_p95_s=quantile(tpot, 0.95),
    )


def _tokens(ran: Ran, flow: int) -> float:
    """Tokens of a flow's answers that ended within the trace; what was open then is longer than most."""
    load, history = ran.load, ran.history
    kinds = [number for number, kind in enumerate(load.kinds) if kind.flow == flow]
    begun = float(history.taken[: len(load.arrivals), kinds].sum())
    answers = load.flows[flow].answers
    open_or_failed = float(history.in_flight[flow] + history.failed[flow])
    return max(0.0, begun * answers.mean - open_or_failed * answers.mean_in_flight)


def _by_interval(load: FluidLoad, intervals: int, interval_s: float) -> Numbers:
    """Arrivals by interval and tier, tiers in the order of `Tier`."""
    found = np.zeros((intervals, len(Tier)))
    middles = (np.arange(len(load.arrivals)) + 0.5) * load.tick_s
    places = np.minimum((middles / interval_s).astype(int), intervals - 1)
    for number, kind in enumerate(load.kinds):
        tier = list(Tier).index(load.flows[kind.flow].tier)
        found[:, tier] += np.bincount(places, load.arrivals[:, number], intervals)
    return found


def intervals_of(load: FluidLoad, interval_s: float) -> int:
    """How many intervals a load has, the last one begun."""
    return math.ceil(load.seconds / interval_s)


def _share(part: float, whole: float) -> float | None:
    return min(1.0, part / whole) if whole > 0 else None


def _made(move: Move) -> MoveMade:
    took_s = None if move.ended_at is None else move.ended_at - move.at
    return MoveMade(
        move.at, move.source, move.receiver, move.count, move.reason.value, move.state.value, took_s
    )
