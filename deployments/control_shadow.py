"""The revision in the shadow: what it would decide from where the service is now; it never acts."""

from __future__ import annotations

from dataclasses import replace

from autoscaling.decide import decide
from autoscaling.decisions import Decision, Observation
from deployments.control_state import ControlState
from deployments.policy_use import shadow_policy


def evaluate_shadow(state: ControlState, observation: Observation, now: float, wall: float) -> None:
    """One decision of the shadow, from the real targets; it begins moves and waits for none of them."""
    policy = shadow_policy(state, wall)
    if policy is None:
        state.shadow = state.shadow_memory = None
        return
    memory = replace(
        state.shadow_memory or state.memory,
        targets=state.memory.targets,
        plan=state.memory.plan,
        move=None,
    )
    state.shadow, memory = decide(observation, policy, memory)
    if state.shadow.begun:
        memory = replace(memory, cooling_until=now + policy.cooldown_s)
    state.shadow_memory = memory


def would_differ(shadow: Decision, before: Decision | None) -> bool:
    """Whether the shadow decides otherwise than at the last tick."""
    if before is None:
        return True
    found, known = ((one.reason, one.targets, one.revision) for one in (shadow, before))
    return found != known
