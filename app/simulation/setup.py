"""What is simulated by the event model, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from app.simulation.control import Believed, Control
from app.simulation.engine_profile import EngineProfile
from app.simulation.fleet import Delays, Fleet
from app.simulation.ingress import Routing, Served
from app.simulation.replica import Lies, Limits
from app.simulation.scores import MoveMade
from autoscaling.decisions import Sizes
from autoscaling.types import Role

Say = Callable[[float, int], None]  # seconds of the trace that have passed, requests that have ended
MakeControl = Callable[[Believed, Fleet, float], Control]  # the last is now, by the loop


def _own_kinds() -> dict[Role, Lies]:
    return {role: Lies(role) for role in Role}


@dataclass(frozen=True, slots=True)
class Setup:
    """What is simulated, besides the trace.

    With `changes_roles` a move changes the role of a replica, at once; raises ValueError unless the same
    kind of engine lies in both pools then.
    """

    engines: EngineProfile
    believed: Believed
    sizes: Sizes  # replicas at the beginning
    limits: Mapping[Role, Limits]
    delays: Delays
    lies: Mapping[Role, Lies] = field(default_factory=_own_kinds)
    routing: Routing = Routing.OURS
    control: MakeControl = Control
    changes_roles: bool = False
    ingresses: int = 1
    snapshot_delay_s: float = 0.0
    jitter: float = 0.05  # of a step's seconds, standard deviation of the logarithm
    seed: int = 1

    def __post_init__(self) -> None:
        kinds = [self.lies[role] for role in Role]
        if self.changes_roles and kinds[0] != kinds[1]:
            raise ValueError(
                f"changes_roles: {kinds[0]} lies in {Role.SPECULATIVE}, {kinds[1]} in {Role.PLAIN}: "
                "let the same engine lie in both pools"
            )


@dataclass(frozen=True, slots=True)
class PoolsAt:
    """Both pools at one moment, which stands for a second of all of its replicas."""

    at_s: float
    running: dict[Role, int]
    starting: dict[Role, int]
    draining: dict[Role, int]
    demand: dict[Role, int]  # sequences open for callers who prefer the pool, waiting ones included
    capacity: dict[Role, int]  # sequences inside the soft limits of the running replicas


@dataclass(frozen=True, slots=True)
class Simulated:
    """What came of it."""

    served: tuple[Served, ...]  # by arrival
    pools: tuple[PoolsAt, ...]  # once a second
    moves: tuple[MoveMade, ...]  # by their beginning
