"""A recorded decision made again: the same functions, on nothing but the record; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from app.candidates import Candidate
from app.routing.ask import Ask
from app.routing.replicas import home_of, is_kept, less_work
from app.routing.rule import choose_pool
from app.routing.standin import replica_like
from app.routing.verdicts import Verdict
from app.routing.views import PoolView, emptiest
from autoscaling.route_reasons import RouteReason
from autoscaling.routing_rules import PoolSpeed, RoutingRules, StepCost, TierRules
from autoscaling.types import Role, Tier

Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a decision comes to; `None` where there is no route."""

    pool: Role | None
    reason: RouteReason | None
    verdicts: Mapping[Role, Verdict]
    replica: str | None


def replay(record: Record) -> Replayed:
    """Decide again; raises ValueError for a record that holds too little, of an older version for example.

    What was drawn at random is taken as it was drawn.
    """
    try:
        return _replay(record)
    except (KeyError, TypeError, AttributeError, msgspec.ValidationError) as error:
        raise _too_little(error) from error


def recorded(record: Record) -> Replayed:
    """What the decision came to, as it was written down; raises ValueError like `replay`."""
    try:
        pools = {Role(name): Verdict(pool["verdict"]) for name, pool in record["pools"].items()}
        taken = [one["id"] for one in record["replicas"] if one["chosen"]]
        reason = None if record["reason"] is None else RouteReason(record["reason"])
    except (KeyError, TypeError, AttributeError) as error:
        raise _too_little(error) from error
    pool = next((role for role, verdict in pools.items() if verdict is Verdict.CHOSEN), None)
    return Replayed(pool, reason, pools, taken[0] if taken else None)


def _replay(record: Record) -> Replayed:
    ask, rules = _ask(record["ask"]), _rules(record)
    views = {role: _view(role, record["pools"][role.value]) for role in Role}
    choice = choose_pool(ask, views, rules)
    option = choice.option
    return Replayed(
        None if option is None else option.role,
        None if option is None else option.reason,
        choice.verdicts,
        _taken(record, choice.roomy, ask.conversation),
    )


def _taken(record: Record, roomy: Sequence[Candidate], conversation: str | None) -> str | None:
    draw = record["draw"]
    if draw is None or not roomy:
        return None
    if draw["members"] == 1:
        return roomy[0].replica.replica_id
    if conversation is not None:
        home = home_of(roomy, conversation)
        if is_kept(home, draw["mean_load"]):
            return home.replica.replica_id
    by_id = {one.replica.replica_id: one for one in roomy}
    one, other = (by_id[found["id"]] for found in record["replicas"])
    return less_work(one, other).replica.replica_id


def _ask(found: Record) -> Ask:
    return Ask(
        tier=Tier(found["tier"]),
        pin=None if found["pin"] is None else Role(found["pin"]),
        sequences=found["sequences"],
        prompt_tokens=found["prompt_tokens"],
        max_tokens=found["max_tokens"],
        tokens_per_step=found["tokens_per_step"],
        draftable=found["draftable"],
        conversation=found["conversation"],
        wider=found["wider"],
    )


def _rules(record: Record) -> RoutingRules:
    found, tier = record["rules"], Tier(record["ask"]["tier"])
    mean = found["tokens_per_step_mean"]
    return RoutingRules(
        tiers={
            Tier.INTERACTIVE: TierRules(**found["interactive"]),
            tier: TierRules(**record["objective"]),
        },
        reserve=found["reserve"],
        backfill=found["backfill"],
        backfill_residence_s=found["backfill_residence_s"],
        tokens_per_step={} if mean is None else {"mean": mean},
        costs=msgspec.convert(found["costs"], dict[Role, StepCost]),
        speeds=msgspec.convert(found["speeds"], dict[Role, PoolSpeed]),
    )


def _view(role: Role, found: Record) -> PoolView:
    """The pool with the replicas that the verdict rests on; their parameters were looked at before."""
    able = tuple(_candidate(role, one) for one in found["candidates"])
    open_ = able if found["open"] else ()
    return PoolView(role, found["accepting"], able, open_, emptiest(able))


def _candidate(role: Role, found: Record) -> Candidate:
    return Candidate(
        replica_like(role, found["id"]),
        load=found["load"],
        limit=found["limit"],
        own_free=found["own_free"],
        hard_room=found["hard_room"],
        work=found["work"],
        ingresses=found["ingresses"],
    )


def _too_little(error: Exception) -> ValueError:
    return ValueError(f"the record of this decision cannot be replayed: {type(error).__name__}: {error}")
