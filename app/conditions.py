"""Conditions of the status: each true, false, or null while it is unknown; in Kubernetes' shape.

All but those of `BAD_WHEN_TRUE` are true while all is well, and those of `INFORMATION` are never a fault.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from autoscaling.decisions import MoveState
from autoscaling.profile import ProfileState
from autoscaling.profiling.findings import PoolAnswer
from autoscaling.types import Role

Condition = dict[str, Any]
PROFILE_STALE: Final = "ProfileStale"
ONE_POOL_ENOUGH: Final = "OnePoolEnough"
BAD_WHEN_TRUE: Final = frozenset({PROFILE_STALE})
INFORMATION: Final = frozenset({ONE_POOL_ENOUGH})


def conditions(
    found: Mapping[str, Any], serving: Collection[Role], stopping: bool, reachable: bool
) -> list[Condition]:
    """All of them; `found` is the controller's last word, empty before the first."""
    return [
        *(_pool(role, role in serving) for role in Role),
        _reachable(reachable),
        _one_model(found),
        _taking(stopping),
        _policy(found),
        _not_held(found),
        _in_budget(found),
        _moves_on_time(found),
        _state_kept(found),
        _profile_stale(found),
        _one_pool_enough(found),
    ]


def at_fault(kind: str, status: bool | None) -> bool:
    """Whether a condition with this status says that something is to be mended."""
    return kind not in INFORMATION and status is (kind in BAD_WHEN_TRUE)


def _condition(
    kind: str, status: bool | None, when_true: str, when_false: str, message: str = ""
) -> Condition:
    """`message` is for the status that is at fault; of information it is for both."""
    reason = "Unknown" if status is None else when_true if status else when_false
    told = at_fault(kind, status) or (kind in INFORMATION and status is not None)
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message if told else "",
        "since": None,
    }


def _pool(role: Role, serving: bool) -> Condition:
    return _condition(
        f"{role.value.capitalize()}PoolServing",
        serving,
        "ReplicaAccepting",
        "NoReplica",
        f"no replica of the {role} pool takes work; the other pool serves its tier",
    )


def _reachable(reachable: bool) -> Condition:
    return _condition(
        "ControllerReachable",
        reachable,
        "Answered",
        "NoAnswer",
        "the picture below is the last one known; requests are still served",
    )


def _one_model(found: Mapping[str, Any]) -> Condition:
    """Whether all replicas have one model; while they do not, the minority waits."""
    pools = found.get("pools") or {}
    models = {replica["model_fingerprint"] for pool in pools.values() for replica in pool.get("replicas", ())}
    return _condition(
        "OneModel",
        len(models) == 1 if models else None,
        "OneFingerprint",
        "Mixed",
        "replicas of the model that fewer have take no work",
    )


def _taking(stopping: bool) -> Condition:
    """Whether new requests are taken at all: not while the service is being taken down."""
    return _condition(
        "TakingRequests", not stopping, "Open", "Stopping", "the service is stopping: open answers finish"
    )


def _policy(found: Mapping[str, Any]) -> Condition:
    policy = found.get("policy")
    error = None if policy is None else policy.get("last_error")
    words = ""
    if error is not None:
        place = "" if error.get("line") is None else f"line {error['line']}: "
        field = f"{error['field']}: " if error.get("field") else ""
        words = (
            f"the last good revision stays in force; the newest is refused: {place}{field}{error['message']}"
        )
    return _condition(
        "PolicyAccepted", None if policy is None else error is None, "Accepted", "Refused", words
    )


def _not_held(found: Mapping[str, Any]) -> Condition:
    hold = found.get("hold")
    words = "" if hold is None else f"{hold['by']}: {hold['reason']}"
    return _condition("CapacityFree", hold is None if "hold" in found else None, "NotHeld", "Held", words)


def _in_budget(found: Mapping[str, Any]) -> Condition:
    budget = found.get("budget") or {}
    used, most, surge = budget.get("used"), budget.get("accelerators"), budget.get("surge") or 0
    return _condition(
        "WithinBudget",
        None if used is None or most is None else used <= most + surge,
        "WithinBudget",
        "OverBudget",
        f"{used} accelerators are in use, the budget is {most}",
    )


def _moves_on_time(found: Mapping[str, Any]) -> Condition:
    """Whether the newest move was not given up, or has come to its end after all."""
    moves = found.get("moves")
    given_up = bool(moves) and moves[0]["state"] == MoveState.TIMED_OUT.value if moves is not None else None
    late = given_up and not _settled(found.get("pools") or {})
    words = f"move {moves[0]['id']} was given up; {moves[0]['waiting_for'] or ''}" if late and moves else ""
    return _condition("MovesOnTime", None if late is None else not late, "OnTime", "TimedOut", words)


def _settled(pools: Mapping[str, Any]) -> bool:
    """Whether both pools are known to run what they are meant to, with nothing left to drain."""
    every = [pools.get(role.value) or {} for role in Role]
    return all(
        pool.get("target") is not None and pool.get("running") == pool["target"] and pool.get("draining") == 0
        for pool in every
    )


def _state_kept(found: Mapping[str, Any]) -> Condition:
    problem = found.get("store_problem")
    known = "store_problem" in found
    return _condition("StateKept", problem is None if known else None, "Kept", "CannotWrite", str(problem))


def _profile_stale(found: Mapping[str, Any]) -> Condition:
    """Whether the profile was measured for something else than what is served."""
    profile = found.get("profile") or {}
    differences, state = profile.get("differences"), profile.get("state")
    none = state == ProfileState.NONE
    status = None if differences is None else bool(differences)
    words = (
        f"{profile.get('path')}: {'; '.join(differences or ())}: limits are unmeasured and predictions do "
        "without it until it fits; run `twinpool bench` again"
    )
    return _condition(
        PROFILE_STALE, False if none else status, "Differs", "NoProfile" if none else "Fits", words
    )


def _one_pool_enough(found: Mapping[str, Any]) -> Condition:
    """Whether one pool sells as much as two, by the measured profile and the objective of interactive."""
    answer = (found.get("profile") or {}).get("two_pools")
    if answer is None:
        return _condition(ONE_POOL_ENOUGH, None, "", "")
    margin = "" if answer["margin"] is None else f", {answer['margin']:g} times the next best"
    words = f"{answer['answer'].replace('_', ' ')} at {answer['tpot_seconds']:g} s per token{margin}"
    return _condition(
        ONE_POOL_ENOUGH,
        answer["answer"] != PoolAnswer.TWO_POOLS,
        "OnePool",
        "TwoPools",
        f"by the profile the best is {words}",
    )
