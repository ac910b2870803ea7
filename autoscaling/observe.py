"""Join reports, Ray Serve's replica states and the ingresses' demand into one observation; pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from autoscaling.decisions import Observation, PoolObservation
from autoscaling.demand import Demand
from autoscaling.latencies import Latencies
from autoscaling.observations import Seen, batch_limit
from autoscaling.types import (
    DRAINING_STATES,
    RUNNING_STATES,
    STARTING_STATES,
    ReplicaState,
    Role,
    ServePool,
    ServeStates,
)

SERVE_EXPIRES_S = 5.0  # an older look at Ray Serve says nothing about now


def observe(
    seen: Iterable[Seen],
    serve: ServeStates | None,
    demand: Demand,
    latencies: Latencies,
    *,
    now: float,
    wall: float,
    report_expires_s: float,
    young: bool,
    fresh: bool,
) -> Observation:
    """What is known at `now`; what has expired, or was never said, is None."""
    looked = serve if serve is not None and now - serve.at <= SERVE_EXPIRES_S else None
    speaking: dict[Role, list[Seen]] = {role: [] for role in Role}
    for item in seen:
        if item.report.state is ReplicaState.RUNNING and now - item.at <= report_expires_s:
            speaking[item.report.role].append(item)
    return Observation(
        now=now,
        wall=wall,
        pools={
            role: _pool(
                role,
                speaking[role],
                None if looked is None else looked.pools.get(role),
                demand,
                latencies,
                now,
            )
            for role in Role
        },
        young=young,
        fresh=fresh,
    )


def _pool(
    role: Role,
    speaking: Sequence[Seen],
    serve: ServePool | None,
    demand: Demand,
    latencies: Latencies,
    now: float,
) -> PoolObservation:
    # What Serve does not run is on its way out, whatever it still says.
    known = [item for item in speaking if serve is None or item.report.replica_id in serve.running_ids]
    return PoolObservation(
        target=None if serve is None else serve.target,
        running=None if serve is None else serve.count(RUNNING_STATES),
        starting=None if serve is None else serve.count(STARTING_STATES),
        draining=None if serve is None else serve.count(DRAINING_STATES),
        reporting=len(known),
        inflight=sum(item.report.inflight for item in known) if known else None,
        wanted=demand.wanted(role, now),
        refused=demand.refused(role, now),
        soft_limit=min((item.report.soft_limit for item in known), default=None),
        ttft_p95_s=latencies.ttft_p95_s(role, now),
        tpot_p95_s=latencies.tpot_p95_s(role, now),
        batch_limit=min((batch_limit(item.report) for item in known), default=None),
    )
