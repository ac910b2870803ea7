"""What a log says really happened, as the same scores that a simulation gives."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from math import ceil

from app.simulation.log.answered import Answered, answered, pool_score, tier_score
from app.simulation.log.read import Log, Seen
from app.simulation.scores import Moment, MoveMade, Scores, middle_and_high
from autoscaling.decisions import Decision, PoolObservation
from autoscaling.moves import in_flight
from autoscaling.policy import TierObjective
from autoscaling.types import Role, Tier

SECONDS_PER_HOUR = 3600.0
LONGEST_S = 15.0  # that one observation stands for; after it nobody looked


def what_happened(
    log: Log,
    trace_s: float,
    accelerators: int,
    objectives: Mapping[Tier, TierObjective],
    interval_s: float = 10.0,
) -> Scores | None:
    """The log's own scores over `trace_s` seconds from its first request; None without observations.

    `accelerators` is what a replica takes, which records do not say.  Answers are judged by `objectives`,
    whatever was in force when they ended, so that a simulation can stand beside them.  Raises TraceError.
    """
    seen = [one for one in log.seen if one.observation.wall >= log.began - LONGEST_S and _runs(one)]
    if not seen:
        return None
    requests = [
        one for one in answered(log.folder, objectives) if one.counts and 0 <= one.wall - log.began < trace_s
    ]
    by_tier = {tier: [one for one in requests if one.tier is tier] for tier in Tier}
    switching_s, whole_s = _replica_seconds(seen, log.began, trace_s)
    return Scores(
        seconds=trace_s,
        tiers={tier: tier_score(found, log.began + trace_s) for tier, found in by_tier.items() if found},
        accelerator_hours=accelerators * whole_s / SECONDS_PER_HOUR,
        switching_hours=accelerators * switching_s / SECONDS_PER_HOUR,
        moves=tuple(_moves(log, trace_s)),
        series=tuple(_series(log, seen, by_tier, trace_s, interval_s)),
        interval_s=interval_s,
        pools={
            role: pool_score([one for one in requests if one.pool is role], objectives, log.began + trace_s)
            for role in Role
        },
    )


def _runs(seen: Seen) -> bool:
    """Whether Ray Serve's counts of both pools were known."""
    return all(_counted(seen.observation.pools[role]) is not None for role in Role)


def _counted(pool: PoolObservation) -> tuple[int, int] | None:
    """Replicas that ran, and that started or drained."""
    if pool.running is None or pool.starting is None or pool.draining is None:
        return None
    return pool.running, pool.starting + pool.draining


def _replica_seconds(seen: Sequence[Seen], began: float, trace_s: float) -> tuple[float, float]:
    """Seconds of replicas that started or drained, and of all, inside the trace."""
    switching_s = whole_s = 0.0
    walls = [one.observation.wall - began for one in seen]
    for one, (at_s, next_s) in zip(seen, pairwise([*walls, trace_s]), strict=True):
        until_s = min(next_s, at_s + LONGEST_S, trace_s)
        stood_s = max(0.0, until_s - max(0.0, at_s))
        for role in Role:
            running, switching = _counted(one.observation.pools[role]) or (0, 0)
            switching_s += switching * stood_s
            whole_s += (running + switching) * stood_s
    return switching_s, whole_s


def _moves(log: Log, trace_s: float) -> Iterator[MoveMade]:
    """Every move as the newest decision has it; ids may begin anew with a life, times do not."""
    newest = {
        (move.id, move.wall): move
        for decision in log.decisions
        for move in (decision.ended, decision.move)
        if move is not None
    }
    for move in sorted(newest.values(), key=lambda one: one.wall):
        at_s = move.wall - log.began
        if 0 <= at_s < trace_s:
            took_s = None if in_flight(move) or move.ended_at is None else move.ended_at - move.at
            yield MoveMade(
                at_s, move.source, move.receiver, move.count, move.reason.value, move.state.value, took_s
            )


def _series(
    log: Log,
    seen: Sequence[Seen],
    by_tier: dict[Tier, list[Answered]],
    trace_s: float,
    interval_s: float,
) -> Iterator[Moment]:
    walls = [one.observation.wall - log.began for one in seen]
    decided = [one.wall - log.began for one in log.decisions]
    places = ceil(trace_s / interval_s)
    arrived: dict[Tier, list[list[Answered]]] = {
        tier: [[] for _ in range(places)] for tier, found in by_tier.items() if found
    }
    for tier, parts in arrived.items():
        for one in by_tier[tier]:
            parts[min(places - 1, int((one.wall - log.began) // interval_s))].append(one)
    for place in range(places):
        at_s = place * interval_s
        pools = seen[_look(walls, at_s, interval_s)].observation.pools
        before = bisect_right(decided, at_s)
        decision = log.decisions[before - 1] if before else None
        here = {tier: parts[place] for tier, parts in arrived.items()}
        yield Moment(
            at_s=at_s,
            running={role: pools[role].running or 0 for role in Role},
            starting={role: pools[role].starting or 0 for role in Role},
            draining={role: pools[role].draining or 0 for role in Role},
            demand=_known({role: _demand(pools[role]) for role in Role}),
            capacity=_known({role: _capacity(role, pools[role], decision) for role in Role}),
            attainment={
                tier: sum(one.in_time for one in found) / len(found) if found else None
                for tier, found in here.items()
            },
            tpot_p95_s={
                tier: middle_and_high(one.tpot_s for one in found)[1] for tier, found in here.items()
            },
        )


def _look(walls: Sequence[float], at_s: float, interval_s: float) -> int:
    """The first look inside an interval; where nobody looked, the last one before, else the first of all.

    A look before the trace began may have seen replicas start that served its first request.
    """
    first = bisect_left(walls, at_s)
    inside = first < len(walls) and walls[first] < at_s + interval_s
    return first if inside else max(0, first - 1)


def _demand(pool: PoolObservation) -> float | None:
    return pool.inflight if pool.wanted is None else pool.wanted + (pool.refused or 0)


def _capacity(role: Role, pool: PoolObservation, decision: Decision | None) -> float | None:
    """By the limit of the newest decision, which a profile or the policy may have changed."""
    signal = None if decision is None else decision.signals.get(role)
    limit = signal.limit if signal is not None and signal.limit is not None else pool.soft_limit
    return None if limit is None or pool.running is None else float(limit * pool.running)


def _known(each: dict[Role, float | None]) -> dict[Role, float]:
    return {role: value for role, value in each.items() if value is not None}
