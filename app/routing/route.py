"""The whole decision about one attempt: pool, replica, reason; or why there is none."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from app.candidates import Candidate
from app.routing.ask import Ask
from app.routing.record import plain_decision
from app.routing.replicas import Choose, ReplicaChoice, choose_replica
from app.routing.rule import PoolChoice, choose_pool
from app.routing.verdicts import PASSING, Verdict
from app.routing.views import PoolView, pool_view
from autoscaling.route_reasons import RouteReason
from autoscaling.routing_rules import RoutingRules
from autoscaling.types import ReplicaView, Role


class Refusal(StrEnum):
    """Why there is no route now."""

    NO_REPLICA = "no_replica"  # nobody who could serve it takes work
    NO_ROOM = "no_room"
    CAPABILITY = "capability"  # the pool that the caller names refuses a parameter


@dataclass(frozen=True, slots=True)
class Decision:
    """What was seen, what each pool was worth, and what was taken; made once, never revised."""

    ask: Ask
    rules: RoutingRules  # those of this moment: the next snapshot may bring others
    views: Mapping[Role, PoolView]
    choice: PoolChoice
    replica: ReplicaChoice | None


@dataclass(frozen=True, slots=True)
class Route:
    """Where one attempt goes."""

    replica: ReplicaView
    pool: Role
    reason: RouteReason
    decision: Decision


def decide(
    ask: Ask,
    candidates: Sequence[Candidate],
    rules: RoutingRules,
    *,
    tried: Collection[str] = frozenset(),
    choose: Choose,
) -> Decision:
    """Decide on one attempt; `tried` are replicas that did not accept it."""
    views = {role: pool_view(role, ask, candidates, tried) for role in Role}
    choice = choose_pool(ask, views, rules)
    replica = choose_replica(choice.roomy, ask.conversation, choose) if choice.roomy else None
    return Decision(ask, rules, views, choice, replica)


def route_of(decision: Decision) -> Route | None:
    """The route that was decided on; None when `refusal_of` has to say why not."""
    option, replica = decision.choice.option, decision.replica
    if option is None or replica is None:
        return None
    return Route(replica.taken.replica, option.role, option.reason, decision)


def refusal_of(decision: Decision) -> Refusal:
    """Why nothing was taken."""
    verdicts = decision.choice.verdicts
    if any(verdict in PASSING for verdict in verdicts.values()):
        return Refusal.NO_ROOM
    pin = decision.ask.pin
    if pin is not None and verdicts[pin] is Verdict.REFUSES_PARAMETER:
        return Refusal.CAPABILITY
    # Without a pin a plain replica, which refuses nothing, can serve this when it is back.
    return Refusal.NO_REPLICA


def record(decision: Decision) -> dict[str, Any]:
    """The decision in plain numbers, as a request's record keeps it; `replay` makes it again from them."""
    return plain_decision(
        decision.ask, decision.rules, decision.views.values(), decision.choice, decision.replica
    )
