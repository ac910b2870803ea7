"""A decision in plain numbers, as a request's record keeps it: enough to make it again; null is unknown.

A few KB at most, however many replicas there are: of each pool it holds the replicas that the verdict
rests on, and those that were compared.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from app.candidates import Candidate
from app.routing.ask import Ask
from app.routing.judge import NO_RULES
from app.routing.replicas import ReplicaChoice
from app.routing.rule import PoolChoice
from app.routing.views import PoolView
from autoscaling.routing_rules import RoutingRules
from autoscaling.types import Role, Tier


def plain_decision(
    ask: Ask,
    rules: RoutingRules,
    views: Iterable[PoolView],
    choice: PoolChoice,
    replica: ReplicaChoice | None,
) -> dict[str, Any]:
    """As JSON values: `pools`, `objective`, `replicas` and `reason` to read, the rest to decide again."""
    objective = rules.tiers.get(ask.tier, NO_RULES)
    return {
        "pools": {view.role.value: _pool(view, choice, replica, rules) for view in views},
        "objective": {"ttft_s": objective.ttft_s, "tpot_s": objective.tpot_s},
        "replicas": [] if replica is None else [_compared(one, replica) for one in replica.drawn],
        "reason": None if choice.option is None else choice.option.reason.value,
        "ask": _ask(ask),
        "rules": _rules(rules),
        "draw": None if replica is None else {"members": replica.members, "mean_load": replica.mean_load},
    }


def _pool(
    view: PoolView, choice: PoolChoice, replica: ReplicaChoice | None, rules: RoutingRules
) -> dict[str, Any]:
    role, best, judged = view.role, view.emptiest, choice.judged.get(view.role)
    prediction = None if judged is None else judged.prediction
    seen = [best] if judged is None else [*judged.witnesses]
    if replica is not None and replica.taken.replica.role is role:
        seen += [*replica.drawn, replica.home]
    return {
        "accepting": view.accepting,
        "able": len(view.able),
        "open": len(view.open),
        "load": None if best is None else best.load,
        "limit": None if best is None else best.limit,
        "free": None if best is None else best.free,
        "reserve": rules.reserve if role is Role.SPECULATIVE else 0,
        "predicted_ttft_s": None if prediction is None else prediction.ttft_s,
        "predicted_tpot_s": None if prediction is None else prediction.tpot_s,
        "from": None if prediction is None else prediction.source.value,
        "verdict": choice.verdicts[role].value,
        "candidates": [_candidate(one) for one in {id(one): one for one in seen if one is not None}.values()],
    }


def _candidate(one: Candidate) -> dict[str, Any]:
    return {
        "id": one.replica.replica_id,
        "load": one.load,
        "limit": one.limit,
        "own_free": one.own_free,
        "hard_room": one.hard_room,
        "work": one.work,
        "ingresses": one.ingresses,
    }


def _compared(one: Candidate, replica: ReplicaChoice) -> dict[str, Any]:
    taken = one is replica.taken
    return {
        "id": one.replica.replica_id,
        "load": one.load,
        "work": round(one.work, 1),
        "chosen": taken,
        "why": replica.pick.value if taken else None,
    }


def _ask(ask: Ask) -> dict[str, Any]:
    return {
        "tier": ask.tier.value,
        "pin": None if ask.pin is None else ask.pin.value,
        "parameters": sorted(ask.parameters),
        "sequences": ask.sequences,
        "prompt_tokens": ask.prompt_tokens,
        "max_tokens": ask.max_tokens,
        "tokens_per_step": ask.tokens_per_step,
        "draftable": ask.draftable,
        "conversation": ask.conversation,
        "wider": ask.wider,
    }


def _rules(rules: RoutingRules) -> dict[str, Any]:
    interactive = rules.tiers.get(Tier.INTERACTIVE, NO_RULES)
    return {
        "reserve": rules.reserve,
        "backfill": rules.backfill,
        "backfill_residence_s": rules.backfill_residence_s,
        "interactive": {"ttft_s": interactive.ttft_s, "tpot_s": interactive.tpot_s},
        "tokens_per_step_mean": rules.tokens_per_step.get("mean"),
        "costs": {role.value: msgspec.to_builtins(cost) for role, cost in rules.costs.items()},
        "speeds": {role.value: msgspec.to_builtins(speed) for role, speed in rules.speeds.items()},
    }
