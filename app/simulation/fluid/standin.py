"""A replica as the routing rule reads it, which stands for all of its pool."""

from __future__ import annotations

import math
from typing import Final

from scipy.special import ndtri

from app.candidates import Candidate
from app.simulation.replica import Limits
from autoscaling.types import ReplicaView

STEP: Final = 0.1  # of the answer; 0.4 of sixteen sequences, less than the whole ones that the rule reads
LEAST: Final = 0.56  # Blom: the least of n normal values is about their quantile at this over n


def candidate(view: ReplicaView, limits: Limits, load: int, below: float) -> Candidate:
    """The replica with so many sequences, for a single ingress.

    It has the room of the mean one, and the sequences of the emptiest: less by `below` times their root.
    """
    least = max(0, round(load - below * load**0.5))
    free = limits.soft - load
    return Candidate(view, least, limit=least + free, own_free=free, hard_room=load < limits.hard)


def below(replicas: int, seen: float) -> float:
    """How far the emptiest of so many replicas is below the mean one, in roots of the mean's sequences.

    `seen` is the variance over mean of the loads that an ingress sees.  The answer goes in steps, so that
    what is known of routes holds for longer.
    """
    deviations = max(0.0, -float(ndtri(LEAST / max(1, replicas))))
    return STEP * round(deviations * math.sqrt(seen) / STEP)
