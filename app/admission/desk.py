"""The desk: gives each request its replica, now or when its turn comes, or refuses it.

Everything between a look at the replicas and the count of a new open request is one step without a
pause, so that no two requests are given the same room.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from math import ceil
from typing import Final

from app import errors
from app.admission.deadlines import Deadlines
from app.admission.lanes import Lanes, Ticket
from app.admission.pace import Pace
from app.admission.refusals import RETRY_AFTER_S, NoSeatError, refusal, what_stands_against
from app.admission.rounds import Offered, Rounds
from app.admission.seat import Seat
from app.candidates import Candidate
from app.membership import Membership
from app.routing.ask import Ask
from app.routing.replicas import Choose
from app.routing.route import Decision, Refusal, decide, route_of
from autoscaling.routing_rules import TierRules
from autoscaling.types import Tier

LOOK_S: Final = 0.05  # how often those who wait are looked at even when nothing is said to have changed
# Refused in one step: each has a decision of its own, and all other requests of this ingress wait for it.
REFUSED_AT_ONCE: Final = 100
NEXT_REFUSED_S: Final = 0.005


Owner = asyncio.Future[Seat]


class Desk:
    """Shared by all requests of one ingress; touched by one event loop."""

    def __init__(
        self, membership: Membership, choose: Choose, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._membership = membership
        self._choose = choose
        self._now = now
        self._lanes: Lanes[Owner] = Lanes()
        self._rounds = Rounds(self._lanes)
        self._pace = Pace()
        self._deadlines = Deadlines()
        self._looking: asyncio.Task[None] | None = None
        self._woken = False

    def waiting(self, tier: Tier) -> int:
        """Sequences of a tier that wait here."""
        return self._lanes.waiting(tier)

    def wake(self) -> None:
        """Look at those who wait soon: room has freed, or a snapshot has come."""
        if not self._woken and self._lanes:
            self._woken = True
            asyncio.get_running_loop().call_soon(self._look_if_woken)

    async def seat(
        self, ask: Ask, *, since: float, tried: frozenset[str] = frozenset(), again: bool = False
    ) -> Seat:
        """A place at a replica, at once or when its turn comes; `since` is when the request came.

        `again` is for one that had a place and was not accepted there: it is the first of its lane.
        Raises NoSeatError: rate_limit_exceeded when too many wait, no_capacity at the tier's deadline,
        not_ready without a replica, parameter_not_supported.
        """
        now = self._now()
        ticket: Ticket[Owner] = Ticket(ask, since, asyncio.get_running_loop().create_future(), tried)
        decision = self._decision(ticket, self._view(now))
        if again or not self._lanes:
            seat = self._taken(decision, now)
            if seat is not None:
                return seat
        elif route_of(decision) is not None:
            # Room has freed: those who wait come first where they can use it.
            self._lanes.join(ticket)
            self._look()
            if ticket.owner.done():
                return ticket.owner.result()
            self._lanes.leave(ticket)
            decision = self._decision(ticket, self._rounds.view_of(ticket, self._view(now)))
            seat = self._taken(decision, now)
            if seat is not None:  # nobody who waits can use it
                return seat
        ticket.tried = frozenset()  # each may have room again by the next look
        self._admit(ticket, decision, again, now)
        self._lanes.join(ticket, front=again)
        seat = await self._turn(ticket)
        seat.waited_for = decision.choice.verdicts
        return seat

    def seat_now(self, ask: Ask) -> Seat | None:
        """A place at once or not at all, ahead of those who wait: for a second try at a wider replica."""
        now = self._now()
        decision = decide(ask, self._view(now), self._membership.rules, choose=self._choose)
        return self._taken(decision, now)

    def retry_after_s(self, tier: Tier) -> int:
        """When to come back: by the pace of late, and at least what the policy says."""
        least = self._membership.retry_after_s or RETRY_AFTER_S
        return self._pace.retry_after_s(self._lanes.waiting(tier), least, self._now())

    # --- waiting -----------------------------------------------------------------------------------

    async def _turn(self, ticket: Ticket[Owner]) -> Seat:
        if self._looking is None:
            self._looking = asyncio.create_task(self._keep_looking(), name="desk")
        try:
            return await ticket.owner
        except asyncio.CancelledError:
            # The turn may have come in the moment in which the caller left.
            if ticket.owner.done() and not ticket.owner.cancelled() and ticket.owner.exception() is None:
                ticket.owner.result().release()
            raise
        finally:
            self._lanes.leave(ticket)

    async def _keep_looking(self) -> None:
        """Look now and then while somebody waits: load numbers and refusals expire without a word."""
        pause_s = LOOK_S
        try:
            while self._lanes:
                await asyncio.sleep(pause_s)
                if pause_s == LOOK_S:
                    self._look()
                pause_s = LOOK_S if self._expire(self._now()) else NEXT_REFUSED_S
        finally:
            self._looking = None

    def _look_if_woken(self) -> None:
        if self._woken:
            self._look()

    def _look(self) -> None:
        """Give out what room there is, in turn."""
        self._woken = False
        if not self._lanes:
            return
        now = self._now()

        def offer(ticket: Ticket[Owner], view: Sequence[Candidate]) -> Offered:
            return self._offer(ticket, view, now)

        self._rounds.give_out(lambda: self._view(now), self._membership.rules, now, offer)

    def _offer(self, ticket: Ticket[Owner], view: Sequence[Candidate], now: float) -> Offered:
        seat = None if ticket.owner.done() else self._seated(ticket, view, now)
        if seat is None and not ticket.owner.done():
            return Offered.NO_ROOM
        self._lanes.leave(ticket)
        if seat is None:
            return Offered.GONE
        ticket.owner.set_result(seat)
        return Offered.TAKEN

    def _expire(self, now: float) -> bool:
        """Refuse those whose time is over; False when some are left for the next time."""
        view = self._view(now)
        judged = [
            (lane, tickets, what_stands_against(decision))
            for lane, tickets in self._lanes.all()
            if (decision := self._decide(tickets[0], view)) is not None
        ]
        due = self._deadlines.late(judged, self._membership.rules, now)
        now_refused = due[:REFUSED_AT_ONCE]
        for ticket, _ in now_refused:  # none of them is ahead of anybody now
            self._lanes.leave(ticket)
        for ticket, why in now_refused:
            self._refuse(ticket, why, view)
        if len(now_refused) < len(due):
            return False
        if due:
            self.wake()  # what was held for one of them is free
        return True

    def _refuse(self, ticket: Ticket[Owner], why: Refusal, view: Sequence[Candidate]) -> None:
        own = self._decide(ticket, view)  # what the record shows is this request's
        if own is not None:
            self._fail(ticket, self._refusal(why, own))

    # --- deciding ----------------------------------------------------------------------------------

    def _view(self, now: float) -> tuple[Candidate, ...]:
        return self._membership.candidates_view(now)

    def _decision(self, ticket: Ticket[Owner], view: Sequence[Candidate]) -> Decision:
        return decide(ticket.ask, view, self._membership.rules, tried=ticket.tried, choose=self._choose)

    def _decide(self, ticket: Ticket[Owner], view: Sequence[Candidate]) -> Decision | None:
        """Decide on one that waits; None when that fails, which ends this request and no other."""
        try:
            return self._decision(ticket, view)
        except Exception as error:
            self._fail(ticket, error)
            return None

    def _seated(self, ticket: Ticket[Owner], view: Sequence[Candidate], now: float) -> Seat | None:
        """A seat for one that waits; as `_decide`."""
        try:
            return self._taken(self._decision(ticket, view), now)
        except Exception as error:
            self._fail(ticket, error)
            return None

    def _fail(self, ticket: Ticket[Owner], error: Exception) -> None:
        self._lanes.leave(ticket)
        if not ticket.owner.done():
            ticket.owner.set_exception(error)

    def _taken(self, decision: Decision, now: float) -> Seat | None:
        """Count what was decided on; None when there is no route."""
        route = route_of(decision)
        if route is None:
            return None
        ask = decision.ask
        tokens = ask.answer_tokens(self._membership.answer_tokens(route.pool)) * ask.sequences
        self._pace.granted(now, ask.sequences)
        return Seat(self._membership, route, tokens, self.wake)

    def _tier(self, ask: Ask) -> TierRules:
        return self._membership.rules.tiers.get(ask.tier, TierRules())

    def _admit(self, ticket: Ticket[Owner], decision: Decision, again: bool, now: float) -> None:
        """Refuse at once who may not wait; raises NoSeatError."""
        ask, why = ticket.ask, what_stands_against(decision)
        tier = self._tier(ask)
        if why is Refusal.CAPABILITY:
            raise self._refusal(why, decision)
        if why is Refusal.NO_ROOM and (tier.max_waiting <= 0 or now - ticket.entered >= tier.deadline_s):
            raise self._refusal(why, decision)
        most = ceil(tier.max_waiting / self._membership.ingresses)
        waiting = self._lanes.waiting(ask.tier)
        # Whoever is first may wait, however many sequences it has.
        if waiting and waiting + ask.sequences > most and not again:
            if why is Refusal.NO_REPLICA:
                raise self._refusal(why, decision)
            full = errors.queue_full(ask.tier, tier.max_waiting, self.retry_after_s(ask.tier))
            raise NoSeatError(full, decision)
        if why is Refusal.NO_REPLICA:  # a short wait, whatever the tier
            self._deadlines.strand(ticket.lane, now)

    def _refusal(self, why: Refusal, decision: Decision) -> NoSeatError:
        return refusal(why, decision, self.retry_after_s(decision.ask.tier))
