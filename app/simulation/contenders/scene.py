"""What every contender is given, and what it makes of it: a setup of the event model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from app.simulation.arrival import Arrival
from app.simulation.belief import NO_ERROR, BelievedError, believed_profile
from app.simulation.control import Believed
from app.simulation.engine_profile import EngineProfile
from app.simulation.fleet import Delays
from app.simulation.replica import Limits
from app.simulation.setup import Setup
from autoscaling.decisions import Mode, PolicyInForce, Sizes
from autoscaling.policy import CapacityPolicy
from autoscaling.policy_in_force import in_force
from autoscaling.profile import Profile
from autoscaling.profile_match import Served
from autoscaling.rules_of_policy import with_measured_limits
from autoscaling.soft_limit import soft_limit
from autoscaling.types import Role

UNMEASURED_LIMIT: Final = 8  # sequences of a speculative replica before anything is measured: twinpool's own
# Beyond what an engine runs at once some more wait inside it; a service's own choice, as vLLM has no limit.
HARD_LIMIT: Final = 2  # times the sequences that an engine runs at once
LEAST_REPLICAS: Final = 2  # one for each pool


@dataclass(frozen=True, slots=True)
class Scene:
    """One comparison: engines, a policy, and a fleet of `replicas`, the same for every contender.

    Only contenders that know the future look at `trace`.  Raises ValueError for fewer than two replicas, and
    where the policy's budget is not that of so many replicas, for then contenders would not be equal.
    """

    engines: EngineProfile
    policy: CapacityPolicy
    replicas: int
    delays: Delays
    seed: int = 1
    ingresses: int = 1
    snapshot_delay_s: float = 0.0
    believed_error: BelievedError = NO_ERROR
    trace: Sequence[Arrival] = ()

    def __post_init__(self) -> None:
        if self.replicas < LEAST_REPLICAS:
            raise ValueError(f"replicas: {self.replicas}: give {LEAST_REPLICAS} or more, one for each pool")
        pools, budget = self.policy.spec.pools, self.policy.spec.budget.max
        for name, pool in (("speculative", pools.speculative), ("plain", pools.plain)):
            if budget != self.replicas * pool.accelerators_per_replica:
                raise ValueError(
                    f"replicas: {self.replicas} of {pool.accelerators_per_replica} accelerators each in "
                    f"pools.{name}, but budget.max of the policy is {budget}: make them agree"
                )

    @property
    def limits(self) -> dict[Role, Limits]:
        """What replicas take by themselves; the profile's limits stand in for the soft ones."""
        most = self.engines.max_num_seqs
        hard = HARD_LIMIT * most
        return {Role.SPECULATIVE: Limits(UNMEASURED_LIMIT, hard), Role.PLAIN: Limits(most, hard)}

    @property
    def believed_profile(self) -> Profile:
        """The measurement of the two kinds of engines with its error."""
        return believed_profile(self.engines, self.believed_error)

    @property
    def believed(self) -> Believed:
        """The policy and the measurement."""
        return Believed(self.policy, self.believed_profile)


@dataclass(frozen=True, slots=True)
class Contender:
    """One way to run the fleet."""

    name: str
    words: str  # what it is, in a sentence
    make: Callable[[Scene], Setup]
    fluid: bool = False  # whether the fluid model has its routing and its controller, too


def two_pools(scene: Scene, **changes: Any) -> Setup:
    """Two pools under the policy: bootstrap sizes, our routing, our controller; and what is given."""
    fields: dict[str, Any] = {
        "engines": scene.engines,
        "believed": scene.believed,
        "sizes": dict(policy_at_start(scene).bootstrap),
        "limits": scene.limits,
        "delays": scene.delays,
        "ingresses": scene.ingresses,
        "snapshot_delay_s": scene.snapshot_delay_s,
        "seed": scene.seed,
    }
    return Setup(**(fields | changes))


def without_moves(scene: Scene, sizes: Sizes, **changes: Any) -> Setup:
    """The same with these sizes for ever: the policy's mode is hold."""
    spec = scene.policy.spec.model_copy(update={"mode": Mode.HOLD})
    held = scene.policy.model_copy(update={"spec": spec})
    believed = Believed(held, scene.believed_profile)
    return two_pools(scene, believed=believed, sizes=sizes, **changes)


def policy_at_start(scene: Scene) -> PolicyInForce:
    """The policy as it stands at the trace's beginning."""
    return in_force(scene.policy, 1, "", overrides=(), hold=None, wall=scene.believed.wall)


def limits_in_force(scene: Scene, profile: Profile) -> dict[Role, int]:
    """Sequences per replica up to which our routing sends new work under the policy and a profile."""
    rules = with_measured_limits(policy_at_start(scene), profile, Served(scene.engines.name)).pools
    found = {}
    for role, own in scene.limits.items():
        limit = soft_limit(own.soft, min(own.hard, scene.engines.max_num_seqs), rules[role])
        found[role] = own.soft if limit is None else limit
    return found
