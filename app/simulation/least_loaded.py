"""Least loaded in place of our routing: the replica with the fewest open sequences, whoever asks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from app.candidates import Candidate
from app.membership import Membership
from app.routing.replicas import Choose
from autoscaling.routing_rules import RoutingRules
from autoscaling.types import Snapshot


class LeastLoaded(Membership):
    """A membership that shows a desk one replica at a time, so that the desk has nothing left to choose.

    That is the one with the fewest open sequences, of equals one at random, of those that take work and are
    below their hard limit.  How fast a pool is, soft limits and the reserve count for nothing.  When every
    replica is full all are shown, and the request waits or is refused by the rules of its tier.
    """

    def __init__(self, choose: Choose, clock: Callable[[], float]) -> None:
        super().__init__(clock)
        self._choose = choose

    def accept(self, snapshot: Snapshot, now: float, asked_at: float | None = None) -> bool:
        """Take a snapshot in, without what it says for our routing; False when it is not newer."""
        neutral = replace(snapshot, routing=_neutral(snapshot.routing or RoutingRules()))
        return super().accept(neutral, now, asked_at)

    def candidates_view(self, now: float) -> tuple[Candidate, ...]:
        """The least loaded replica; all of them, without room, when none takes work."""
        view = super().candidates_view(now)
        roomy = [one for one in view if one.hard_room]
        if not roomy:
            return view
        least = min(one.load for one in roomy)
        equals = [one for one in roomy if one.load == least]
        taken = equals[self._choose(len(equals)) % len(equals)]
        free = taken.replica.hard_share - self.inflight(taken.replica.replica_id)
        return (replace(taken, limit=taken.load + free, own_free=free),)


def _neutral(rules: RoutingRules) -> RoutingRules:
    """How tiers wait, and nothing that sets one pool or one caller before another."""
    return replace(rules, reserve=0, backfill=True, classify=False, costs={}, tokens_per_step={}, speeds={})
