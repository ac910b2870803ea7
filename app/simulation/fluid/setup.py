"""What the fluid model simulates, besides the load; also made from the event model's setup."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from app.simulation.control import Believed
from app.simulation.control import Control as EventControl
from app.simulation.engine_profile import EngineProfile
from app.simulation.fleet import Delays
from app.simulation.ingress import Routing
from app.simulation.replica import Lies, Limits
from app.simulation.setup import Setup
from autoscaling.decisions import Sizes
from autoscaling.types import Role


def _own_kinds() -> dict[Role, Lies]:
    return {role: Lies(role) for role in Role}


@dataclass(frozen=True, slots=True)
class FluidSetup:
    """The same as the event model's setup, as far as it has a meaning here.

    `seed` is that of the requests which stand for all in what drafts bring.  The controller decides, and
    ingresses get rules, every `decide_s`, rounded to whole ticks: None is 1 s, and 5 s where ticks are long.
    `interval_s` is that of the scores' series.
    """

    engines: EngineProfile
    believed: Believed
    sizes: Sizes  # replicas at the beginning
    limits: Mapping[Role, Limits]
    delays: Delays
    lies: Mapping[Role, Lies] = field(default_factory=_own_kinds)
    ingresses: int = 1
    snapshot_delay_s: float = 0.0  # of what ingresses know of replicas, and of each other's requests there
    seed: int = 1
    decide_s: float | None = None
    interval_s: float = 10.0


def fluid_of(setup: Setup, decide_s: float | None = None, interval_s: float = 10.0) -> FluidSetup:
    """The event model's setup as a fluid one.

    Raises ValueError where it has another routing or controller than twinpool's own, or changes roles: the
    fluid model has none of these.
    """
    if setup.routing is not Routing.OURS or setup.control is not EventControl or setup.changes_roles:
        raise ValueError(
            "it routes or moves capacity in another way than twinpool, which the fluid model cannot: "
            "use the event model"
        )
    return FluidSetup(
        engines=setup.engines,
        believed=setup.believed,
        sizes=setup.sizes,
        limits=setup.limits,
        delays=setup.delays,
        lies=setup.lies,
        ingresses=setup.ingresses,
        snapshot_delay_s=setup.snapshot_delay_s,
        seed=setup.seed,
        decide_s=decide_s,
        interval_s=interval_s,
    )
