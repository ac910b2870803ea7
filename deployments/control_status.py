"""The controller's part of the status JSON; unknown is None, never zero."""

from __future__ import annotations

from typing import Any

from autoscaling.decisions import Decision, Hold, MoveState, PolicyInForce
from autoscaling.instants import rfc3339
from autoscaling.moves import in_flight
from autoscaling.overrides import Override, active, from_policy
from autoscaling.policy_in_force import precedence_words
from autoscaling.profile_match import fitted
from autoscaling.schedules import next_change
from autoscaling.types import (
    DRAINING_STATES,
    RUNNING_STATES,
    STARTING_STATES,
    Role,
    ServeStates,
)
from deployments.config import ControllerSettings
from deployments.control_state import ControlState
from deployments.policy_use import Default, acting_document

Plain = dict[str, Any]
MOVES_SHOWN = 20
# What limits and predictions rest on.
FITTED = "fitted"  # on measured costs of both pools, which have passed the quality gate
FALLBACK = "fallback"  # on limits that somebody has set, at least for one pool
ACCELERATOR_STATES = (*STARTING_STATES, *RUNNING_STATES, *DRAINING_STATES)


def control_status(
    settings: ControllerSettings,
    state: ControlState,
    serve: ServeStates | None,
    default: Default,
    *,
    now: float,
    wall: float,
) -> Plain:
    """Policy, hold, overrides, budget, moves and the last decision.

    `now` is the controller's monotonic clock, `wall` Unix seconds.
    """
    decision, moving = state.decision, state.memory.move
    ages = {} if moving is None or not in_flight(moving) else {moving.id: max(0.0, now - moving.at)}
    document = acting_document(state, default)
    overrides = [*from_policy(document), *state.overrides]
    change = next_change(document.spec.schedules, wall)
    return {
        "last_tick": None if state.ticked_wall is None else rfc3339(state.ticked_wall),
        "ticks": state.ticks,
        "failed_ticks": state.failures,
        "model": FITTED if fitted(state.profile, state.served) else FALLBACK,
        "moves_ended": dict(state.moves_ended),
        "policy": policy_status(settings, state),
        "precedence": None if state.policy is None else precedence_words(state.policy),
        "next_schedule_change": None if change is None else rfc3339(change),
        "hold": None if decision is None or decision.hold is None else hold_status(decision.hold),
        "overrides": [override_status(one) for one in active(overrides, wall)],
        "budget": _budget(state.policy, serve),
        "moves": [move_status(move, ages.get(move["id"])) for move in reversed(state.moves[-MOVES_SHOWN:])],
        "last_decision": None if decision is None else _decision(decision),
        "shadow_decision": None if state.shadow is None else _decision(state.shadow),
    }


def policy_status(settings: ControllerSettings, state: ControlState) -> Plain:
    """Which revision acts, which was seen last, and what was wrong with it."""
    book = state.book
    acting = book.acting
    newest = book.revisions[-1] if book.revisions else None
    return {
        "name": None if acting is None else acting.policy.metadata.name,
        "path": settings.policy,
        "mode": None if acting is None else acting.policy.spec.mode.value,
        "seen_revision": book.seen_revision,
        "active_revision": None if book.active is None else book.active.number,
        "shadow_revision": None if book.shadow is None else book.shadow.number,
        "sha": None if acting is None else acting.sha,
        "state": None if newest is None else newest.state.value,
        "last_error": book.last_error,
        "refused": book.refused,
    }


def pool_words(state: ControlState, role: Role, serve: ServeStates | None, now: float) -> Plain:
    """Target, plan and need of one pool, and what keeps it from being larger or smaller.

    `now` is the controller's monotonic clock.
    """
    decision, policy = state.decision, state.policy
    targets = None if decision is None else decision.targets
    plan = None if decision is None else decision.plan
    rules = None if policy is None else policy.pools[role]
    found = None if serve is None else serve.pools[role]
    clamps = []
    if rules is not None and targets is not None:
        if rules.bound_by != "pools":
            clamps.append(rules.bound_by)
        if targets[role] in (rules.minimum, rules.maximum) and rules.minimum != rules.maximum:
            clamps.append("minReplicas" if targets[role] == rules.minimum else "maxReplicas")
    return {
        "target": None if targets is None else targets[role],
        "planned": None if plan is None else plan[role],
        "serve_target": None if found is None else found.target,
        "clamped_by": ", ".join(clamps) or None,
        **_need(state, role, now),
    }


def _need(state: ControlState, role: Role, now: float) -> Plain:
    """The last decision's numbers in sequences; how long short, None while not short or unknown."""
    signal = None if state.decision is None else state.decision.signals.get(role)
    since = state.memory.short_since.get(role)
    return {
        "demand": None if signal is None else signal.demand,
        "capacity": None if signal is None else signal.capacity,
        "utilization": None if signal is None or signal.utilization is None else round(signal.utilization, 4),
        "short_seconds": None if since is None else round(max(0.0, now - since), 3),
    }


def hold_status(hold: Hold) -> Plain:
    """One hold."""
    return {
        "by": hold.by.value,
        "reason": hold.reason,
        "since": rfc3339(hold.since),
        "expires": None if hold.expires is None else rfc3339(hold.expires),
        "who": hold.who,
    }


def override_status(one: Override) -> Plain:
    """One override."""
    return {
        "id": one.id,
        "pool": one.pool.value,
        "replicas": one.replicas,
        "min_replicas": one.minimum,
        "max_replicas": one.maximum,
        "since": None if one.since is None else rfc3339(one.since),
        "until": rfc3339(one.until),
        "reason": one.reason,
        "by": one.by,
    }


def move_status(move: Plain, age_s: float | None) -> Plain:
    """One move, from its kept record; `age_s` is None when it is not in flight."""
    ended, began = move.get("ended_at"), move["at"]
    return {
        "id": move["id"],
        "at": rfc3339(move["wall"]),
        "from": move["source"],
        "to": move["receiver"],
        "count": move["count"],
        "before": move.get("before"),
        "after": move.get("after"),
        "reason": move["reason"],
        "state": move["state"],
        "waiting_for": move["waiting_for"] or None,
        "age_seconds": None if age_s is None else round(age_s, 3),
        "duration_seconds": None if ended is None else round(ended - began, 3),
        "drain_seconds": _between(began, move.get("drained_at")),
        # After the last donor has gone; the first receivers may have begun before.
        "start_seconds": _between(move.get("drained_at") or began, ended)
        if move["state"] == MoveState.DONE.value
        else None,
        "revision": move["revision"],
    }


def _between(begin: float | None, end: float | None) -> float | None:
    return None if begin is None or end is None else round(end - begin, 3)


def _decision(decision: Decision) -> Plain:
    return {
        "id": str(decision.number),
        "at": rfc3339(decision.wall),
        "reason": decision.reason.value,
        "summary": decision.summary,
    }


def _budget(policy: PolicyInForce | None, serve: ServeStates | None) -> Plain | None:
    if policy is None:
        return None
    used = None
    if serve is not None:
        used = sum(
            policy.pools[role].accelerators * pool.count(ACCELERATOR_STATES)
            for role, pool in serve.pools.items()
        )
    return {
        "accelerators": policy.budget_max,
        "used": used,
        "min": policy.budget_min,
        "surge": policy.surge,
    }
