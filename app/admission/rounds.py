"""One look at those who wait: in which order they are offered the room there is; pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Generic, TypeVar

from app.admission.demands import Refused
from app.admission.holding import comes_after, patience_s, replica_to_hold, without
from app.admission.lanes import Lanes, Ticket
from app.admission.turns import Turns
from app.candidates import Candidate
from autoscaling.routing_rules import RoutingRules, TierRules

View = Sequence[Candidate]

_T = TypeVar("_T")


class Offered(StrEnum):
    """What became of an offer."""

    TAKEN = "taken"
    GONE = "gone"  # the caller has left, or its request failed
    NO_ROOM = "no_room"


class Rounds(Generic[_T]):
    """Whose turn it is, and for whom room is held; one per desk."""

    def __init__(self, lanes: Lanes[_T]) -> None:
        self._lanes = lanes
        self._turns = Turns()
        self._held: tuple[Ticket[_T], str] | None = None  # and the replica that is held for it
        self._others_had_a_turn = True  # since the last hold

    def give_out(
        self,
        view: Callable[[], View],
        rules: RoutingRules,
        now: float,
        offer: Callable[[Ticket[_T], View], Offered],
    ) -> None:
        """Offer what room there is, in turn, until nobody can use it.

        `view` tells the replicas after every seat that was given; `offer` gives a seat or says why not, and
        then the ticket leaves its lane.
        """
        self._hold_again(view(), rules)
        refused = Refused()
        while self._lanes and self._give_one(view(), rules, now, offer, refused):
            pass

    def view_of(self, ticket: Ticket[_T], view: View) -> View:
        """The replicas as this one may use them: without the one that is held for another before it."""
        if self._held is None:
            return view
        held, replica_id = self._held
        if held is ticket or not self._lanes.has(held):
            return view
        if not comes_after(ticket.ask.tier, ticket.entered, held.ask.tier, held.entered):
            return view
        return without(replica_id, view)

    def _give_one(
        self,
        view: View,
        rules: RoutingRules,
        now: float,
        offer: Callable[[Ticket[_T], View], Offered],
        refused: Refused,
    ) -> bool:
        """Give out one seat; whether to go on."""
        waiting = self._lanes.tiers()
        for tier in self._turns.order(waiting, rules.batch_share):
            for ticket in self._lanes.next_of(tier, refused):
                was_first = self._lanes.is_first(ticket)
                offered = offer(ticket, self.view_of(ticket, view))
                if offered is Offered.TAKEN:
                    self._turns.granted(tier, waiting, rules.batch_share)
                    self._others_had_a_turn = True
                if offered is not Offered.NO_ROOM:
                    self._end_hold(ticket, refused)
                    return True
                if was_first:
                    self._begin_hold(ticket, view, rules, now)
        return False

    # --- holding -----------------------------------------------------------------------------------

    def _begin_hold(self, ticket: Ticket[_T], view: View, rules: RoutingRules, now: float) -> None:
        """Hold room for the first of a lane, which found none.

        Not for one after the other: a tier that is owed a turn takes it in between.
        """
        ask = ticket.ask
        if self._held is not None or ask.sequences == 1 or not self._others_had_a_turn:
            return
        deadline_s = rules.tiers.get(ask.tier, TierRules()).deadline_s
        if now - ticket.entered >= patience_s(deadline_s):
            self._hold(ticket, view, rules)

    def _hold_again(self, view: View, rules: RoutingRules) -> None:
        """Hold for the same one, at the replica that is best for it by now."""
        if self._held is not None:
            ticket, _ = self._held
            self._drop_hold()
            if self._lanes.has(ticket):
                self._hold(ticket, view, rules)

    def _hold(self, ticket: Ticket[_T], view: View, rules: RoutingRules) -> None:
        replica_id = replica_to_hold(ticket.ask, view, rules)
        if replica_id is not None:
            self._held = ticket, replica_id

    def _end_hold(self, ticket: Ticket[_T], refused: Refused) -> None:
        if self._held is not None and self._held[0] is ticket:
            self._drop_hold()
            refused.forget()  # what was held from them may be of use now

    def _drop_hold(self) -> None:
        self._held, self._others_had_a_turn = None, False
