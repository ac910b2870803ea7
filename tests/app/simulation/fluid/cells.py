"""Small loads and cells of a fluid, for tests."""

from __future__ import annotations

import numpy as np

from app.simulation.engine_profile import EngineProfile
from app.simulation.fluid.cell import Cell
from app.simulation.fluid.coming import Coming
from app.simulation.fluid.course import stays_of
from app.simulation.fluid.crowd import Crowd
from app.simulation.fluid.load import FluidLoad, load_of
from app.simulation.fluid.nature import Nature
from app.simulation.fluid.pace import Stepping
from app.simulation.replica import Lies
from autoscaling.types import Role, Tier
from tests.app.simulation.engines import engine_profile
from tests.app.simulation.services import steady

ONE_FLOW = load_of(steady(Tier.BATCH, 1, 10, prompt=10, answer=101))


def cell(
    replicas: int = 1,
    role: Role = Role.PLAIN,
    load: FluidLoad = ONE_FLOW,
    engines: EngineProfile | None = None,
    lengths: tuple[int, ...] | None = None,
) -> Cell:
    """Idle replicas for the flows of a load."""
    profile = engines or engine_profile()
    stepping = Stepping(profile, Lies(role, lengths))
    acceptances = [profile.acceptance_of(flow.workload) for flow in load.flows]
    stays = stays_of(load.flows, acceptances, stepping.draft_lengths, seed=1)
    return Cell(Nature(stepping, stays, load.flows, acceptances, Crowd(1, 0.0)), replicas)


def feed(one: Cell, per_tick: float, ticks: int, seconds: float = 1.0, prompt: float = 10.0) -> float:
    """Let so many sequences of the only flow come in each tick; how many have ended in all."""
    ended = 0.0
    for _ in range(ticks):
        one.foresee(seconds)
        ended += float(
            one.advance(seconds, Coming(np.array([per_tick]), np.array([per_tick * prompt]), prompt**2)).sum()
        )
    return ended
