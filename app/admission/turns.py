"""Whose turn it is when room frees: the higher tier's, but each that waits gets its share; pure."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from autoscaling.types import Tier

BY_RANK: Final = (Tier.INTERACTIVE, Tier.STANDARD, Tier.BATCH)
# Turns that are owed at most, so that who could not use his turns does not come in a burst.  The turn of
# standard may have to wait for that of batch.
OWED_MOST: Final = {Tier.BATCH: 1.0, Tier.STANDARD: 2.0}


def shares(batch_share: float) -> dict[Tier, float]:
    """The parts of the turns that tiers get at least while they wait, of a batch share 0..1.

    Standard gets as much as batch, at most half of what batch leaves: the rest is interactive requests'.
    """
    return {Tier.BATCH: batch_share, Tier.STANDARD: min(batch_share, (1.0 - batch_share) / 2)}


class Turns:
    """Counts what the lower tiers are owed: at a share of 0.1 every tenth turn each while they wait."""

    def __init__(self) -> None:
        self._owed = dict.fromkeys(OWED_MOST, 0.0)

    def order(self, waiting: Collection[Tier], batch_share: float) -> tuple[Tier, ...]:
        """The waiting tiers, the next one first: who is owed a turn, batch before standard, then by rank."""
        after = self._after(batch_share)
        due = tuple(tier for tier in OWED_MOST if tier in waiting and after[tier] >= 1.0)
        return (*due, *(tier for tier in BY_RANK if tier in waiting and tier not in due))

    def granted(self, taker: Tier, waiting: Collection[Tier], batch_share: float) -> None:
        """Note the turn of one of those that wait; who does not wait is owed nothing."""
        for tier, owed in self._after(batch_share).items():
            if tier is taker:
                self._owed[tier] = max(0.0, owed - 1.0)
            else:
                self._owed[tier] = min(OWED_MOST[tier], owed) if tier in waiting else 0.0

    def _after(self, batch_share: float) -> dict[Tier, float]:
        """What is owed when one more turn has been given; rounding must not cost a turn."""
        return {tier: round(self._owed[tier] + share, 9) for tier, share in shares(batch_share).items()}
