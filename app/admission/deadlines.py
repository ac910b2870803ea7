"""Whose waiting is over, by the deadline of its tier and by how long no replica has been there; pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TypeVar

from app.admission.lanes import Lane, Ticket
from app.routing.route import Refusal
from autoscaling.routing_rules import RoutingRules, TierRules

NO_REPLICA_S: Final = 2.0  # a replica that is replaced is back by then; else the caller has to know

_T = TypeVar("_T")


class Deadlines:
    """Remembers since when no replica could serve a lane."""

    def __init__(self) -> None:
        self._stranded: dict[Lane, float] = {}

    def strand(self, lane: Lane, now: float) -> None:
        """Note that no replica can serve one that comes now."""
        self._stranded.setdefault(lane, now)

    def late(
        self, lanes: Iterable[tuple[Lane, Sequence[Ticket[_T]], Refusal]], rules: RoutingRules, now: float
    ) -> list[tuple[Ticket[_T], Refusal]]:
        """Those whose time is over, of all lanes; what stands against a lane stands against all of it."""
        stranded, self._stranded = self._stranded, {}
        found: list[tuple[Ticket[_T], Refusal]] = []
        for lane, tickets, why in lanes:
            since, wait_s = -float("inf"), rules.tiers.get(lane[0], TierRules()).deadline_s
            if why is Refusal.NO_REPLICA:
                since, wait_s = stranded.get(lane, now), NO_REPLICA_S
                self._stranded[lane] = since
            elif why is Refusal.CAPABILITY:
                wait_s = 0.0  # waiting is vain
            found += [(one, why) for one in tickets if now - max(one.entered, since) >= wait_s]
        return found
