"""The two names that everything is sorted by: a pool's role and a caller's tier."""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    """What a pool is for; also the names of the two pools."""

    SPECULATIVE = "speculative"
    PLAIN = "plain"

    @property
    def other(self) -> Role:
        """The other pool of the pair."""
        return Role.PLAIN if self is Role.SPECULATIVE else Role.SPECULATIVE


class Tier(StrEnum):
    """What the caller is promised."""

    INTERACTIVE = "interactive"
    STANDARD = "standard"
    BATCH = "batch"
