"""A replica as routing weighs it at one moment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from autoscaling.types import ReplicaView

UNKNOWN_ANSWER: Final = 256  # tokens that an answer is taken for while no mean is known


@dataclass(frozen=True, slots=True)
class Candidate:
    """One replica as routing weighs it."""

    replica: ReplicaView
    load: int  # sequences in flight there, ours and others'
    limit: int  # sequences up to which new work is welcome, all ingresses together
    own_free: int  # of our share of that limit, not taken by us
    hard_room: bool  # new work is taken
    work: float = 0.0  # tokens that the open requests there are predicted to generate yet
    ingresses: int = 1

    @property
    def free(self) -> int:
        """Sequences that are welcome."""
        return self.free_for(0)

    def free_for(self, reserve: int) -> int:
        """Sequences that are welcome to those who must leave a reserve to others; never below 0.

        Of a reserve smaller than the number of ingresses no single one keeps a part.
        """
        shared = min(self.own_free - reserve // self.ingresses, self.limit - self.load - reserve)
        return max(0, shared) if self.hard_room else 0
