"""Those who are let in at the replicas of a pool in one tick."""

from __future__ import annotations

from dataclasses import dataclass

from app.simulation.fluid.load import Numbers


@dataclass(frozen=True, slots=True, eq=False)
class Coming:
    """How many, and with what prompts; arrays are by flow."""

    sequences: Numbers
    prompts: Numbers  # tokens of all their prompts
    square: float  # mean of the squares of a prompt's tokens
    guests: float = 0.0  # share of all squares that is of prompts of guests
    bunch: float = 1.0  # guests that come to a replica together with one, that one included
