"""What callers want of each pool at this ingress: sequences open now, and refused since its start; pure.

Counted by the pool that a request prefers, wherever it is served: what spills over is still wanted there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from autoscaling.types import IngressLoad, Role


class Demand:
    """Counters of one ingress; touched by one thread."""

    def __init__(self) -> None:
        self._open = dict.fromkeys(Role, 0)
        self._refused = dict.fromkeys(Role, 0)

    @contextmanager
    def open(self, role: Role, sequences: int) -> Iterator[None]:
        """Count a request as wanted there until it ends, however it ends."""
        self._open[role] += sequences
        try:
            yield
        finally:
            self._open[role] -= sequences

    def refuse(self, role: Role, sequences: int) -> None:
        """Count a request that found no room."""
        self._refused[role] += sequences

    def load(self, epoch: int | None) -> IngressLoad:
        """What the controller is told; `epoch` is the newest snapshot's."""
        return IngressLoad(wanted=dict(self._open), refused=dict(self._refused), epoch=epoch)
