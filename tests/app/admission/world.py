"""One ingress's desk over replicas of a test's choice, on a clock that only waiting moves."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from functools import wraps
from random import Random
from typing import Any

from app.admission.desk import Desk
from app.admission.refusals import NoSeatError
from app.admission.seat import Seat
from app.membership import Membership
from app.routing.ask import Ask
from autoscaling.routing_rules import RoutingRules, TierRules
from autoscaling.types import ReplicaView, Role, Tier
from tests.app.views import snapshot, view

SHORT = TierRules(deadline_s=0.2, max_waiting=8)
RULES = RoutingRules(tiers=dict.fromkeys(Tier, SHORT), reserve=0)
PATIENT = RoutingRules(tiers=dict.fromkeys(Tier, TierRules(deadline_s=1e4, max_waiting=10_000)), reserve=0)


class _Selector(selectors.DefaultSelector):
    """Never waits: the clock jumps to where the loop would have waited to."""

    now = 1000.0

    def select(self, timeout: float | None = None) -> list[Any]:
        found = super().select(0)
        if not found:
            assert timeout is not None, "everybody waits, and nothing will ever happen"
            self.now += max(0.0, timeout)
        return found


class TimelessLoop(asyncio.SelectorEventLoop):
    """An event loop whose time passes only while all wait, and then at once."""

    def __init__(self) -> None:
        self.clock = _Selector()
        super().__init__(self.clock)

    def time(self) -> float:
        """Seconds of the virtual clock."""
        return self.clock.now


def timeless(scenario: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run an asynchronous test on a virtual clock."""

    @wraps(scenario)
    def test(*args: Any, **kwargs: Any) -> None:
        with asyncio.Runner(loop_factory=TimelessLoop) as runner:
            runner.run(scenario(*args, **kwargs))

    return test


def now() -> float:
    """The virtual clock."""
    return asyncio.get_running_loop().time()


class World:
    """A membership and its desk; `take` and `ask` are what the relay would do."""

    def __init__(self, *views: ReplicaView, rules: RoutingRules = RULES, ingresses: int = 1) -> None:
        self.members = Membership(now)
        self.desk = Desk(self.members, Random(7).randrange, now)
        self.seq = 0
        self.rules = rules
        self.ingresses = ingresses
        self.began = now()
        self.know(*(views or (view("a"),)))

    @property
    def passed_s(self) -> float:
        """Since the beginning, to the microsecond."""
        return round(now() - self.began, 6)

    def know(self, *views: ReplicaView, rules: RoutingRules | None = None, wake: bool = True) -> None:
        """A snapshot comes, as the ingress's poll takes it in; the desk hears of it by `wake`."""
        self.seq += 1
        self.rules = rules or self.rules
        newer = [replace(one, seq=self.seq) for one in views]
        found = snapshot(*newer, seq=self.seq, ingresses=self.ingresses)
        self.members.accept(replace(found, routing=self.rules), now())
        if wake:
            self.desk.wake()

    async def take(self, tier: Tier = Tier.STANDARD, **more: Any) -> Seat:
        """A seat for a request that comes now."""
        known: Mapping[str, Any] = {
            name: more.pop(name) for name in ("since", "tried", "again") if name in more
        }
        return await self.desk.seat(Ask(tier, **more), **{"since": now(), **known})

    def ask(self, tier: Tier = Tier.STANDARD, **more: Any) -> asyncio.Task[Seat]:
        """The same in a task of its own."""
        return asyncio.create_task(self.take(tier, **more))

    async def fill(self, count: int, tier: Tier = Tier.STANDARD) -> list[Seat]:
        """Take so many single seats, which must be there."""
        before = now()
        seats = [await self.take(tier) for _ in range(count)]
        assert before == now()
        return seats

    async def refused(self, tier: Tier = Tier.STANDARD, **more: Any) -> NoSeatError:
        """The error that a request ends with."""
        try:
            await self.take(tier, **more)
        except NoSeatError as error:
            return error
        raise AssertionError("it got a seat")


async def settle() -> None:
    """Let everybody who can go on go on, without a moment passing."""
    for _ in range(5):
        await asyncio.sleep(0)


def plain(replica_id: str = "a", *, soft: int = 4, inflight: int = 0) -> ReplicaView:
    """A plain replica."""
    return view(replica_id, Role.PLAIN, soft_share=soft, hard_share=2 * soft, inflight=inflight)
