"""Recorded routes made again under two policies, from nothing but their records; what comes out otherwise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from app.routing.replay import Record, Replayed, recorded, replay
from app.simulation.score import objective_of
from app.simulation.traces.errors import TraceError
from app.simulation.traces.records import REQUESTS
from app.workload.acceptance import draftable
from autoscaling.policy import CapacityPolicy, TierObjective
from autoscaling.policy_in_force import pool_objective
from autoscaling.profile import Profile
from autoscaling.rules_of_policy import measured_limit
from autoscaling.types import Role, Tier
from deployments.kept_files import StoreError, UnknownSchemaError
from deployments.record_reader import last, read

MOST_KEPT = 1000  # changes with all that is known of them; the others are counted
NO_LIMITS: Mapping[Role, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class RouteChange:
    """One request that would have gone elsewhere, or for another reason."""

    wall: float  # arrival, Unix seconds
    request: str
    tier: Tier
    old: Replayed
    new: Replayed


@dataclass(frozen=True, slots=True)
class RouteKind:
    """Requests of one tier that went one way under the old policy and go another one under the new."""

    first: RouteChange
    requests: int


@dataclass(frozen=True, slots=True)
class RoutesAgain:
    """All routes of a log, made again."""

    remade: int
    as_recorded: int  # of these, the old policy decides as the service did
    unknown: Mapping[str, int]  # why they cannot be made again: how many
    elsewhere: int  # the pool differs, or whether there is one
    otherwise: int  # the pool is the same, the reason is not
    kinds: tuple[RouteKind, ...]  # of all that differ, the most frequent first
    changes: tuple[RouteChange, ...]  # the first of both, by the order of the records


def records_of(folder: Path) -> Iterator[Record]:
    """Every request's record; raises TraceError."""
    try:
        for line in read(folder, REQUESTS):
            found = line.get("request")
            if isinstance(found, dict):
                yield found
    except (StoreError, UnknownSchemaError) as error:
        raise TraceError(str(error)) from error


def how_many(folder: Path) -> int:
    """About as many records as `records_of` gives, without reading them all; raises TraceError."""
    try:
        newest = last(folder, REQUESTS, None, 1)
        first = next(iter(read(folder, REQUESTS)), None)
    except (StoreError, UnknownSchemaError) as error:
        raise TraceError(str(error)) from error
    return int(newest[-1]["seq"] - first["seq"] + 1) if newest and first else 0


def routes_again(
    records: Iterable[Record],
    old: CapacityPolicy,
    new: CapacityPolicy,
    profile: Profile | None = None,
    say: Callable[[int], None] | None = None,
) -> RoutesAgain:
    """Make every recorded route again under both policies.

    Costs, speeds and predicted gains are as they were recorded, and so are the limits of replicas: a policy's
    softInflight lowers them, and with a `profile` of what was served its objectives move them where the
    service had one.  The old policy is taken for the one that acted.  `say` is told how many are done.
    """
    remade = as_recorded = elsewhere = otherwise = 0
    unknown: Counter[str] = Counter()
    changes: list[RouteChange] = []
    kinds: dict[Hashable, RouteKind] = {}
    acting, other = measured_limits(old, profile), measured_limits(new, profile)
    for number, request in enumerate(records, 1):
        if say is not None:
            say(number)
        decision = request.get("decision")
        if not decision:
            continue  # it was refused before anybody was asked
        try:
            before = replay(under(decision, old, acting, acting))
            after = replay(under(decision, new, other, acting))
            was = recorded(decision)
            change = RouteChange(
                request["wall"], str(request["id"]), Tier(decision["ask"]["tier"]), before, after
            )
        except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            unknown[_why(error)] += 1
            continue
        remade += 1
        as_recorded += (before.pool, before.reason) == (was.pool, was.reason)
        elsewhere += before.pool is not after.pool
        otherwise += before.pool is after.pool and before.reason is not after.reason
        if (before.pool, before.reason) == (after.pool, after.reason):
            continue
        key = (change.tier, _way(before), _way(after))
        known = kinds.get(key, RouteKind(change, 0))
        kinds[key] = replace(known, requests=known.requests + 1)
        if len(changes) < MOST_KEPT:
            changes.append(change)
    return RoutesAgain(
        remade,
        as_recorded,
        dict(unknown),
        elsewhere,
        otherwise,
        tuple(sorted(kinds.values(), key=lambda one: -one.requests)),
        tuple(changes),
    )


def _way(one: Replayed) -> Hashable:
    """What requests have in common that go the same way; where there is none, what stands against it."""
    return (one.pool, one.reason, None if one.pool else tuple(sorted(one.verdicts.items())))


def measured_limits(policy: CapacityPolicy, profile: Profile | None) -> dict[Role, int]:
    """The limits per replica that a profile gives under a policy; without one they are absent."""
    found = {role: measured_limit(role, pool_objective(policy, role).tpot_seconds, profile) for role in Role}
    return {role: limit for role, limit in found.items() if limit is not None}


def under(
    record: Record,
    policy: CapacityPolicy,
    own: Mapping[Role, int] = NO_LIMITS,
    acting: Mapping[Role, int] = NO_LIMITS,
) -> dict[str, Any]:
    """The record of a decision with the rules of a policy in it; which replica it takes is left open.

    `own` are the measured limits under this policy, `acting` those under the policy that acted.  Raises
    KeyError, TypeError or ValueError for a record that holds too little.
    """
    spec, ask = policy.spec, record["ask"]
    if not record["rules"]["costs"]:
        own = acting = NO_LIMITS  # the service had no profile
    return {
        **record,
        "ask": {**ask, "draftable": spec.workload.classify and draftable(ask["tokens_per_step"])},
        "objective": _promise(objective_of(policy, Tier(ask["tier"]))),
        "rules": {
            **record["rules"],
            "reserve": spec.backfill.reserve,
            "backfill": spec.backfill.enabled,
            "backfill_residence_s": spec.backfill.max_residence_seconds,
            "interactive": _promise(spec.objectives.interactive),
        },
        "pools": {
            role.value: _pool(record["pools"][role.value], role, policy, own.get(role), acting.get(role))
            for role in Role
        },
        # The replicas that were compared are those of the pool that was taken then.
        "draw": None,
    }


def _promise(objective: TierObjective) -> dict[str, float | None]:
    return {"ttft_s": objective.ttft_seconds, "tpot_s": objective.tpot_seconds}


def _pool(
    found: Mapping[str, Any], role: Role, policy: CapacityPolicy, own: int | None, acting: int | None
) -> dict[str, Any]:
    pools = policy.spec.pools
    soft = (pools.speculative if role is Role.SPECULATIVE else pools.plain).limits.soft_inflight
    return {**found, "candidates": [_candidate(one, soft, own, acting) for one in found["candidates"]]}


def _candidate(
    found: Mapping[str, Any], soft: int | None, own: int | None, acting: int | None
) -> dict[str, Any]:
    """A replica at the limit that it would have; an ingress loses or gains its share of the difference."""
    limit: int = found["limit"]
    if own is not None and acting is not None:
        # Below the measured limit something else bounds the replica, and still would.
        limit = min(limit, own) if limit < acting else own
    limit = limit if soft is None else min(limit, soft)
    share = (limit - found["limit"]) // found["ingresses"]
    return {**found, "limit": limit, "own_free": found["own_free"] + share}


def _why(error: Exception) -> str:
    """Without what differs from record to record, so that like ones are counted together."""
    if isinstance(error, KeyError):
        return f"the record has no {error}"
    return str(error).removeprefix("the record of this decision cannot be replayed: ")
