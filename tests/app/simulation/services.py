"""A small service on virtual time: one slow engine profile, a policy, and traces, for tests."""

from __future__ import annotations

from collections.abc import Sequence

from app.simulation.arrival import Arrival
from app.simulation.belief import believed_profile
from app.simulation.built_in_profiles import built_in
from app.simulation.control import Believed
from app.simulation.engine_profile import EngineProfile
from app.simulation.fleet import Delays
from app.simulation.replica import Limits
from app.simulation.setup import Setup
from autoscaling.policy import CapacityPolicy
from autoscaling.policy_file import read_policy
from autoscaling.profile import Profile
from autoscaling.types import Role, Tier

ENGINES = built_in("h100-8b")


def policy(slots: int, tpot_s: float = 0.012, window_s: int = 60, cooldown_s: int = 60) -> CapacityPolicy:
    """A budget, an objective of interactive, and how soon capacity moves."""
    found = read_policy(
        "apiVersion: twinpool.dev/v1alpha1\nkind: CapacityPolicy\nmetadata: {name: simulated}\nspec:\n"
        f"  budget: {{max: {slots}}}\n"
        f"  objectives: {{interactive: {{tpotSeconds: {tpot_s}}}, standard: {{tpotSeconds: 0.03}}}}\n"
        f"  behavior: {{scaleUp: {{stabilizationWindowSeconds: {window_s}}},"
        f" scaleDown: {{stabilizationWindowSeconds: {window_s}}}, cooldownSeconds: {cooldown_s}}}\n"
        f"  pools: {{speculative: {{minReplicas: 1, maxReplicas: {slots - 1}}},"
        f" plain: {{minReplicas: 1, maxReplicas: {slots - 1}}}}}\n"
    )
    assert found.policy is not None, found.problems
    return found.policy


def profile_of(engines: EngineProfile) -> Profile:
    """What `twinpool bench` would have measured of these engines, without any error."""
    return believed_profile(engines)


def setup(slots: int = 4, rules: CapacityPolicy | None = None, seed: int = 1, **changes: object) -> Setup:
    """Half of the slots to each pool."""
    made = {
        "engines": ENGINES,
        "believed": Believed(rules or policy(slots), profile_of(ENGINES)),
        "sizes": {Role.SPECULATIVE: slots // 2, Role.PLAIN: slots - slots // 2},
        "limits": {Role.SPECULATIVE: Limits(8, 64), Role.PLAIN: Limits(32, 256)},
        "delays": Delays(start_s=30.0, stop_s=3.0, drain_limit_s=300.0),
        "seed": seed,
    }
    return Setup(**(made | changes))  # type: ignore[arg-type]


def steady(tier: Tier, rate: float, seconds: float, prompt: int = 500, answer: int = 200) -> list[Arrival]:
    """One request every 1 / rate seconds."""
    return [Arrival(number / rate, tier, "chat", prompt, answer) for number in range(round(rate * seconds))]


def together(*traces: Sequence[Arrival]) -> list[Arrival]:
    """All of them, by time."""
    return sorted((one for trace in traces for one in trace), key=lambda one: one.at_s)
