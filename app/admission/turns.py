"""Whose turn it is when room frees: the higher tier's, but waiting batch work gets its share; pure."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from autoscaling.types import Tier

BY_RANK: Final = (Tier.INTERACTIVE, Tier.STANDARD, Tier.BATCH)


class Turns:
    """Counts what batch work is owed: at a share of 0.1 every tenth turn while it waits."""

    def __init__(self) -> None:
        self._owed = 0.0

    def order(self, waiting: Collection[Tier], share: float) -> tuple[Tier, ...]:
        """The waiting tiers, the next one first; `share` of the turns is batch work's at least, 0..1."""
        ranked = tuple(tier for tier in BY_RANK if tier in waiting)
        if Tier.BATCH not in ranked or self._after(share) < 1.0:
            return ranked
        return (Tier.BATCH, *(tier for tier in ranked if tier is not Tier.BATCH))

    def granted(self, tier: Tier, *, batch_waits: bool, share: float) -> None:
        """Note a turn.

        What is owed never grows above one turn, so that batch work which could not use its turns does
        not come in a burst; who does not wait is owed nothing.
        """
        if tier is Tier.BATCH:
            self._owed = max(0.0, self._after(share) - 1.0)
        else:
            self._owed = min(1.0, self._after(share)) if batch_waits else 0.0

    def _after(self, share: float) -> float:
        """What is owed when one more turn has been given; rounding must not cost a turn."""
        return round(self._owed + share, 9)
