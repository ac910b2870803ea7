"""One ingress in virtual time: the real admission and routing over snapshots that are as old as told."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

from app.admission.desk import Desk
from app.admission.refusals import NoSeatError
from app.demand import Demand
from app.errors import Code
from app.membership import Membership
from app.routing.ask import Ask
from app.routing.route import Route
from app.routing.rule import preferred_role
from app.simulation.arrival import Arrival
from app.simulation.fleet import Fleet
from app.simulation.least_loaded import LeastLoaded
from app.simulation.sequence import Sequence
from app.workload.acceptance import draftable
from autoscaling.profile import MEAN
from autoscaling.request_line import Outcome
from autoscaling.types import IngressLoad, Role, Snapshot, Tier

POLL_S = 0.25  # how often a snapshot is fetched


class Routing(StrEnum):
    """How ingresses route."""

    OURS = "ours"
    LEAST_LOADED = "least_loaded"


@dataclass(frozen=True, slots=True)
class Served:
    """What became of a request; seconds since the trace's beginning, None where it never came to that."""

    arrival: Arrival
    outcome: Outcome
    pool: Role | None = None
    reason: str | None = None
    waited_s: float = 0.0  # in the ingress's queue
    first_token_at: float | None = None
    ended_at: float = 0.0
    tokens: int = 0

    @property
    def ttft_s(self) -> float | None:
        """From arrival to the first token, the wait included."""
        return None if self.first_token_at is None else self.first_token_at - self.arrival.at_s

    @property
    def tpot_s(self) -> float | None:
        """Mean seconds per token after the first; None for an answer of one."""
        if self.first_token_at is None or self.tokens < 2:
            return None
        return (self.ended_at - self.first_token_at) / (self.tokens - 1)


class Ingress:
    """Touched by one virtual loop; `fetch` is the controller's answer to what callers want here."""

    def __init__(
        self,
        name: str,
        fleet: Fleet,
        fetch: Callable[[str, IngressLoad, float], Snapshot],
        delay_s: float,
        seed: int,
        origin_s: float,
        routing: Routing = Routing.OURS,
    ) -> None:
        self._name = name
        self._fleet = fleet
        self._fetch = fetch
        self._delay_s = delay_s
        self._origin_s = origin_s  # when the trace begins, by the loop
        self._loop = asyncio.get_running_loop()
        self._routing = routing
        chance = random.Random(f"{seed}/{name}")  # noqa: S311  # a choice between replicas
        ours = routing is Routing.OURS
        clock = self._loop.time
        self._membership = Membership(clock) if ours else LeastLoaded(chance.randrange, clock)
        self._desk = Desk(self._membership, chance.randrange, clock)
        self._demand = Demand()

    @property
    def wanted(self) -> dict[Role, int]:
        """Sequences open here now, by the pool that their callers prefer; those that wait are among them."""
        return self._demand.load(self._membership.epoch).wanted

    async def poll(self) -> None:
        """Fetch snapshots for ever; each is `delay_s` old when it comes, but the first comes at once.

        A real ingress takes requests only when it has one.
        """
        while True:
            load = self._demand.load(self._membership.epoch)
            load = replace(load, waiting={tier: self._desk.waiting(tier) for tier in Tier})
            asked_at = self._loop.time()
            snapshot = self._fetch(self._name, load, asked_at)
            if self._delay_s and self._membership.epoch is not None:
                await asyncio.sleep(self._delay_s)
            self._membership.accept(snapshot, self._loop.time(), asked_at)
            self._desk.wake()
            await asyncio.sleep(POLL_S)

    async def serve(self, number: int, arrival: Arrival) -> Served:
        """Have a request answered, or say why not; a prompt that no replica takes is the caller's mistake."""
        longest = self._membership.max_model_len
        if longest is not None and arrival.prompt_tokens >= longest:
            return Served(arrival, Outcome.CALLER, ended_at=self._now())
        ask = self._ask(arrival)
        with self._demand.open(preferred_role(ask.tier, None), 1):
            try:
                return await self._served(number, arrival, ask)
            except NoSeatError as error:
                self._demand.refuse(preferred_role(ask.tier, None), 1)
                shed = error.code is Code.RATE_LIMIT_EXCEEDED
                return Served(arrival, Outcome.SHED if shed else Outcome.NO_CAPACITY, ended_at=self._now())

    async def _served(self, number: int, arrival: Arrival, ask: Ask) -> Served:
        tried: frozenset[str] = frozenset()
        while True:
            since = self._origin_s + arrival.at_s
            seat = await self._desk.seat(ask, since=since, tried=tried, again=bool(tried))
            with seat:
                waited_s = self._now() - arrival.at_s
                identity = seat.route.replica.replica_id
                replica = self._fleet.find(identity)
                if replica is not None and arrival.prompt_tokens >= replica.longest:
                    return Served(arrival, Outcome.CALLER, ended_at=self._now())
                sequence = Sequence(
                    f"r{number}", arrival.workload, arrival.prompt_tokens, arrival.answer_tokens, number
                )
                owed = sequence.owed = _owed(seat.route)
                ended = asyncio.Event()
                if replica is None or not replica.take(sequence, self._membership.advanced, ended.set):
                    self._membership.refused(identity, self._loop.time())
                    tried |= {identity}
                    continue
                await ended.wait()
                # The seat gives back all that was owed, of what came, too.
                self._membership.advanced(identity, sequence.owed - owed)
                return Served(
                    arrival,
                    Outcome.OK if sequence.generated and sequence.left == 0 else Outcome.FAILED,
                    seat.route.pool,
                    seat.route.reason.value if self._routing is Routing.OURS else self._routing.value,
                    waited_s,
                    None if sequence.first_token_at is None else sequence.first_token_at - self._origin_s,
                    self._now(),
                    sequence.generated,
                )

    def _now(self) -> float:
        """Seconds since the trace's beginning."""
        return self._loop.time() - self._origin_s

    def _ask(self, arrival: Arrival) -> Ask:
        """As classification would have it: the class is the trace's, the gain what the rules know of it."""
        rules, gain = self._membership.rules, None
        if self._membership.method is not None:
            gain = rules.tokens_per_step.get(arrival.workload, rules.tokens_per_step.get(MEAN))
        return Ask(
            tier=arrival.tier,
            prompt_tokens=arrival.prompt_tokens,
            tokens_per_step=gain,
            draftable=rules.classify and draftable(gain) if gain is not None else False,
            conversation=arrival.conversation,
        )


def _owed(route: Route) -> int:
    """The tokens that a seat on this route is taken to bring; whole ones, as the seat counts them."""
    ask, speed = route.decision.ask, route.decision.rules.speeds.get(route.pool)
    return round(ask.answer_tokens(None if speed is None else speed.answer_tokens) * ask.sequences)
