"""Which policy is obeyed at this moment: the active revision, or the default under a hold."""

from __future__ import annotations

from math import inf

from autoscaling.decisions import Hold, HoldBy, PolicyInForce
from autoscaling.policy import CapacityPolicy
from autoscaling.policy_file import read_policy
from autoscaling.policy_in_force import in_force
from autoscaling.rules_of_policy import with_measured_limits
from deployments.config import ControllerSettings
from deployments.control_state import ControlState
from deployments.default_policy import default_policy_text

Default = tuple[CapacityPolicy, str]  # and its hash


def default_policy(settings: ControllerSettings) -> Default:
    """The policy of a service without one, and its hash."""
    found = read_policy(default_policy_text(settings))
    assert found.policy is not None, found.problems
    return found.policy, found.sha


def acting_policy(state: ControlState, default: Default, wall: float, now: float = inf) -> PolicyInForce:
    """What is obeyed now, a profile's limits included; drops a hold and overrides that have ended.

    `now` is the monotonic clock that they were set by; without it the wall clock alone says what has ended.
    Without any valid revision that acts, the sizes are those of the shadow or the default, and held.
    """
    state.drop_ended(now, wall)
    return _with_profile(state, _acting(state, default, wall))


def _acting(state: ControlState, default: Default, wall: float) -> PolicyInForce:
    acting, hold = state.book.active, state.hold
    if hold is not None and hold.expires is not None and wall >= hold.expires:
        hold = None
    if acting is not None:
        return in_force(
            acting.policy,
            acting.number,
            acting.sha,
            overrides=state.overrides,
            hold=hold,
            wall=wall,
            active_since=acting.at,
        )
    if hold is None:
        held = state.memory.hold
        since = held.since if held is not None and held.by is HoldBy.NO_POLICY else wall
        hold = Hold(HoldBy.NO_POLICY, "no valid revision of the policy has been enforced", since)
    shadow = state.book.shadow
    if shadow is not None:
        return in_force(
            shadow.policy, shadow.number, shadow.sha, overrides=state.overrides, hold=hold, wall=wall
        )
    policy, sha = default
    return in_force(policy, 0, sha, overrides=state.overrides, hold=hold, wall=wall)


def acting_document(state: ControlState, default: Default) -> CapacityPolicy:
    """The policy whose overrides and budget count now, without what depends on the moment."""
    acting = state.book.acting
    return default[0] if acting is None else acting.policy


def shadow_policy(state: ControlState, wall: float) -> PolicyInForce | None:
    """The revision that is only evaluated, with the limits of the profile and without any hold, or None."""
    shadow = state.book.shadow
    if shadow is None:
        return None
    found = in_force(
        shadow.policy, shadow.number, shadow.sha, overrides=state.overrides, hold=None, wall=wall
    )
    return _with_profile(state, found)


def _with_profile(state: ControlState, policy: PolicyInForce) -> PolicyInForce:
    return with_measured_limits(policy, state.profile, state.served)
