"""What a log says really happened, as the same scores that a simulation gives."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from math import ceil

import msgspec

from app.simulation.log.read import Log, Seen
from app.simulation.score import keeps
from app.simulation.scores import Moment, MoveMade, Scores, TierScore, middle_and_high
from app.simulation.traces.errors import TraceError
from app.simulation.traces.records import REQUESTS
from autoscaling.decisions import Decision, PoolObservation
from autoscaling.moves import in_flight
from autoscaling.policy import TierObjective
from autoscaling.request_line import Outcome
from autoscaling.request_record import Verdict
from autoscaling.types import Role, Tier
from deployments.kept_files import StoreError, UnknownSchemaError
from deployments.record_reader import read

SECONDS_PER_HOUR = 3600.0
LONGEST_S = 15.0  # that one observation stands for; after it nobody looked
REFUSED = (Outcome.SHED, Outcome.NO_CAPACITY)


class _Request(msgspec.Struct):
    wall: float
    tier: Tier
    outcome: Outcome
    verdict: Verdict | None = None
    generated_tokens: int | None = None
    ttft_s: float | None = None
    tpot_s: float | None = None

    @property
    def counts(self) -> bool:
        """Whether it is known to have been served in time or not; a caller's own doing is neither."""
        if self.outcome in (Outcome.CALLER, Outcome.CANCELLED) and self.verdict is not Verdict.MISSED:
            return False
        return self.verdict is not Verdict.UNKNOWN

    @property
    def in_time(self) -> bool:
        """Answered whole and inside every objective that it was judged by."""
        return self.outcome is Outcome.OK and self.verdict in (Verdict.MET, None)


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
    judged = (_judged(one, objectives.get(one.tier)) for one in _requests(log))
    requests = [one for one in judged if one.counts and 0 <= one.wall - log.began < trace_s]
    by_tier = {tier: [one for one in requests if one.tier is tier] for tier in Tier}
    switching_s, whole_s = _replica_seconds(seen, log.began, trace_s)
    return Scores(
        seconds=trace_s,
        tiers={tier: _tier(found) for tier, found in by_tier.items() if found},
        accelerator_hours=accelerators * whole_s / SECONDS_PER_HOUR,
        switching_hours=accelerators * switching_s / SECONDS_PER_HOUR,
        moves=tuple(_moves(log, trace_s)),
        series=tuple(_series(log, seen, by_tier, trace_s, interval_s)),
        interval_s=interval_s,
    )


def _requests(log: Log) -> Iterator[_Request]:
    """Those that are understood; how many are not is among the notes of the trace."""
    try:
        for record in read(log.folder, REQUESTS):
            try:
                yield msgspec.convert(record.get("request"), _Request)
            except msgspec.ValidationError:
                continue
    except (StoreError, UnknownSchemaError) as error:
        raise TraceError(str(error)) from error


def _judged(one: _Request, objective: TierObjective | None) -> _Request:
    """The request with a verdict by this objective; one that was not answered keeps its own."""
    if one.outcome is not Outcome.OK:
        return one
    verdict = None
    if objective is not None:
        unknown = objective.ttft_seconds is not None and one.ttft_s is None
        met = Verdict.UNKNOWN if unknown else Verdict.MET
        verdict = met if keeps(one.ttft_s, one.tpot_s, objective) else Verdict.MISSED
    return msgspec.structs.replace(one, verdict=verdict)


def _runs(seen: Seen) -> bool:
    """Whether Ray Serve's counts of both pools were known."""
    return all(_counted(seen.observation.pools[role]) is not None for role in Role)


def _counted(pool: PoolObservation) -> tuple[int, int] | None:
    """Replicas that ran, and that started or drained."""
    if pool.running is None or pool.starting is None or pool.draining is None:
        return None
    return pool.running, pool.starting + pool.draining


def _tier(found: Sequence[_Request]) -> TierScore:
    outcomes = Counter(one.outcome for one in found)
    in_time = sum(one.in_time for one in found)
    refused = sum(outcomes[outcome] for outcome in REFUSED)
    answered = [one for one in found if one.outcome is Outcome.OK]
    ttft_p50, ttft_p95 = middle_and_high(one.ttft_s for one in answered)
    tpot_p50, tpot_p95 = middle_and_high(one.tpot_s for one in answered)
    return TierScore(
        arrived=len(found),
        in_time=in_time,
        late=len(found) - in_time - refused - outcomes[Outcome.FAILED],
        refused=refused,
        failed=outcomes[Outcome.FAILED],
        tokens=sum(one.generated_tokens or 0 for one in answered),
        ttft_p50_s=ttft_p50,
        ttft_p95_s=ttft_p95,
        tpot_p50_s=tpot_p50,
        tpot_p95_s=tpot_p95,
    )


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
    by_tier: dict[Tier, list[_Request]],
    trace_s: float,
    interval_s: float,
) -> Iterator[Moment]:
    walls = [one.observation.wall - log.began for one in seen]
    decided = [one.wall - log.began for one in log.decisions]
    places = ceil(trace_s / interval_s)
    arrived: dict[Tier, list[list[_Request]]] = {
        tier: [[] for _ in range(places)] for tier, found in by_tier.items() if found
    }
    for tier, parts in arrived.items():
        for one in by_tier[tier]:
            parts[min(places - 1, int((one.wall - log.began) // interval_s))].append(one)
    for place in range(places):
        at_s = place * interval_s
        pools = seen[max(0, bisect_right(walls, at_s) - 1)].observation.pools
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


def _demand(pool: PoolObservation) -> float | None:
    return pool.inflight if pool.wanted is None else pool.wanted + (pool.refused or 0)


def _capacity(role: Role, pool: PoolObservation, decision: Decision | None) -> float | None:
    """By the limit of the newest decision, which a profile or the policy may have changed."""
    signal = None if decision is None else decision.signals.get(role)
    limit = signal.limit if signal is not None and signal.limit is not None else pool.soft_limit
    return None if limit is None or pool.running is None else float(limit * pool.running)


def _known(each: dict[Role, float | None]) -> dict[Role, float]:
    return {role: value for role, value in each.items() if value is not None}
