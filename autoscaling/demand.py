"""What callers want of each pool, by the ingresses' word: open now, and refused of late; pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace

from autoscaling.types import IngressLoad, Role

SILENT_S = 3.0  # an ingress that said nothing for so long is gone, and its callers with it
REFUSED_WINDOW_S = 10.0
LARGEST = 2**53  # whole numbers up to here are exact in the floats that a decision computes with


@dataclass(frozen=True, slots=True)
class _Said:
    at: float
    load: IngressLoad


class Demand:
    """Loads of all ingresses; `now` is the receiver's monotonic clock."""

    def __init__(self) -> None:
        self._said: dict[str, deque[_Said]] = {}

    def take(self, ingress_id: str, load: IngressLoad, now: float) -> None:
        """Note what an ingress says, each number inside 0..2**53.

        A count of refusals that fell is of an ingress that began anew: nothing from before is compared.
        """
        load = replace(load, wanted=_bounded(load.wanted), refused=_bounded(load.refused))
        said = self._said.setdefault(ingress_id, deque())
        if said and any(load.refused.get(role, 0) < said[-1].load.refused.get(role, 0) for role in Role):
            said.clear()
        said.append(_Said(now, load))

    def expire(self, now: float) -> None:
        """Forget ingresses that are silent, and what is older than the window."""
        for ingress_id, said in list(self._said.items()):
            if now - said[-1].at > SILENT_S:
                del self._said[ingress_id]
                continue
            # One older than the window stays: the count of refusals is a difference from there.
            while len(said) > 1 and now - said[1].at >= REFUSED_WINDOW_S:
                said.popleft()

    def wanted(self, role: Role, now: float) -> int | None:
        """Sequences open for callers who prefer this pool; None when no ingress has spoken of late."""
        self.expire(now)
        if not self._said:
            return None
        return sum(said[-1].load.wanted.get(role, 0) for said in self._said.values())

    def refused(self, role: Role, now: float) -> int | None:
        """Sequences that found no room in the last 10 s; None when no ingress has spoken of late."""
        self.expire(now)
        if not self._said:
            return None
        return sum(
            said[-1].load.refused.get(role, 0) - said[0].load.refused.get(role, 0)
            for said in self._said.values()
        )


def _bounded(counts: Mapping[Role, int]) -> dict[Role, int]:
    return {role: min(max(0, count), LARGEST) for role, count in counts.items()}
