"""Who waits for room: shares of requests by kind, first come, first served; who waits too long is refused."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

from app.admission.deadlines import NO_REPLICA_S
from app.simulation.fluid.load import FluidLoad
from autoscaling.routing_rules import RoutingRules, TierRules
from autoscaling.types import Tier

CRUMB: Final = 1e-9  # requests; less is a rounding error, and is counted to those before it


class Queue:
    """The lanes of all kinds; numbers of requests may be parts of one."""

    def __init__(self, load: FluidLoad) -> None:
        self._tiers: dict[Tier, list[int]] = {}
        for number, kind in enumerate(load.kinds):
            self._tiers.setdefault(load.flows[kind.flow].tier, []).append(number)
        self._lines: list[deque[list[float]]] = [deque() for _ in load.kinds]  # when they came, and how many
        self.waiting = [0.0] * len(load.kinds)  # by kind

    @property
    def kinds(self) -> dict[Tier, list[int]]:
        """The kinds of each tier, tiers by rank."""
        return self._tiers

    @property
    def busy(self) -> bool:
        """Whether anybody waits."""
        return any(self._lines)

    def of(self, tier: Tier) -> float:
        """How many of a tier wait."""
        return sum(self.waiting[kind] for kind in self._tiers.get(tier, ()))

    def in_turn(self, kinds: Sequence[int], arrived: Sequence[float]) -> list[tuple[int, float]]:
        """All of these kinds who wait or come, first come first: kind, and how many."""
        waiting = [(came_s, kind, count) for kind in kinds for came_s, count in self._lines[kind]]
        found = [(kind, count) for _, kind, count in sorted(waiting)]
        return found + [(kind, arrived[kind]) for kind in kinds]

    def settle(self, kind: int, at_s: float, arrived: float, taken: float) -> None:
        """Take so many from the front, of those that wait and those that come at `at_s`; the rest waits."""
        line = self._lines[kind]
        if not line and taken >= arrived - CRUMB:
            return
        if arrived > 0:
            line.append([at_s, arrived])
        while line and taken > 0:
            first = line[0]
            part = min(taken, first[1])
            first[1] -= part
            taken -= part
            if first[1] <= CRUMB:
                line.popleft()
        self.waiting[kind] = sum(one[1] for one in line)

    def refuse(self, at_s: float, rules: RoutingRules, *, stranded: bool) -> list[tuple[int, float, float]]:
        """Those whose waiting ends at `at_s` without room: kind, when they came, and how many.

        `stranded`: no replica takes work, for which nobody waits long.
        """
        found: list[tuple[int, float, float]] = []
        for tier, kinds in self._tiers.items():
            if not any(self._lines[kind] for kind in kinds):
                continue
            rule = rules.tiers.get(tier, TierRules())
            deadline_s = min(rule.deadline_s, NO_REPLICA_S) if stranded else rule.deadline_s
            for kind in kinds:
                line = self._lines[kind]
                while line and at_s - line[0][0] >= deadline_s:
                    came_s, count = line.popleft()
                    found.append((kind, came_s, count))
                self.waiting[kind] = sum(one[1] for one in line)
            found += self._shed(kinds, self.of(tier) - rule.max_waiting)
        return found

    def _shed(self, kinds: Sequence[int], surplus: float) -> list[tuple[int, float, float]]:
        """Turn the newest away, of each kind in proportion."""
        found: list[tuple[int, float, float]] = []
        while surplus > CRUMB:
            lines = [kind for kind in kinds if self._lines[kind]]
            newest = max(self._lines[kind][-1][0] for kind in lines)
            last = [kind for kind in lines if self._lines[kind][-1][0] == newest]
            there = sum(self._lines[kind][-1][1] for kind in last)
            share = min(1.0, surplus / there)
            for kind in last:
                count = self._lines[kind][-1][1] * share
                found.append((kind, newest, count))
                self.waiting[kind] -= count
                if share < 1.0:
                    self._lines[kind][-1][1] -= count
                else:
                    self._lines[kind].pop()
            surplus -= there * share
        return found
