"""How requests of `benchmarks.goodput` find one of two slots: least loaded, or by our own desk and rules."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from app.admission.desk import Desk
from app.admission.refusals import NoSeatError
from app.admission.seat import Seat
from app.ask_of import asked
from app.membership import Membership
from app.peek import fields_of, peek
from app.routing.ask import Ask
from autoscaling.routing_rules import RoutingRules
from autoscaling.types import Capabilities, ReplicaView, Role, Snapshot
from benchmarks.goodput_plan import MAX_NUM_SEQS, SEED
from benchmarks.goodput_requests import Wanted
from benchmarks.goodput_rules import SLOT_ROLES, Slot

PATH: Final = "/v1/chat/completions"
HARD_LIMIT: Final = 4 * MAX_NUM_SEQS  # of a slot; nothing here comes near it
REFUSED: Final = "refused"


class RefusedError(Exception):
    """A request that got no place in time."""


class Place(Protocol):
    """An open request at a slot."""

    slot: int
    reason: str

    def advance(self, tokens: int) -> None:
        """Note tokens that came."""

    def release(self) -> None:
        """The request is over; once."""


class Router(Protocol):
    """A way to route."""

    async def place(self, wanted: Wanted) -> Place:
        """A place for this request, at once or when its turn comes; raises RefusedError."""


@dataclass(slots=True)
class _Counted:
    """A place under least loaded."""

    slot: int
    open: list[int]
    reason: str = "least_loaded"

    def advance(self, tokens: int) -> None:
        """Only open requests count."""

    def release(self) -> None:
        self.open[self.slot] -= 1


class LeastLoaded:
    """The slot with the fewest open requests; of equals one at random."""

    def __init__(self, seed: str) -> None:
        self._open = [0] * len(SLOT_ROLES)
        self._chance = random.Random(seed)

    async def place(self, wanted: Wanted) -> Place:  # noqa: ARG002  # the tier does not matter
        """At once, whatever is open."""
        least = min(self._open)
        slot = self._chance.choice([at for at, count in enumerate(self._open) if count == least])
        self._open[slot] += 1
        return _Counted(slot, self._open)


@dataclass(slots=True)
class _Seated:
    """A place that our desk gave."""

    slot: int
    reason: str
    seat: Seat

    def advance(self, tokens: int) -> None:
        self.seat.advance(tokens)

    def release(self) -> None:
        self.seat.release()


class Ours:
    """Our membership, desk and rules, as an ingress has them, over the two slots."""

    def __init__(
        self, slots: Sequence[Slot], engines: Sequence[Capabilities], rules: RoutingRules, seed: str
    ) -> None:
        self._members = Membership(time.monotonic)
        views = tuple(_view(at, slot, engines[at]) for at, slot in enumerate(slots))
        picture = Snapshot(1, 1, partial=False, ingresses=1, replicas=views, routing=rules)
        self._members.accept(picture, time.monotonic())
        self._desk = Desk(self._members, random.Random(seed).randrange)

    async def place(self, wanted: Wanted) -> Place:
        """The desk's seat."""
        try:
            seat = await self._desk.seat(self.ask(wanted), since=time.monotonic())
        except NoSeatError as error:
            raise RefusedError(REFUSED) from error
        return _Seated(SLOT_ROLES.index(seat.route.pool), seat.route.reason.value, seat)

    def ask(self, wanted: Wanted) -> Ask:
        """The request as our ingress sees it."""
        fields = fields_of(b"application/json", json.dumps(wanted.body).encode())
        seen = peek(PATH, fields, self._members.max_model_len)
        members = self._members
        return asked(PATH, fields, seen, wanted.tier, None, members.rules, members.method).ask


def slot_seed(index: int, name: str) -> str:
    """The seed of a condition in a round."""
    return f"{SEED}/{index}/{name}"


def _view(at: int, slot: Slot, engine: Capabilities) -> ReplicaView:
    """A replica in its role; one whose engine drafts nothing there has no method, so no gain is predicted."""
    drafts = slot.role is Role.SPECULATIVE and any(slot.lengths)
    return ReplicaView(
        replica_id=f"slot-{at}",
        boot_id="1",
        seq=1,
        pool=slot.role.value,
        role=slot.role,
        node_id="here",
        host="127.0.0.1",
        port=1,
        token="",
        accepting=True,
        age_s=0.0,
        inflight=0,
        running=None,
        waiting=None,
        soft_share=slot.limit,
        hard_share=HARD_LIMIT,
        soft_limit=slot.limit,
        capabilities=replace(engine, role=slot.role, method=engine.method if drafts else None),
    )
