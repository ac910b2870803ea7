"""Policies and other contenders on one trace, each for itself: what is the same for all, and their scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Final

from app.simulation.arrival import Arrival
from app.simulation.contenders import Contender, Scene
from app.simulation.engine_profile import EngineProfile
from app.simulation.fleet import Delays
from app.simulation.fluid.load import FluidLoad, load_of
from app.simulation.fluid.model import simulate_fluid
from app.simulation.fluid.setup import FluidSetup, fluid_of
from app.simulation.scaled_policy import replicas_of
from app.simulation.score import scores
from app.simulation.scores import Scores
from app.simulation.service import simulate
from app.simulation.setup import Setup
from app.simulation.traces.renewal import DAY_S
from autoscaling.decisions import Sizes
from autoscaling.policy import CapacityPolicy
from autoscaling.policy_in_force import in_force

MOST_DAYS: Final = 100  # one wrong time would make a trace of years, of which nothing would be seen
EVENT_UP_TO: Final = 64  # replicas; above, following every request takes too long
INTERVAL_S: Final = 10.0  # of the series over time
DRAIN_LIMIT_S: Final = 300.0  # `longest_generation_s` of the settings
MONDAY: Final = 1_799_020_800.0  # 2027-01-04T00:00:00Z, for schedules of traces that have no date

Say = Callable[[float, int], None]  # seconds of the trace that have passed, requests that have ended
Run = Callable[[Say | None], Scores]


class Model(StrEnum):
    """How the service is simulated."""

    EVENT = "event"  # every request and every engine step
    FLUID = "fluid"  # shares of requests, one tick after the other


@dataclass(frozen=True, slots=True)
class Ground:
    """What is the same for everybody who is compared."""

    engines: EngineProfile
    trace: Sequence[Arrival]  # sorted, with at least one request
    delays: Delays
    seed: int = 1
    ingresses: int = 1
    wall: float = MONDAY  # Unix seconds at which the trace begins, for schedules

    def __post_init__(self) -> None:
        days = self.trace[-1].at_s / DAY_S
        if not days <= MOST_DAYS:
            raise ValueError(
                f"the trace lasts {days:,.0f} days, and {MOST_DAYS} are simulated at most: correct the time "
                "of "
                "its last request if that is wrong, or keep a part of the trace with hours=24"
            )

    @property
    def trace_s(self) -> float:
        """The trace in whole intervals, so that the last request lies inside."""
        return (self.trace[-1].at_s // INTERVAL_S + 1) * INTERVAL_S


@dataclass(frozen=True, slots=True)
class Entry:
    """One of those that are compared."""

    name: str
    contender: Contender
    policy: CapacityPolicy
    sizes: Sizes | None = None  # replicas at the beginning; None: the contender's own


def delays_of(engines: EngineProfile, start_s: float | None = None) -> Delays:
    """How long moves take: the engines' own times, or `start_s` until a new replica serves."""
    return Delays(engines.start_s if start_s is None else start_s, engines.stop_s, DRAIN_LIMIT_S)


def model_for(policy: CapacityPolicy) -> Model:
    """The exact model where it is fast enough; raises SizeError."""
    return Model.EVENT if replicas_of(policy) <= EVENT_UP_TO else Model.FLUID


def first_sizes(policy: CapacityPolicy, wall: float) -> Sizes:
    """The sizes of a new service that begins at `wall`."""
    return in_force(policy, 1, "", overrides=(), hold=None, wall=wall).bootstrap


def setup_of(entry: Entry, ground: Ground) -> Setup:
    """What the event model simulates; raises SizeError, and ValueError for what contenders refuse."""
    scene = Scene(
        engines=ground.engines,
        policy=entry.policy,
        replicas=replicas_of(entry.policy),
        delays=ground.delays,
        seed=ground.seed,
        ingresses=ground.ingresses,
        trace=ground.trace,
    )
    made = entry.contender.make(scene)
    return replace(
        made,
        believed=replace(made.believed, wall=ground.wall),
        sizes=made.sizes if entry.sizes is None else entry.sizes,
    )


def prepared(entry: Entry, ground: Ground, model: Model) -> Run:
    """What simulates an entry when it is called, as often as wanted, each time with the same scores.

    Raises SizeError, and ValueError for what contenders or the fluid model refuse.
    """
    setup = setup_of(entry, ground)
    if model is Model.EVENT:
        return partial(_event, setup, ground)
    try:
        fluid = fluid_of(setup, interval_s=INTERVAL_S)
    except ValueError as error:
        raise ValueError(f"{entry.name}: {error}") from error
    load = load_of(ground.trace, longest=ground.engines.longest, until_s=ground.trace_s)
    return partial(_fluid, fluid, load)


def _event(setup: Setup, ground: Ground, say: Say | None = None) -> Scores:
    return scores(simulate(setup, ground.trace, say), setup, ground.trace_s, INTERVAL_S)


def _fluid(setup: FluidSetup, load: FluidLoad, say: Say | None = None) -> Scores:
    return simulate_fluid(setup, load, say)
