"""The sentences of `why`: one for each reason, holder and state of a move, and what each waits for."""

from __future__ import annotations

from collections.abc import Mapping

from autoscaling.decisions import HoldBy, MoveState, Reason

REASONS: Mapping[Reason, str] = {
    Reason.STEADY: "no pool is short",
    Reason.BOOTSTRAP: "the application is new and starts with the policy's bootstrap sizes",
    Reason.SHORTFALL: "a pool is above utilization.above",
    Reason.UNASSIGNED: "accelerators below budget.min belonged to no pool",
    Reason.SURPLUS: "accelerators above budget.min are needed by no pool and are given back",
    Reason.OVER_BUDGET: "the pools together had more accelerators than budget.max",
    Reason.BOUNDS: "a pool was outside its minReplicas or maxReplicas",
    Reason.SCHEDULE: "a schedule asks for other bounds now",
    Reason.OVERRIDE: "an override forces a pool",
    Reason.WINDOW: "the cause has not lasted for the stabilization window yet",
    Reason.COOLDOWN: "the last move ended less than cooldownSeconds ago",
    Reason.BEHAVIOR: "the policy's scaleUp or scaleDown allows no more change now",
    Reason.IN_FLIGHT: "another move is still on its way",
    Reason.NO_DONOR: "the other pool cannot give a replica",
    Reason.AT_MINIMUM: "the pool that should give is at its minimum",
    Reason.AT_MAXIMUM: "the pool that is short is at its maximum",
    Reason.STARTING: "the pool that should receive does not have all of its replicas yet",
    Reason.HELD: "the targets are held",
}
# A step that changes nothing says what it looked at.
STEADY: Mapping[str, str] = {
    "know": "enough is known",
    "bounds": "both pools are inside their bounds and the budget",
}
NOT_KNOWN = "no pool is known to be short"  # instead of "no pool is short", while a pool's need is unknown
HOLDERS: Mapping[HoldBy, str] = {
    HoldBy.OPERATOR: "an operator holds the targets",
    HoldBy.POLICY: "the policy's mode is hold",
    HoldBy.METRICS: "too few replicas report",
    HoldBy.SERVE: "Ray Serve's replica states are unknown",
    HoldBy.START: "the controller has just started and has not heard from every replica",
    HoldBy.NO_POLICY: "no valid policy was ever read",
}
HOLD_ENDS: Mapping[HoldBy, str] = {
    HoldBy.OPERATOR: "`twinpool release`, or the end of the hold if it has one",
    HoldBy.POLICY: "another mode in the policy file",
    HoldBy.METRICS: "fresh reports of enough replicas",
    HoldBy.SERVE: "an answer of Ray Serve",
    HoldBy.START: "the first reports of the replicas",
    HoldBy.NO_POLICY: "a policy file without errors",
}
MOVES: Mapping[MoveState, str] = {
    MoveState.DRAINING: "the replicas that go finish the answers that they have",
    MoveState.STARTING: "the replicas that come are starting",
    MoveState.DONE: "complete",
    MoveState.TIMED_OUT: "given up after guardrails.moveTimeoutSeconds; the targets stay as they are",
    MoveState.REPLACED: "another change of the targets came before its end",
}
MOVE_WAITS: Mapping[MoveState, str] = {
    MoveState.DRAINING: "the last answers of the replicas that go",
    MoveState.STARTING: "the replicas that come",
}
# Reasons after which a wanted change may begin a little later, where the step does not say what it waits for.
WAITS: Mapping[Reason, str] = {
    Reason.WINDOW: "the end of the stabilization window",
    Reason.COOLDOWN: "the end of the cooldown",
    Reason.BEHAVIOR: "room under the policy's scaleUp and scaleDown",
    Reason.IN_FLIGHT: "the end of the move that is on its way",
    Reason.STARTING: "the replicas that are missing",
    Reason.NO_DONOR: "the other pool to need fewer replicas, or a higher budget.max",
    Reason.AT_MINIMUM: "a lower minimum of the other pool, or a higher budget.max",
    Reason.AT_MAXIMUM: "a higher maximum of the pool that is short",
}
NOTHING = "nothing; the next tick decides anew"
