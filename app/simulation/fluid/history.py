"""What happened, tick by tick, as far as the scores need it; it grows with the trace, not with the fleet."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

import numpy as np

from app.simulation.fluid.load import FluidLoad, Numbers
from app.simulation.fluid.pace import Pace
from autoscaling.types import Role

TAIL = 4096  # ticks that are added when there is no more room


class Of(IntEnum):
    """The columns of a pool's history; those of `Pace` are told there."""

    CLOCK = 0  # steps, at the tick's beginning
    STEPS_PER_S = 1
    STEP_S = 2
    PROMPT_SHARE = 3
    LUMPS_PER_S = 4
    SPREAD = 5
    LAST_S = 6
    CHUNK_S = 7
    UNEVEN = 8
    UNEVEN_LUMPS = 9
    REGULAR = 10
    BUNCHED = 11
    BLIND = 12
    APART = 13
    LEAVING_PER_S = 14
    EVENING_PER_S = 15
    BEFORE_S = 16  # until the first token, without the own prompt and chance
    TOKEN_S = 17
    CHANCE_S = 18
    FIRST_S = 19  # mean of all of it


def row_of(pace: Pace, clock: float = 0.0) -> tuple[float, ...]:
    """What is kept of a pace, in the order of `Of`."""
    return (
        clock,
        pace.steps_per_s,
        pace.step_s,
        pace.prompt_share,
        pace.lumps_per_s,
        pace.spread,
        pace.last_s,
        pace.chunk_s,
        pace.uneven,
        pace.uneven_lumps,
        pace.regular,
        pace.bunched,
        pace.blind,
        pace.apart,
        pace.leaving_per_s,
        pace.evening_per_s,
        pace.queued_s + pace.fixed_s,
        pace.prompt_token_s,
        pace.chance_s,
        pace.queued_s + pace.first_s,
    )


class History:
    """Arrays by tick, with more room than is used."""

    def __init__(self, load: FluidLoad) -> None:
        kinds, room = len(load.kinds), len(load.arrivals) + TAIL
        self.ticks = 0
        self.taken = np.zeros((room, kinds, len(Role)))  # let in, by kind and pool
        self.waited_s = np.zeros((room, kinds))  # by those, on average
        self.refused = np.zeros((room, kinds))  # by the tick in which they came
        self.pools = np.zeros((room, len(Role), len(Of)))
        self.in_flight: Numbers = np.zeros(len(load.flows))  # when the trace ended, by flow
        self.failed: Numbers = np.zeros(len(load.flows))

    def begin(self) -> int:
        """The place of the next tick."""
        if self.ticks == len(self.taken):
            for name in ("taken", "waited_s", "refused", "pools"):
                known = getattr(self, name)
                setattr(self, name, np.concatenate((known, np.zeros((TAIL, *known.shape[1:])))))
        self.ticks += 1
        return self.ticks - 1

    def note(self, tick: int, clocks: Mapping[Role, float], paces: Mapping[Role, Pace]) -> None:
        """Keep what the pools were like in a tick; clocks are those of its beginning."""
        for place, (role, pace) in enumerate(paces.items()):
            self.pools[tick, place] = row_of(pace, clocks[role])
