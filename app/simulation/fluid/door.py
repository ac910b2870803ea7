"""Lets requests in, tick by tick: those first that bear full replicas, of equals the higher tier."""

from __future__ import annotations

from collections.abc import Sequence

from app.admission.turns import shares
from app.simulation.fluid.history import History
from app.simulation.fluid.level import Level
from app.simulation.fluid.load import FluidLoad
from app.simulation.fluid.queue import CRUMB, Queue
from app.simulation.fluid.route import Router
from autoscaling.routing_rules import RoutingRules, TierRules


class Door:
    """Queues and routing together."""

    def __init__(self, load: FluidLoad, router: Router) -> None:
        self.queue = Queue(load)
        self._router = router
        self._tick_s = load.tick_s
        self._tiers = [load.flows[kind.flow].tier for kind in load.kinds]
        self._kinds = [kind for kinds in self.queue.kinds.values() for kind in kinds]  # tiers by rank
        self._seats = 0.0  # given in the last tick

    def let_in(
        self,
        at_s: float,
        tick: int,
        arrived: Sequence[float],
        levels: Sequence[Level],
        rules: RoutingRules,
        history: History,
    ) -> None:
        """Route what came in a tick whose middle is `at_s`, and what waits; `levels` rise by it."""
        queue = self.queue
        before = list(queue.waiting)
        offered = [one + other for one, other in zip(arrived, before, strict=True)]
        taken = [(0.0, 0.0)] * len(offered)

        def give(kind: int, mass: float, *, at_home: bool = False) -> bool:
            """Give so many seats, if there are as many."""
            found = self._router.fill(kind, mass, levels, at_home=at_home) if mass > 0 else (0.0, 0.0)
            taken[kind] = taken[kind][0] + found[0], taken[kind][1] + found[1]
            return sum(found) >= mass - CRUMB

        def give_in_turn(kinds: Sequence[int], *, at_home: bool = False) -> None:
            """Give seats to those who came first, of each kind as long as there are any."""
            had, full = {kind: sum(taken[kind]) for kind in kinds}, set()
            for kind, count in queue.in_turn(kinds, arrived):
                before_it = min(had[kind], count)
                had[kind] -= before_it
                if kind not in full and not give(kind, count - before_it, at_home=at_home):
                    full.add(kind)

        waiting = {tier for tier in queue.kinds if queue.of(tier) > 0}
        if waiting:
            for kind, mass in self._owed(offered, rules):
                give(kind, mass)
        for kinds in self._router.by_tolerance(self._kinds, levels):
            tier = self._tiers[kinds[0]]
            if tier in waiting:  # in the own pool whoever came first has the next seat, whatever he bears
                waiting.remove(tier)
                give_in_turn(queue.kinds[tier], at_home=True)
            give_in_turn(kinds)
        self._seats = 0.0
        for kind, both in enumerate(taken):
            total = both[0] + both[1]
            if offered[kind] <= 0:
                continue
            self._seats += total
            queue.settle(kind, at_s, arrived[kind], total)
            history.taken[tick, kind] = both
            if total > 0 and (before[kind] or queue.waiting[kind]):
                waits = (before[kind] + queue.waiting[kind]) / 2
                deadline_s = rules.tiers.get(self._tiers[kind], TierRules()).deadline_s
                history.waited_s[tick, kind] = min(deadline_s, waits * self._tick_s / total)

    def _owed(self, offered: Sequence[float], rules: RoutingRules) -> list[tuple[int, float]]:
        """What lower tiers that wait get first: their shares of as many seats as the last tick had."""
        found = []
        for tier, share in shares(rules.batch_share).items():
            if self.queue.of(tier) <= 0:
                continue
            kinds = self.queue.kinds[tier]
            part = min(1.0, share * self._seats / sum(offered[kind] for kind in kinds))
            found += [(kind, offered[kind] * part) for kind in kinds]
        return found
